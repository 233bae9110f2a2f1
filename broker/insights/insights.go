package insights

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker/archive"
	"github.com/parley-asp/parley/broker/reads"
	"github.com/parley-asp/parley/broker/registry"
	"github.com/parley-asp/parley/broker/sessionlist"
	"github.com/parley-asp/parley/internal/background"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// Options say where sessions are, and who asks.
type Options struct {
	Reads    *reads.Reads
	Reader   *archive.Reader
	List     *sessionlist.List
	Registry *registry.Registry
	Modes    session.Modes
	Skew     time.Duration // between the clocks of those who make ids
	Now      func() time.Time
	Work     *background.Group
	Log      *zap.Logger
}

// Insights counts sessions for those who may know how they went. It keeps the digests of sessions that
// are over, which never change, and reads them in the background once somebody asks.
type Insights struct {
	o Options

	mu   sync.Mutex
	of   map[performatives.SessionID]*Digest // nil: the transcript cannot be read
	read <-chan struct{}                     // closed once those that are read now are; nil while nobody reads
}

// Open makes the answers.
func Open(o Options) *Insights { return &Insights{o: o} }

// Bounds.
const (
	answerWithin = 1500 * time.Millisecond // a call waits no longer than this
	pageSize     = 10_000                  // sessions that are listed at once
	defaultTime  = 7 * 24 * time.Hour
	maxDigests   = 250_000
	// longestSession is how long before its end a session was opened at most, pauses and the
	// clocks of those who make ids included.
	longestSession = session.LongestDuration + 8*24*time.Hour
)

// Get answers insights.get with what is read within its time; the rest is read
// meanwhile, for whoever asks again.
func (x *Insights) Get(ctx context.Context, c api.Caller, q api.GetInsights) (api.Insights, error) {
	org := func(o performatives.Organisation) bool { return c.Operator || o == c.Agent.Organisation() }
	return x.get(ctx, c, q, x.counts(c), org)
}

// Of is Get for an organisation.
func (x *Insights) Of(ctx context.Context, o performatives.Organisation, q api.GetInsights) (api.Insights, error) {
	return x.get(ctx, api.Caller{Operator: true}, q,
		func(a performatives.Agent) bool { return a.Organisation() == o }, func(other performatives.Organisation) bool { return o == other })
}

func (x *Insights) get(
	ctx context.Context, c api.Caller, q api.GetInsights, counts func(performatives.Agent) bool, org func(performatives.Organisation) bool,
) (api.Insights, error) {
	until, err := timeOr(q.Until, "/until", x.o.Now())
	if err != nil {
		return api.Insights{}, err
	}
	since, err := timeOr(q.Since, "/since", until.Add(-defaultTime))
	if err != nil {
		return api.Insights{}, err
	}
	if q.Mode != "" && x.o.Modes[q.Mode] == nil {
		return api.Insights{}, session.Refuse(session.MalformedEnvelope, "/mode: there is no mode %q; there is %s", q.Mode, strings.Join(x.o.Modes.Names(), ", ")).
			With(map[string]string{"path": "/mode"})
	}
	if len(q.With) > api.MaxNamed {
		return api.Insights{}, session.Refuse(session.MalformedEnvelope, "/with: names at most %d agents", api.MaxNamed).With(map[string]string{"path": "/with"})
	}
	for _, a := range q.With {
		if _, err := performatives.ParseAgent(string(a)); err != nil {
			return api.Insights{}, session.Refuse(session.MalformedEnvelope, "/with: %v", err).With(map[string]string{"path": "/with"})
		}
	}
	sum, read := New(since, until, q.Mode, q.With, org), 0
	ids, err := x.countable(ctx, c, since, until, sum, counts)
	if err != nil {
		return api.Insights{}, err
	}
	reading, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	x.readDigests(reading, ids)
	of := len(ids)
	x.mu.Lock()
	for _, id := range ids {
		d, known := x.of[id]
		switch {
		case known && d != nil && !slices.ContainsFunc(d.Principals, counts):
			of--
			continue
		case known:
			read++
		}
		if d != nil {
			var row sessionlist.Row
			if len(q.With) > 0 {
				row, _ = x.o.List.Row(id)
			}
			sum.Add(d, row.Participants)
		}
	}
	x.mu.Unlock()
	reply := sum.Insights()
	reply.Read, reply.Of, reply.Complete = read, of, read == of
	return reply, nil
}

func timeOr(text, path string, otherwise time.Time) (time.Time, error) {
	if text == "" {
		return otherwise, nil
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return at, session.Refuse(session.MalformedEnvelope, "%s: want RFC 3339", path).With(map[string]string{"path": path})
	}
	return at, nil
}

// countable are the sessions that count for a caller, are over and may have ended in a time.
// It counts those that are open.
func (x *Insights) countable(
	ctx context.Context, c api.Caller, since, until time.Time, sum *Summary, counts func(performatives.Agent) bool,
) (ids []performatives.SessionID, err error) {
	for before := (sessionlist.Place{}); len(ids) < maxDigests; {
		page, err := x.o.Reads.OfCaller(ctx, c, "", before, pageSize)
		if err != nil {
			return nil, err
		}
		for _, at := range page {
			before = at
			id, opened := at.Session(), at.Opened()
			// The row of an older version may be of an id that is made of a hash: its time is nearly always in the future.
			known := opened.Before(x.o.Now().Add(x.o.Skew))
			if known && opened.Before(since.Add(-longestSession)) {
				return ids, nil // the rest is older
			}
			row, listed := x.o.List.Row(id)
			switch {
			case !listed, !mayCount(row, counts), !sum.Counts(row.Participants):
			case !row.State.Over():
				sum.AddOpen(row.Participants)
			case !known || opened.Before(until.Add(x.o.Skew)):
				ids = append(ids, id)
			}
		}
		if len(page) < pageSize {
			break
		}
	}
	return ids, nil
}

// counts tells whose sessions count for a caller: its own, and for who sees those of its
// organisation its colleagues'. A session counts if one of its principals is such an agent,
// for nobody who is its delegate, or was asked to be.
func (x *Insights) counts(c api.Caller) func(performatives.Agent) bool {
	member, _ := x.o.Registry.Member(c.Agent)
	whole := x.o.Registry.ReadsAll(c) || member.Authority == performatives.AuthorityDecide
	return func(a performatives.Agent) bool {
		return c.Operator || a == c.Agent || whole && a.Organisation() == c.Agent.Organisation()
	}
}

// mayCount tells by its row whether a session may count. The row of an older version does not
// tell who besides the first two is a principal: they count in what is over, by its transcript.
func mayCount(row sessionlist.Row, counts func(performatives.Agent) bool) bool {
	if row.Principals == 0 && row.State.Over() {
		return true
	}
	first := min(cmp.Or(row.Principals, 2), len(row.Participants))
	return slices.ContainsFunc(row.Participants[:first], counts)
}

// readDigests waits until sessions are read, or the time is over.
func (x *Insights) readDigests(ctx context.Context, ids []performatives.SessionID) {
	for {
		read, some := x.readMissing(ids)
		if !some || background.Await(ctx, read) != nil {
			return
		}
	}
}

// readMissing has those read that are not, one session after the other: reading is not to
// slow down acts. While others are read, it waits for those.
func (x *Insights) readMissing(ids []performatives.SessionID) (read <-chan struct{}, some bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.read != nil {
		return x.read, true
	}
	missing := slices.DeleteFunc(slices.Clone(ids), func(id performatives.SessionID) bool {
		_, known := x.of[id]
		return known
	})
	done := make(chan struct{})
	if len(missing) == 0 || !x.o.Work.Go(func(ctx context.Context) { x.fillDigests(ctx, missing, done) }) {
		return nil, false
	}
	x.read = done
	return done, true
}

func (x *Insights) fillDigests(ctx context.Context, ids []performatives.SessionID, done chan<- struct{}) {
	for _, id := range ids {
		d, err := x.digest(ctx, id)
		if ctx.Err() != nil {
			break
		}
		if err != nil {
			x.o.Log.Warn("insights leave a session out", zap.String("session", string(id)), zap.Error(err))
		}
		x.mu.Lock()
		if x.of == nil || len(x.of) >= maxDigests+pageSize {
			x.of = map[performatives.SessionID]*Digest{}
		}
		x.of[id] = d
		x.mu.Unlock()
	}
	x.mu.Lock()
	x.read = nil
	x.mu.Unlock()
	close(done)
}

// digest reads a session that is over, without the session cache: it would evict the
// sessions that are at work.
func (x *Insights) digest(ctx context.Context, id performatives.SessionID) (*Digest, error) {
	row, _ := x.o.List.Row(id)
	entries, err := x.o.Reader.All(ctx, id, row.Entries)
	if err != nil || len(entries) == 0 {
		return nil, err
	}
	return Read(entries)
}
