// Package bench measures what an act costs end to end, next to what the store
// alone costs for the same bytes in the same run.
//
//	report, err := bench.Run(ctx, bench.Options{
//		Program: "/usr/local/bin/parley", Syncs: []time.Duration{time.Minute}, Sessions: []int{1, 128}, Seconds: 10,
//	})
//	fmt.Print(report.Table())
//
// It starts a broker in its own process and drives sessions over TCP as agents
// do: every act is signed, validated, chained, stored, and delivered to the
// counterparty's durable consumer. Each session is a worker in a closed loop: it
// submits the next act once the last one was accepted and received.
//
// The baseline is a raw target: a NATS server of the same build with the same
// configuration and fsync setting. The same loop publishes the same signed bytes
// to a stream, waits for the acknowledgement, and reads them from a durable
// consumer; nothing is validated. The two targets take turns of a few seconds, so
// that other load on the machine affects both.
package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// Options say what to measure. Program is required.
type Options struct {
	// Program is the path of the parley binary. It must have the serve command, and
	// start a NATS server with [NATSServerCommand].
	Program string
	Dir     string // directory for the stores; "" is the system's temporary directory

	Syncs    []time.Duration // fsync intervals, one run each; 0 fsyncs before each acknowledgement
	Sessions []int           // concurrent sessions, one level each
	Seconds  float64         // per level and target
	Brokers  int             // broker processes on one NATS server process; 0 is one broker with an embedded server
	Written  bool            // write finished sessions to the store instead of submitting them, see [Stored]
	Archived bool            // with Written: write them to the archive
	Copies   bool            // with Archived: write their inbox copies too; otherwise those have expired
	Pairs    int             // pairs of agents that share the sessions; 0 is 16

	URL, Operator string // a running broker, and its operator's seed file ("" under --dev)
	PIDs          []int  // the processes of that broker to measure

	Progress io.Writer // progress, line by line; nil discards it
}

const (
	defaultPairs = 16
	turns        = 2 * time.Second // how long one target's turn lasts
)

func (o *Options) complete() error {
	if o.Program == "" {
		return errors.New("bench: option Program is empty")
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
	fmt.Fprintf(o.Progress, format+"\n", args...) //nolint:errcheck // progress is best effort
}

// Run measures throughput, latency and cost at each level.
func Run(ctx context.Context, o Options) (r Report, err error) {
	if err := o.complete(); err != nil {
		return r, err
	}
	r = newReport(o)
	for _, sync := range o.Syncs {
		if err := o.run(ctx, sync, &r); err != nil {
			return r, fmt.Errorf("bench: %w", err)
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
	broker, store := w.targets[0], w.targets[1]
	for _, sessions := range o.Sessions {
		o.say("sync %s, %d at a time: opening sessions", syncName(sync), sessions)
		parley, raw := broker.workers(sessions), store.workers(sessions)
		if err := openAll(ctx, parley); err != nil {
			return err
		}
		o.say("sync %s, %d at a time: %.0f s each", syncName(sync), sessions, o.Seconds)
		measurements := []*measurement{{target: broker, workers: parley}, {target: store, workers: raw}}
		if err := alternate(ctx, measurements, time.Duration(o.Seconds*float64(time.Second))); err != nil {
			return err
		}
		level := Level{Sync: syncName(sync), Sessions: sessions, Parley: measurements[0].figures(), Raw: measurements[1].figures()}
		level.Ratio = level.Parley.over(level.Raw)
		level.Bytes = measurements[0].meanBytes()
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
