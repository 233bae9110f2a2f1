package broker

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/insights"
	"github.com/parley-asp/parley/internal/background"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/sessionlist"
	"github.com/parley-asp/parley/store"
)

// digests are what insights count of sessions that are over, which never changes. They are
// read in the background once somebody asks.
type digests struct {
	mu   sync.Mutex
	of   map[performatives.SessionID]*insights.Digest // nil: the transcript cannot be read
	read <-chan struct{}                              // closed once those that are read now are; nil while nobody reads
}

// Bounds of insights.
const (
	insightsAnswer  = 1500 * time.Millisecond // a call waits no longer than this
	insightsPage    = 10_000                  // sessions that are listed at once
	insightsDefault = 7 * 24 * time.Hour
	maxDigests      = 250_000
	// longestSession is how long before its end a session was opened at most, pauses and the
	// clocks of those who make ids included.
	longestSession = session.LongestDuration + 8*24*time.Hour
)

// insightsGet answers insights.get with what is read within its time; the rest is read
// meanwhile, for whoever asks again.
func (b *Broker) insightsGet(ctx context.Context, c api.Caller, q api.GetInsights) (api.Insights, error) {
	until, err := timeOr(q.Until, "/until", b.Now())
	if err != nil {
		return api.Insights{}, err
	}
	since, err := timeOr(q.Since, "/since", until.Add(-insightsDefault))
	if err != nil {
		return api.Insights{}, err
	}
	if len(q.With) > api.MaxNamed {
		return api.Insights{}, session.Refuse(session.MalformedEnvelope, "/with: names at most %d agents", api.MaxNamed).With(map[string]string{"path": "/with"})
	}
	org := func(o performatives.Organisation) bool { return c.Operator || o == c.Agent.Organisation() }
	sum, read := insights.New(since, until, q.Mode, q.With, org), 0
	ids, err := b.insightful(ctx, c, since, until, sum)
	if err != nil {
		return api.Insights{}, err
	}
	reading, cancel := context.WithTimeout(ctx, insightsAnswer)
	defer cancel()
	b.readDigests(reading, ids)
	b.digests.mu.Lock()
	for _, id := range ids {
		d, known := b.digests.of[id]
		if known {
			read++
		}
		if d != nil && b.mayCount(c, d) {
			var row sessionlist.Row
			if len(q.With) > 0 {
				row, _ = b.list.Row(id)
			}
			sum.Add(d, row.Participants)
		}
	}
	b.digests.mu.Unlock()
	reply := sum.Insights()
	reply.Read, reply.Of, reply.Complete = read, len(ids), read == len(ids)
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

// insightful are the sessions of a caller that are over and may have ended in a time. It
// counts those that are open.
func (b *Broker) insightful(ctx context.Context, c api.Caller, since, until time.Time, sum *insights.Summary) (ids []performatives.SessionID, err error) {
	for before := ""; len(ids) < maxDigests; {
		page, err := b.access.OfCaller(ctx, c, "", before, insightsPage)
		if err != nil {
			return nil, err
		}
		for _, id := range page {
			before = string(id)
			made, known := madeAt(id)
			if known && made.Before(since.Add(-longestSession)) {
				return ids, nil // the rest is older
			}
			row, listed := b.list.Row(id)
			switch {
			case !listed, !sum.Counts(row.Participants):
			case !row.State.Over():
				sum.AddOpen(row.Participants)
			case !known || made.Before(until.Add(ClockSkew)):
				ids = append(ids, id)
			}
		}
		if len(page) < insightsPage {
			break
		}
	}
	return ids, nil
}

// madeAt is when a session's id was made.
func madeAt(id performatives.SessionID) (time.Time, bool) {
	u, err := uuid.Parse(string(id))
	if err != nil || u.Version() != 7 {
		return time.Time{}, false
	}
	return time.Unix(u.Time().UnixTime()), true
}

// mayCount tells whether a session counts for a caller: it, or for who sees its
// organisation's sessions a colleague, is a principal there.
func (b *Broker) mayCount(c api.Caller, d *insights.Digest) bool {
	member, _ := b.registry.Member(c.Agent)
	whole := b.registry.Audits(c) || member.Authority == performatives.AuthorityDecide
	for _, a := range d.Principals {
		if c.Operator || a == c.Agent || whole && a.Organisation() == c.Agent.Organisation() {
			return true
		}
	}
	return false
}

// readDigests waits until sessions are read, or the time is over.
func (b *Broker) readDigests(ctx context.Context, ids []performatives.SessionID) {
	for {
		read, some := b.readMissing(ids)
		if !some || background.Await(ctx, read) != nil {
			return
		}
	}
}

// readMissing has those read that are not, one session after the other: reading is not to
// slow down acts. While others are read, it waits for those.
func (b *Broker) readMissing(ids []performatives.SessionID) (read <-chan struct{}, some bool) {
	b.digests.mu.Lock()
	defer b.digests.mu.Unlock()
	if b.digests.read != nil {
		return b.digests.read, true
	}
	missing := slices.DeleteFunc(slices.Clone(ids), func(id performatives.SessionID) bool {
		_, known := b.digests.of[id]
		return known
	})
	done := make(chan struct{})
	if len(missing) == 0 || !b.work.Go(func(ctx context.Context) { b.fillDigests(ctx, missing, done) }) {
		return nil, false
	}
	b.digests.read = done
	return done, true
}

func (b *Broker) fillDigests(ctx context.Context, ids []performatives.SessionID, done chan<- struct{}) {
	for _, id := range ids {
		d, err := b.digest(ctx, id)
		if ctx.Err() != nil {
			break
		}
		if err != nil {
			b.Log.Warn("insights leave a session out", zap.String("session", string(id)), zap.Error(err))
		}
		b.digests.mu.Lock()
		if b.digests.of == nil || len(b.digests.of) >= maxDigests+insightsPage {
			b.digests.of = map[performatives.SessionID]*insights.Digest{}
		}
		b.digests.of[id] = d
		b.digests.mu.Unlock()
	}
	b.digests.mu.Lock()
	b.digests.read = nil
	b.digests.mu.Unlock()
	close(done)
}

// digest reads a session that is over, without the session cache: it would evict the
// sessions that are at work.
func (b *Broker) digest(ctx context.Context, id performatives.SessionID) (*insights.Digest, error) {
	row, _ := b.list.Row(id)
	var entries [][]byte
	err := b.store.Read(ctx, api.SessionsStream, api.Session(id), 0, func(e store.Message) error {
		entries = append(entries, e.Data)
		return nil
	})
	if err == nil && uint64(len(entries)) < row.Entries {
		entries, err = b.archive.Entries(ctx, id)
	}
	if err != nil || len(entries) == 0 {
		return nil, err
	}
	return insights.Read(entries)
}
