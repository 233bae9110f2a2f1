package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// Started is the time from the start of a broker process to the first act that it
// accepts.
type Started struct {
	Finished int     `json:"finishedSessions"`
	Open     int     `json:"openSessions"`
	After    string  `json:"after"` // how the previous process ended
	Seconds  float64 `json:"seconds"`
	RSS      float64 `json:"rssMiB"` // after the start

	Streams []Restored `json:"streams"` // the slowest to recover
}

// Restored says how the NATS server recovered a stream.
type Restored struct {
	Stream   string `json:"stream"`
	Messages string `json:"messages"`
	Took     string `json:"took"`
	Whole    bool   `json:"readWhole"` // its index was missing or outdated
}

// few is the number of stored sessions of the baseline.
const few = 100

// Stored compares the cost of an act with 100 finished sessions stored to the cost
// with many, and measures how long a broker with many finished and some open
// sessions takes to start.
func Stored(ctx context.Context, o Options, finished, open int) (r Report, err error) {
	if err := o.complete(); err != nil {
		return r, err
	}
	if o.URL != "" || o.Brokers > 0 {
		return r, errors.New("bench: stored sessions are measured on brokers with an embedded server")
	}
	r = newReport(o)
	for _, sync := range o.Syncs {
		if err := o.stored(ctx, sync, finished, open, &r); err != nil {
			return r, fmt.Errorf("bench: %w", err)
		}
	}
	return r, nil
}

func (o *Options) stored(ctx context.Context, sync time.Duration, finished, open int, r *Report) (err error) {
	w, err := openWorld(ctx, o, sync, "few", "many")
	if err != nil {
		return err
	}
	defer w.close(&err)
	for i, n := range []int{few, finished} {
		begun := time.Now()
		if o.Written {
			err = o.write(ctx, w.dir, w.targets[i], w.operators[i], n)
		} else {
			err = o.fill(ctx, w.targets[i], n)
		}
		if err != nil {
			return err
		}
		o.say("%s: %d finished sessions in %.0f s", w.targets[i].name, n, time.Since(begun).Seconds())
	}
	for _, sessions := range o.Sessions {
		var measurements []*measurement
		for _, target := range w.targets {
			workers := target.workers(sessions)
			if err := openAll(ctx, workers); err != nil {
				return err
			}
			measurements = append(measurements, &measurement{target: target, workers: workers})
		}
		o.say("sync %s, %d at a time: %.0f s each", syncName(sync), sessions, o.Seconds)
		if err := alternate(ctx, measurements, time.Duration(o.Seconds*float64(time.Second))); err != nil {
			return err
		}
		r.Growth = append(r.Growth, newGrowth(fmt.Sprintf("%d finished sessions stored, then %d", few, finished), syncName(sync), sessions, measurements[0], measurements[1]))
	}
	o.say("opening %d sessions", open)
	many := w.targets[1]
	workers := many.workers(open)
	if err := openAll(ctx, workers); err != nil {
		return err
	}
	var same []*worker // sessions of the pair that reconnects after each start
	for _, k := range workers[1:] {
		if k.pair == workers[0].pair {
			same = append(same, k)
		}
	}
	for _, end := range []struct {
		by    syscall.Signal
		after string
	}{
		{syscall.SIGKILL, "killed right after they were written"},
		{syscall.SIGTERM, "stopped"},
		{syscall.SIGKILL, "killed"},
	} {
		s, err := w.restart(ctx, many, workers[0], end.by)
		if err != nil {
			return err
		}
		n := min(ending, len(same))
		if err := w.end(ctx, many, same[:n]); err != nil {
			return err
		}
		same = same[n:]
		s.After, s.Finished, s.Open = end.after, finished, open
		o.say("%.2f s from the start to the first accepted act", s.Seconds)
		r.Started = append(r.Started, s)
	}
	return nil
}

// An act is a body and its sender.
type act struct {
	by   *party
	body performatives.Body
}

// finished returns the acts of a finished session: an invitation, its acceptance, a CLOSE.
func finished(pair [2]*party) []act {
	return []act{
		{pair[0], invitation(pair[1].Agent)},
		{pair[1], &performatives.AcceptBody{ReferenceID: "inv"}},
		{pair[0], &performatives.CloseBody{Outcome: "completed", Summary: "agreed elsewhere"}},
	}
}

// fill opens and finishes sessions by submitting their acts.
func (o *Options) fill(ctx context.Context, r *target, sessions int) error {
	all := sessions
	const part = 10_000
	for sessions > 0 {
		workers := r.workers(min(part, sessions))
		sessions -= len(workers)
		if err := each(ctx, workers, func(k *worker, ctx context.Context) error {
			defer k.leave()
			if err := k.open(ctx); err != nil {
				return err
			}
			_, err := k.submit(ctx, 0, &performatives.CloseBody{Outcome: "completed", Summary: "agreed elsewhere"})
			return err
		}); err != nil {
			return err
		}
		o.say("%s: %d finished sessions", r.name, all-sessions)
	}
	return nil
}

// restart stops a target's only broker, starts it again, and measures the time
// until an act is accepted.
func (w *world) restart(ctx context.Context, r *target, k *worker, end syscall.Signal) (s Started, err error) {
	p := w.processes[r.process]
	if err := p.cmd.Process.Signal(end); err != nil {
		return s, err
	}
	p.cmd.Wait() //nolint:errcheck // it exits by a signal
	sender := k.pair[0]
	envelope, err := k.envelope(sender, &performatives.ObserveBody{Subject: "here again"})
	if err != nil {
		return s, err
	}
	start := time.Now()
	args := p.cmd.Args[1:]
	if !slices.Contains(args, "--log-level") {
		args = append(args, "--log-level", "info") // the server logs how it recovers its streams
	}
	indexed, err := filepath.Glob(filepath.Join(w.dir, r.name, "nats", "jetstream", "*", "streams", "*", "msgs", "index.db"))
	if err != nil {
		return s, err
	}
	again, err := w.options.start(ctx, w.dir, r.name, args...)
	if again != nil {
		w.processes[r.process] = again
	}
	if err != nil {
		return s, err
	}
	nc, err := again.connect(sender)
	if err != nil {
		return s, err
	}
	defer nc.Close()
	if err := r.submitUntilAccepted(ctx, nc, r.subject(sender, nil, k.id), envelope); err != nil {
		return s, err
	}
	s.Seconds = time.Since(start).Seconds()
	r.pids = []int{again.cmd.Process.Pid}
	if s.RSS, err = memoryOfAll(r.pids); err != nil {
		return s, err
	}
	s.Streams, err = restored(again.log, indexed)
	return s, err
}

func (p *process) connect(as *party) (*nats.Conn, error) {
	return nats.Connect(p.url, as.login(), nats.CustomInboxPrefix("_INBOX."+as.Agent.Token()))
}

// ending is how many sessions are closed after each start.
const ending = 10

// end closes sessions of one pair, so that the next start finds a changed store.
func (w *world) end(ctx context.Context, r *target, workers []*worker) error {
	if len(workers) == 0 {
		return nil
	}
	sender := workers[0].pair[0]
	nc, err := w.processes[r.process].connect(sender)
	if err != nil {
		return err
	}
	defer nc.Close()
	for _, k := range workers {
		envelope, err := k.envelope(sender, &performatives.CloseBody{Outcome: "completed", Summary: "agreed elsewhere"})
		if err != nil {
			return err
		}
		if err := r.submitUntilAccepted(ctx, nc, r.subject(sender, nil, k.id), envelope); err != nil {
			return err
		}
	}
	return nil
}

var (
	restoredLine = regexp.MustCompile(`Restored ([0-9,]+) messages for stream '\S+ > (\w+)' in ([0-9.]+(?:µs|ms|s))`)
	outdatedLine = regexp.MustCompile(`\[(\w+)\] Stream state outdated`)
)

// restored reads from a broker's log how its NATS server recovered its streams,
// slowest first. indexed are the index files that existed before the start.
func restored(log string, indexed []string) (all []Restored, err error) {
	text, err := os.ReadFile(log)
	if err != nil {
		return nil, err
	}
	index := map[string]bool{}
	for _, file := range indexed {
		index[filepath.Base(filepath.Dir(filepath.Dir(file)))] = true
	}
	for _, m := range outdatedLine.FindAllStringSubmatch(string(text), -1) {
		index[m[1]] = false
	}
	took := map[string]time.Duration{}
	for _, m := range restoredLine.FindAllStringSubmatch(string(text), -1) {
		if took[m[2]], err = time.ParseDuration(m[3]); err != nil {
			return nil, err
		}
		all = append(all, Restored{m[2], m[1], m[3], !index[m[2]]})
	}
	slices.SortFunc(all, func(a, b Restored) int { return cmp.Compare(took[b.Stream], took[a.Stream]) })
	return all[:min(len(all), 4)], nil
}

// submitUntilAccepted resubmits an envelope while the broker, which has just
// started, is unavailable. The retries count as start time.
func (r *target) submitUntilAccepted(ctx context.Context, nc *nats.Conn, subject string, envelope []byte) error {
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	for {
		answer, err := nc.RequestWithContext(ctx, subject, envelope)
		if err != nil && !errors.Is(err, nats.ErrNoResponders) {
			return err
		}
		if err == nil && answer.Header.Get(api.ErrorCodeHeader) != unavailable {
			return r.accepted(answer)
		}
		select {
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("no act was accepted within %s: %w", deadline, ctx.Err())
		}
	}
}

var unavailable = strconv.Itoa(session.Unavailable.Status())
