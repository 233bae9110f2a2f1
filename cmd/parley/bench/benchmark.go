// Package bench measures what an act costs end to end, next to what the store
// alone costs for the same bytes in the same run.
//
//	report, err := bench.Run(ctx, bench.Options{
//		Program: "/usr/local/bin/parley", Syncs: []time.Duration{time.Minute}, Sessions: []int{1, 128}, Seconds: 10,
//	})
//	fmt.Print(report.Table())
//
// It starts a broker in its own process and drives sessions over TCP as agents do:
// every act is signed, validated, chained, stored, and delivered to the counterparty's
// durable consumer. A session is a whole negotiation, from the invitation to the CLOSE.
// Each worker holds one after the other in a closed loop: it submits the next act once
// the last one was accepted and received.
//
// The baseline is a raw target: a NATS server of the same build with the same
// configuration and fsync setting. The same loop publishes the same signed bytes
// to a stream, waits for the acknowledgement, and reads them from a durable
// consumer; nothing is validated. The two targets take turns of a few seconds, so
// that other load on the machine affects both.
package bench

import (
	"cmp"
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
	Shards   int             // of the broker's store; 0 is 1
	Pairs    int             // pairs of agents that share the sessions; 0 is 16
	Acts     int             // of each session, from the invitation to the CLOSE; 0 is 8
	Body     int             // bytes of a body, about; 0 is 1,024

	URL, Operator string // a running broker, and its operator's seed file ("" under --dev)
	PIDs          []int  // the processes of that broker to measure

	Progress io.Writer // progress, line by line; nil discards it
}

// The defaults of Options.
const (
	DefaultPairs = 16
	DefaultActs  = 8
	DefaultBody  = 1024
)

// MinActs are those of the shortest session with an offer that is accepted.
const MinActs = 5

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
	o.Pairs, o.Acts, o.Body = cmp.Or(o.Pairs, DefaultPairs), cmp.Or(o.Acts, DefaultActs), cmp.Or(o.Body, DefaultBody)
	if o.Progress == nil {
		o.Progress = io.Discard
	}
	return nil
}

func (o *Options) say(format string, args ...any) {
	fmt.Fprintf(o.Progress, format+"\n", args...) //nolint:errcheck // progress is best effort
}

// Run measures throughput, latency and cost at each level.
func Run(ctx context.Context, o Options) (Report, error) {
	return o.report(ctx, []string{"parley", rawName}, func(ctx context.Context, w *world, r *Report) error {
		for _, sessions := range o.Sessions {
			level := Level{Sync: w.sync, Sessions: sessions}
			var err error
			if level.Machine, err = measureMachine(w.dir); err != nil {
				return err
			}
			o.say("sync %s, %d at a time: %.0f s each", w.sync, sessions, o.Seconds)
			parley := &measurement{target: w.targets[0], workers: w.targets[0].workers(sessions, o.Acts, o.Body)}
			raw := &measurement{target: w.targets[1], workers: w.targets[1].workers(sessions, o.Acts, o.Body)}
			if err := o.alternate(ctx, parley, raw); err != nil {
				return err
			}
			level.Parley, level.Raw, level.Bytes = parley.figures(), raw.figures(), parley.meanBytes()
			level.Ratio = level.Parley.over(level.Raw)
			level.Verifications = over(level.Parley.CPU, level.Machine.Verify)
			r.Levels = append(r.Levels, level)
			o.say("%s", level.line())
		}
		return nil
	})
}

// report measures targets for each fsync interval.
func (o *Options) report(ctx context.Context, names []string, measure func(context.Context, *world, *Report) error) (r Report, err error) {
	if err := o.complete(); err != nil {
		return r, err
	}
	r = newReport(*o)
	for _, sync := range o.Syncs {
		if err := o.measure(ctx, sync, names, &r, measure); err != nil {
			return r, fmt.Errorf("bench: %w", err)
		}
	}
	return r, nil
}

func (o *Options) measure(ctx context.Context, sync time.Duration, names []string, r *Report, measure func(context.Context, *world, *Report) error) (err error) {
	w, err := openWorld(ctx, o, syncName(sync), names...)
	if err != nil {
		return err
	}
	defer w.close(&err)
	return measure(ctx, w, r)
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
