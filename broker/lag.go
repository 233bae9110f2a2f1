package broker

import (
	"context"
	"slices"
	"time"
)

// derivedLag is how long the timer and the session row may lag behind the transcript. What is
// over by then is not worth a timer, or a row for each state. The entries count as unapplied
// until both are written, so a recovery writes them. This broker answers from memory, which
// does not lag.
const derivedLag = 2 * time.Second

// A session that lags stays cached. Those that are so large, or come after so many, do not lag.
const (
	maxLaggingBytes = 64 << 10
	maxLagging      = maxCached / 2
)

// postpone puts off the timer and the row of a session whose entries are delivered, and tells
// whether it did. The first of the entries stays unapplied for all of them.
func (b *Broker) postpone(l *cachedSession) bool {
	now := time.Now()
	timer, unset := b.nextTimer(l)
	lags := !l.lagsUntil.IsZero()
	switch {
	case b.lag == 0, len(l.unapplied) == 0, !lags && !unset && !l.rowChanged(), // there is nothing to write
		lags && !now.Before(l.lagsUntil),
		unset && timer.Before(b.clock(l).Add(2*b.lag)), // the server must know of it in time
		!lags && b.sessions.working() > maxLagging, l.memory() > maxLaggingBytes,
		slices.ContainsFunc(l.unapplied, func(d delivery) bool { return d.again }): // whoever accepted it may be dead
		return false
	}
	for _, d := range l.unapplied[1:] {
		b.parts.Members.Applied(d.position)
	}
	first := l.unapplied[0]
	l.unapplied = []delivery{{sequence: first.sequence, position: first.position}}
	if !lags {
		l.lagsUntil = now.Add(b.lag)
		b.after(b.lag, l.id, (*Broker).writePostponed)
	}
	return true
}

// writePostponed writes what was put off, if it is time.
func (b *Broker) writePostponed(ctx context.Context, l *cachedSession) {
	if !l.lagsUntil.IsZero() && !time.Now().Before(l.lagsUntil) {
		b.writeNow(ctx, l)
	}
}

// writeNow writes what was put off, by the newest transcript: a peer may have written a later row
// meanwhile, which must not be replaced.
func (b *Broker) writeNow(ctx context.Context, l *cachedSession) {
	begun := time.Now()
	if err := b.renew(ctx, l); err != nil {
		b.fails(l, begun, err)
		b.later(l, maxRetryPause)
		return
	}
	b.applySideEffects(ctx, l)
}

// renew catches up with what peers have appended.
func (b *Broker) renew(ctx context.Context, l *cachedSession) error {
	if b.o.Alone {
		return b.load(ctx, l)
	}
	_, err := b.current(ctx, l)
	return err
}

// writeAllPostponed writes what was put off for any session, before the broker closes.
func (b *Broker) writeAllPostponed() {
	for _, id := range b.sessions.ids() {
		b.sessions.run(id, func(ctx context.Context, l *cachedSession) {
			if !l.lagsUntil.IsZero() {
				l.lagsUntil = time.Now()
				b.writeNow(ctx, l)
			}
		})
	}
}
