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

// Started is how long a broker takes from the start of its process to the first
// act that it accepts.
type Started struct {
	Finished int     `json:"finishedSessions"`
	Open     int     `json:"openSessions"`
	After    string  `json:"after"` // how the broker before it ended
	Seconds  float64 `json:"seconds"`
	RSS      float64 `json:"rssMiB"` // then

	Streams []Restored `json:"streams"` // that took the server longest
}

// Restored is how the server found a stream again.
type Restored struct {
	Stream   string `json:"stream"`
	Messages string `json:"messages"`
	Took     string `json:"took"`
	Whole    bool   `json:"readWhole"` // there was no summary, or what it said was not true any more
}

// few is how many sessions are stored where few are.
const few = 100

// Stored measures an act where 100 finished sessions are stored next to one
// where there are many, and how long a broker with those, and some that are
// open, takes to start.
func Stored(ctx context.Context, o Options, finished, open int) (r Report, err error) {
	if err := o.complete(); err != nil {
		return r, err
	}
	if o.URL != "" || o.Brokers > 0 {
		return r, errors.New("benchmark: stored sessions are measured on brokers with their server in the process")
	}
	r = newReport(o)
	for _, sync := range o.Syncs {
		if err := o.stored(ctx, sync, finished, open, &r); err != nil {
			return r, fmt.Errorf("benchmark: %w", err)
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
			err = o.write(ctx, w.dir, w.roads[i], w.operators[i], n)
		} else {
			err = o.fill(ctx, w.roads[i], n)
		}
		if err != nil {
			return err
		}
		o.say("%s: %d finished sessions in %.0f s", w.roads[i].name, n, time.Since(begun).Seconds())
	}
	for _, sessions := range o.Sessions {
		var sides []*side
		for _, road := range w.roads {
			lanes := road.lanes(sessions)
			if err := openAll(ctx, lanes); err != nil {
				return err
			}
			sides = append(sides, &side{road: road, lanes: lanes})
		}
		o.say("sync %s, %d at a time: %.0f s each", syncName(sync), sessions, o.Seconds)
		if err := alternate(ctx, sides, time.Duration(o.Seconds*float64(time.Second))); err != nil {
			return err
		}
		r.Growth = append(r.Growth, grown(fmt.Sprintf("%d finished sessions stored, then %d", few, finished), syncName(sync), sessions, sides[0], sides[1]))
	}
	o.say("opening %d sessions", open)
	many := w.roads[1]
	lanes := many.lanes(open)
	if err := openAll(ctx, lanes); err != nil {
		return err
	}
	var same []*lane // sessions of the one pair that comes back after each start
	for _, l := range lanes[1:] {
		if l.pair == lanes[0].pair {
			same = append(same, l)
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
		s, err := w.restart(ctx, many, lanes[0], end.by)
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

// A said is an act and who says it.
type said struct {
	by   *party
	body performatives.Body
}

// finished is a session that is over: an invitation, its acceptance, a CLOSE.
func finished(pair [2]*party) []said {
	return []said{
		{pair[0], invitation(pair[1].Agent)},
		{pair[1], &performatives.AcceptBody{ReferenceID: "inv"}},
		{pair[0], &performatives.CloseBody{Outcome: "completed", Summary: "agreed elsewhere"}},
	}
}

// fill has sessions opened and finished by their parties.
func (o *Options) fill(ctx context.Context, r *road, sessions int) error {
	all := sessions
	const part = 10_000
	for sessions > 0 {
		lanes := r.lanes(min(part, sessions))
		sessions -= len(lanes)
		if err := each(ctx, lanes, func(l *lane, ctx context.Context) error {
			defer l.leave()
			if err := l.open(ctx); err != nil {
				return err
			}
			_, err := l.say(ctx, 0, &performatives.CloseBody{Outcome: "completed", Summary: "agreed elsewhere"})
			return err
		}); err != nil {
			return err
		}
		o.say("%s: %d finished sessions", r.name, all-sessions)
	}
	return nil
}

// restart ends the one broker of a road, starts it again, and measures until an
// act in a lane is accepted.
func (w *world) restart(ctx context.Context, r *road, l *lane, end syscall.Signal) (s Started, err error) {
	p := w.processes[r.process]
	if err := p.cmd.Process.Signal(end); err != nil {
		return s, err
	}
	p.cmd.Wait() //nolint:errcheck // a signal ends it
	sender := l.pair[0]
	envelope, err := l.envelope(sender, &performatives.ObserveBody{Subject: "here again"})
	if err != nil {
		return s, err
	}
	start := time.Now()
	args := p.cmd.Args[1:]
	if !slices.Contains(args, "--log-level") {
		args = append(args, "--log-level", "info") // what the server says of its streams
	}
	summed, err := filepath.Glob(filepath.Join(w.dir, r.name, "nats", "jetstream", "*", "streams", "*", "msgs", "index.db"))
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
	if err := r.insist(ctx, nc, r.subject(sender, nil, l.id), envelope); err != nil {
		return s, err
	}
	s.Seconds = time.Since(start).Seconds()
	r.pids = []int{again.cmd.Process.Pid}
	if s.RSS, err = memoryOfAll(r.pids); err != nil {
		return s, err
	}
	s.Streams, err = restored(again.log, summed)
	return s, err
}

func (p *process) connect(as *party) (*nats.Conn, error) {
	return nats.Connect(p.url, as.login(), nats.CustomInboxPrefix("_INBOX."+as.Agent.Token()))
}

// ending is how many sessions end after each start.
const ending = 10

// end has sessions of one pair end, so that the next start finds a store that was used.
func (w *world) end(ctx context.Context, r *road, lanes []*lane) error {
	if len(lanes) == 0 {
		return nil
	}
	sender := lanes[0].pair[0]
	nc, err := w.processes[r.process].connect(sender)
	if err != nil {
		return err
	}
	defer nc.Close()
	for _, l := range lanes {
		envelope, err := l.envelope(sender, &performatives.CloseBody{Outcome: "completed", Summary: "agreed elsewhere"})
		if err != nil {
			return err
		}
		if err := r.insist(ctx, nc, r.subject(sender, nil, l.id), envelope); err != nil {
			return err
		}
	}
	return nil
}

var (
	restoredLine = regexp.MustCompile(`Restored ([0-9,]+) messages for stream '\S+ > (\w+)' in ([0-9.]+(?:µs|ms|s))`)
	outdatedLine = regexp.MustCompile(`\[(\w+)\] Stream state outdated`)
)

// restored reads in a broker's log what its server says of its streams, the slowest
// first. Of which there was a summary is known from before.
func restored(log string, summed []string) (all []Restored, err error) {
	text, err := os.ReadFile(log)
	if err != nil {
		return nil, err
	}
	summary := map[string]bool{}
	for _, file := range summed {
		summary[filepath.Base(filepath.Dir(filepath.Dir(file)))] = true
	}
	for _, m := range outdatedLine.FindAllStringSubmatch(string(text), -1) {
		summary[m[1]] = false
	}
	took := map[string]time.Duration{}
	for _, m := range restoredLine.FindAllStringSubmatch(string(text), -1) {
		if took[m[2]], err = time.ParseDuration(m[3]); err != nil {
			return nil, err
		}
		all = append(all, Restored{m[2], m[1], m[3], !summary[m[2]]})
	}
	slices.SortFunc(all, func(a, b Restored) int { return cmp.Compare(took[b.Stream], took[a.Stream]) })
	return all[:min(len(all), 4)], nil
}

// insist submits an envelope until it is accepted: a broker that has just
// started may be unavailable, and the same bytes heal that. The time is counted.
func (r *road) insist(ctx context.Context, nc *nats.Conn, subject string, envelope []byte) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		answer, err := nc.RequestWithContext(ctx, subject, envelope)
		if err != nil && !errors.Is(err, nats.ErrNoResponders) {
			return err
		}
		if err == nil && answer.Header.Get(api.ErrorCodeHeader) != unavailable {
			return r.heard(answer)
		}
		select {
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("nothing is accepted in %s: %w", patience, ctx.Err())
		}
	}
}

var unavailable = strconv.Itoa(session.Unavailable.Status())
