package natsgateway

import (
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/parley-asp/parley/performatives"
)

// awayFor is how long who floods may not log in.
const awayFor = 10 * time.Second

// floods are what principals send that is refused unread or dropped, or that NATS answers: NATS itself bounds nobody.
type floods struct {
	mu     sync.Mutex
	since  time.Time // the second that is counted
	counts map[performatives.Agent]int
	away   map[performatives.Agent]time.Time // until when
}

// add counts some, and reports whether they are the first too many of a second.
func (f *floods) add(sender performatives.Agent, n, most int, now time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.counts == nil || now.Sub(f.since) >= time.Second {
		f.since, f.counts = now, map[performatives.Agent]int{}
	}
	f.counts[sender] += n
	total := f.counts[sender]
	return total >= most && total-n < most
}

// keepAway lets somebody not log in for a while.
func (f *floods) keepAway(sender performatives.Agent, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.away == nil {
		f.away = map[performatives.Agent]time.Time{}
	}
	f.away[sender] = now.Add(awayFor)
}

// has reports whether somebody may not log in, as it has flooded.
func (f *floods) has(a performatives.Agent, now time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	until, flooded := f.away[a]
	if flooded && !now.Before(until) {
		delete(f.away, a)
	}
	return flooded && now.Before(until)
}

// countFlood counts a request for so many. Of too many, it closes their sender's connections.
func (g *Gateway) countFlood(sender performatives.Agent, n int) {
	if g.floods.add(sender, n, g.o.MostUseless, time.Now()) {
		g.Flooded(sender)
	}
}

// Flooded closes the connections of a principal that floods, and lets it not log in for a while.
func (g *Gateway) Flooded(sender performatives.Agent) {
	g.floods.keepAway(sender, time.Now())
	g.o.Log.Warn("a principal floods: its connections are closed, and it may log in again later", zap.String("agent", string(sender)), zap.Duration("after", awayFor))
	if g.o.Flood != nil {
		g.o.Flood(sender)
	}
}

// Floods reports whether a principal may not log in, since it has flooded the broker.
func (g *Gateway) Floods(a performatives.Agent) bool { return g.floods.has(a, time.Now()) }

// admit lets a request in that can be answered and is well-formed, or says what to do with it: it is dropped, or refused.
// Each is charged.
func (g *Gateway) admit(r request, sender performatives.Agent, id performatives.SessionID, malformed error) (release func(), ok bool) {
	release, err := g.o.Admit(sender, id, len(r.Data()))
	switch {
	case err == nil && malformed == nil && !unanswerable(r):
		return release, true
	case err == nil:
		release()
	}
	switch g.countFlood(sender, 1); {
	case unanswerable(r):
	case malformed != nil:
		g.refuse(r, malformed)
	default:
		g.refuseLater(r.Reply(), err)
	}
	return nil, false
}
