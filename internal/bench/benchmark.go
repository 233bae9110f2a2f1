// Package bench measures what an act costs from outside, next to what the
// store itself costs for the same bytes in the same run.
//
//	report, err := benchmark.Run(ctx, benchmark.Options{
//		Program: "/usr/local/bin/parley", Syncs: []time.Duration{time.Minute}, Sessions: []int{1, 128}, Seconds: 10,
//	})
//	fmt.Print(report.Table())
//
// It starts a broker in a process of its own and drives sessions over TCP as
// agents do: every act is signed, judged, chained and stored, and delivered to
// the counterpart's durable consumer. Each session is a closed loop: the next
// act is made when the last one was both accepted and received.
//
// Beside it stands a NATS server of the same build with the same configuration
// and the same fsync setting. There the same loop publishes the same signed
// bytes into a stream, with an acknowledgement, and the counterpart's durable
// consumer reads them; nothing is checked. The two take turns, a few seconds
// each, so that whatever else the machine does falls on both.
package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// Options say what is measured. Program is always needed.
type Options struct {
	// Program is the parley program. It must know `serve`, and start a NATS server
	// with [NATSServerCommand].
	Program string
	Dir     string // where stores are made; "" is the system's temporary directory

	Syncs    []time.Duration // fsync settings, one run each; 0 is before each acknowledgement
	Sessions []int           // how many sessions go on at a time, one level each
	Seconds  float64         // for each level and each side
	Brokers  int             // broker processes beside a NATS server process; 0 is one broker with its server in it
	Written  bool            // finished sessions are written to the store, not submitted, see [Stored]
	Archived bool            // with Written: into the archive, as after `serve --archive-after`
	Copies   bool            // with Archived: their inbox copies too; without, they ended so long ago that those have expired
	Pairs    int             // pairs of agents that share the sessions; 0 is 16

	URL, Operator string // a broker that runs already, and the file with its operator's seed ("": --dev)
	PIDs          []int  // of the processes whose cost counts there

	Progress io.Writer // what is going on, a line at a time; nil is nobody
}

const (
	defaultPairs = 16
	turns        = 2 * time.Second // that a side has before the other one's turn
)

func (o *Options) complete() error {
	if o.Program == "" {
		return errors.New("benchmark: option Program is empty")
	}
	if len(o.Syncs) == 0 {
		o.Syncs = []time.Duration{0, time.Minute}
	}
	if len(o.Sessions) == 0 {
		o.Sessions = []int{1, 16, 128, 1024}
	}
	if o.Seconds <= 0 {
		o.Seconds = 10
	}
	if o.Pairs <= 0 {
		o.Pairs = defaultPairs
	}
	if o.Progress == nil {
		o.Progress = io.Discard
	}
	return nil
}

func (o *Options) say(format string, args ...any) {
	fmt.Fprintf(o.Progress, format+"\n", args...) //nolint:errcheck // progress is for whoever looks
}

// Run measures throughput, latency and cost at each level.
func Run(ctx context.Context, o Options) (r Report, err error) {
	if err := o.complete(); err != nil {
		return r, err
	}
	r = newReport(o)
	for _, sync := range o.Syncs {
		if err := o.run(ctx, sync, &r); err != nil {
			return r, fmt.Errorf("benchmark: %w", err)
		}
	}
	return r, nil
}

func (o *Options) run(ctx context.Context, sync time.Duration, r *Report) (err error) {
	w, err := openWorld(ctx, o, sync, "parley", rawName)
	if err != nil {
		return err
	}
	defer w.close(&err)
	broker, store := w.roads[0], w.roads[1]
	for _, sessions := range o.Sessions {
		o.say("sync %s, %d at a time: opening sessions", syncName(sync), sessions)
		parley, raw := broker.lanes(sessions), store.lanes(sessions)
		if err := openAll(ctx, parley); err != nil {
			return err
		}
		o.say("sync %s, %d at a time: %.0f s each", syncName(sync), sessions, o.Seconds)
		sides := []*side{{road: broker, lanes: parley}, {road: store, lanes: raw}}
		if err := alternate(ctx, sides, time.Duration(o.Seconds*float64(time.Second))); err != nil {
			return err
		}
		level := Level{Sync: syncName(sync), Sessions: sessions, Parley: sides[0].figures(), Raw: sides[1].figures()}
		level.Ratio = level.Parley.over(level.Raw)
		level.Bytes = sides[0].meanBytes()
		r.Levels = append(r.Levels, level)
		o.say("%s", level.line())
	}
	return nil
}

func syncName(d time.Duration) string {
	switch {
	case d == 0:
		return "always"
	case d%time.Minute == 0:
		return fmt.Sprintf("%dm", d/time.Minute)
	}
	return d.String()
}
