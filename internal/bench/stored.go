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
	"syscall"
	"time"

	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/performatives"
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
func Stored(ctx context.Context, o Options, finished, open int) (Report, error) {
	if o.URL != "" || o.Brokers > 0 {
		return Report{}, errors.New("bench: stored sessions are measured on brokers with an embedded server")
	}
	return o.report(ctx, []string{"few", "many"}, func(ctx context.Context, w *world, r *Report) error {
		return o.stored(ctx, w, finished, open, r)
	})
}

func (o *Options) stored(ctx context.Context, w *world, finished, open int, r *Report) error {
	for i, n := range []int{few, finished} {
		begun := time.Now()
		fill := o.fill
		if o.Written {
			fill = o.write
		}
		if err := fill(ctx, w, i, n); err != nil {
			return err
		}
		o.say("%s: %d finished sessions in %.0f s", w.targets[i].name, n, time.Since(begun).Seconds())
	}
	for _, sessions := range o.Sessions {
		little := &measurement{target: w.targets[0], workers: w.targets[0].workers(sessions, o.Acts, o.Body)}
		much := &measurement{target: w.targets[1], workers: w.targets[1].workers(sessions, o.Acts, o.Body)}
		g, err := o.grow(ctx, fmt.Sprintf("%d finished sessions stored, then %d", few, finished), w.sync, little, much)
		if err != nil {
			return err
		}
		r.Growth = append(r.Growth, g)
	}
	o.say("opening %d sessions", open)
	many := w.targets[1]
	workers := many.workers(open, o.Acts, o.Body)
	if err := submitAll(ctx, workers, opening); err != nil {
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
		n := min(ending, len(same))
		s, err := w.restart(ctx, many, workers[0], same[:n], end.by)
		if err != nil {
			return err
		}
		same = same[n:]
		s.After, s.Finished, s.Open = end.after, finished, open
		o.say("%.2f s from the start to the first accepted act", s.Seconds)
		r.Started = append(r.Started, s)
	}
	return nil
}

// finishedActs are those of a finished session: an invitation, its acceptance, a CLOSE.
const finishedActs = 3

// fill opens and finishes sessions by submitting their acts.
func (o *Options) fill(ctx context.Context, w *world, target, sessions int) error {
	r := w.targets[target]
	const part = 10_000
	for done := 0; done < sessions; {
		workers := r.workers(min(part, sessions-done), finishedActs, 0)
		if err := submitAll(ctx, workers, finishedActs); err != nil {
			return err
		}
		for _, k := range workers {
			k.leave()
		}
		done += len(workers)
		o.say("%s: %d finished sessions", r.name, done)
	}
	return nil
}

// ending is how many sessions are closed after each start, so that the next one finds a
// changed store.
const ending = 10

// restart stops a target's only broker, starts it again, and measures the time until an act
// is accepted. Then it closes some sessions of the same pair.
func (w *world) restart(ctx context.Context, r *target, k *worker, closing []*worker, end syscall.Signal) (s Started, err error) {
	p := w.processes[r.process]
	if err := p.cmd.Process.Signal(end); err != nil {
		return s, err
	}
	p.cmd.Wait() //nolint:errcheck // it exits by a signal
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
	r.pids = []int{again.cmd.Process.Pid}
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	sender, err := client.Connect(ctx, again.url, k.pair[0].Agent, client.Key(k.pair[0].signer))
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, sender.Close()) }()
	if _, err := sender.Session(k.id).Observe(ctx, "here again", nil); err != nil {
		return s, err
	}
	s.Seconds = time.Since(start).Seconds()
	if s.RSS, err = memoryOfAll(r.pids); err != nil {
		return s, err
	}
	for _, k := range closing {
		if _, err := sender.Session(k.id).Close(ctx, client.Closing{Outcome: performatives.Completed}); err != nil {
			return s, err
		}
	}
	s.Streams, err = restored(again.log, indexed)
	return s, err
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
