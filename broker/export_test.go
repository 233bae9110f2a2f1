package broker

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker/archive"
	"github.com/parley-asp/parley/broker/timers"
	"github.com/parley-asp/parley/performatives"
)

// StopAt ends the work on whichever session reaches the point next, as if the
// process had died there; the channel closes when that has happened. Points
// from then on are not reached any more.
func (b *Broker) StopAt(where string) <-chan struct{} {
	if !slices.Contains(slices.Concat(Failpoints(), archive.Failpoints(), archive.ErasurePoints()), where) {
		panic("no such point: " + where)
	}
	stopped := make(chan struct{})
	var once sync.Once
	b.AtFailpoints(func(p string) {
		if p != where {
			return
		}
		first := false
		once.Do(func() { first = true; close(stopped) })
		if first {
			runtime.Goexit()
		}
	})
	return stopped
}

// Hold keeps a session busy until it is let go.
func (b *Broker) Hold(id performatives.SessionID) (letGo func()) {
	held := make(chan struct{})
	b.sessions.run(id, func(context.Context, *cachedSession) { <-held })
	return func() { close(held) }
}

// ListWithin is session.list with the caller's deadline.
func (b *Broker) ListWithin(ctx context.Context, a performatives.Agent) (api.Sessions, error) {
	return b.parts.Reads.SessionList(ctx, api.Caller{Agent: a}, api.ListSessions{})
}

// Beat has the broker say how far it has come.
func (b *Broker) Beat(ctx context.Context) error { return b.parts.Members.Heartbeat(ctx) }

// Applied is the highest position that its record has.
func (b *Broker) Applied() uint64 {
	return slices.Max(b.parts.Members.Written())
}

// InMemory reports whether a session has been read, or works.
func (b *Broker) InMemory(id performatives.SessionID) bool {
	b.sessions.mu.Lock()
	defer b.sessions.mu.Unlock()
	l := b.sessions.cached[id]
	return l != nil && (l.running || l.loaded)
}

// Listed reports whether the list has a session.
func (b *Broker) Listed(id performatives.SessionID) bool {
	there, _ := b.parts.List.Part(id, "")
	return there
}

// CacheBytes sets how many bytes the session cache has.
func (b *Broker) CacheBytes(most int) { b.sessions.most = most }

// Cached is how many bytes of sessions are cached, once they have done their work.
func (b *Broker) Cached() int {
	b.sessions.busy.Wait()
	b.sessions.mu.Lock()
	defer b.sessions.mu.Unlock()
	return b.sessions.bytes
}

// Forgets has a session do pieces of work that each forget it.
func (b *Broker) Forgets(id performatives.SessionID, done func()) bool {
	return b.sessions.run(id, func(_ context.Context, l *cachedSession) {
		l.forget(b.o.Modes)
		done()
	})
}

// TimerAgain is when a timer without progress is delivered again.
const TimerAgain = timers.Again

// Queued is how much work waits for a session.
func (b *Broker) Queued(id performatives.SessionID) int {
	b.sessions.mu.Lock()
	defer b.sessions.mu.Unlock()
	return len(b.sessions.cached[id].queue)
}

// MaxQueue is how much waits for one session at most.
const MaxQueue = maxQueue

// HoldChecks keeps long checks of terms waiting until they are let go.
func (b *Broker) HoldChecks(a performatives.Agent) (letGo func()) { return b.checking.Enter(a).Release }

// Lag sets how long timers and session rows may lag.
func (b *Broker) Lag(d time.Duration) {
	b.sessions.mu.Lock()
	defer b.sessions.mu.Unlock()
	b.lag = d
}
