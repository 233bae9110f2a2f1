package broker

import (
	"math"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// Limits bound what one principal may ask of a broker. A field that is zero is
// the default beside it; one below zero is no limit. They hold under --dev too;
// operators have none. Several brokers that share the work limit each for itself.
type Limits struct {
	Rate         float64 // acts and api calls a second: 10,000
	Burst        int     // of them at once after a pause: a tenth of the rate
	InFlight     int     // of them that wait for their answer: 256
	Sessions     int     // that it opened and that are not over: 10,000
	Participants int     // principals of a session, and besides them delegates: 1,001
	Bytes        int     // of an envelope: 256 KiB, which is the most
	Schemas      int     // terms schemas of its organisation, which stay for ever: 1,000
}

// The defaults of Limits.
const (
	DefaultRate         = 10_000
	DefaultInFlight     = 256
	DefaultSessions     = 10_000
	DefaultParticipants = 1001
	DefaultSchemas      = 1000
)

func (l Limits) withDefaults() Limits {
	or := func(n *int, d int) {
		switch {
		case *n == 0:
			*n = d
		case *n < 0:
			*n = math.MaxInt
		}
	}
	switch {
	case l.Rate == 0:
		l.Rate = DefaultRate
	case l.Rate < 0:
		l.Rate = float64(rate.Inf)
	}
	or(&l.Burst, int(max(1, min(l.Rate/10, math.MaxInt32))))
	or(&l.InFlight, DefaultInFlight)
	or(&l.Sessions, DefaultSessions)
	or(&l.Participants, DefaultParticipants)
	or(&l.Schemas, DefaultSchemas)
	if l.Bytes <= 0 || l.Bytes > performatives.MaxEnvelope {
		l.Bytes = performatives.MaxEnvelope
	}
	return l
}

// A gate lets the requests of each principal in, as fast and as many at a time
// as the limits allow. It comes before everything else: who asks too much is
// told so before anything of it is read (PROTOCOL.md §3, order of checks).
type gate struct {
	limits Limits
	now    func() time.Time

	mu     sync.Mutex
	shares map[performatives.Agent]*share
	sweep  int // look for idle ones when there are so many
}

// A share is what one principal uses of its limits.
type share struct {
	bucket *rate.Limiter
	asked  int // and not answered
}

const fewShares = 1024 // are kept without a look at which of them are idle

func newGate(l Limits, now func() time.Time) *gate {
	return &gate{limits: l, now: now, shares: map[performatives.Agent]*share{}, sweep: fewShares}
}

// enter lets one request in, until it is answered, or refuses it.
func (g *gate) enter(a performatives.Agent) (answered func(), err error) {
	now := g.now()
	g.mu.Lock()
	defer g.mu.Unlock()
	s := g.shares[a]
	if s == nil {
		g.makeRoom(now)
		s = &share{bucket: rate.NewLimiter(rate.Limit(g.limits.Rate), g.limits.Burst)}
		g.shares[a] = s
	}
	if s.asked >= g.limits.InFlight {
		return nil, limited("inFlight", afterAnAnswer, "%d of your requests wait for their answers, and there are no more than that at a time", s.asked)
	}
	if !s.bucket.AllowN(now, 1) {
		missing := (1 - s.bucket.TokensAt(now)) / g.limits.Rate
		wait := time.Duration(missing*float64(time.Second)) + time.Millisecond
		return nil, limited("rate", wait, "no more than %g acts and calls a second, or %d at once after a pause", g.limits.Rate, g.limits.Burst)
	}
	s.asked++
	return sync.OnceFunc(func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		s.asked--
	}), nil
}

// makeRoom forgets the shares that are as good as new: nothing in flight, and a
// bucket that is full again. What is left asked something a moment ago.
func (g *gate) makeRoom(now time.Time) {
	if len(g.shares) < g.sweep {
		return
	}
	for a, s := range g.shares {
		if s.asked == 0 && s.bucket.TokensAt(now) >= float64(g.limits.Burst) {
			delete(g.shares, a)
		}
	}
	g.sweep = max(fewShares, 2*len(g.shares))
}

// When to ask again where it is not known when there will be room.
const (
	afterAnAnswer = 50 * time.Millisecond
	afterAnEnd    = 5 * time.Second
)

func limited(limit string, wait time.Duration, format string, args ...any) error {
	return session.Refuse(session.RateLimited, format, args...).With(api.Limited{Limit: limit, RetryAfter: wait.Milliseconds()})
}

// roomFor judges what an act would add to its session, or the session to those
// that its inviter holds open. It comes last: only what would be heard is
// limited. Whoever is let in says so when the act was entered, or was not.
func (b *Broker) roomFor(l *live, m *performatives.Message, next *session.State) (leave func(), err error) {
	most := b.Limits.Participants
	switch m.Performative {
	case performatives.Propose:
		if l.state.Phase != session.Idle {
			break
		}
		if n := next.Principals(); n > most {
			return nil, tooMany("principals", n, most)
		}
		release, open, ok := b.list.Reserve(m.Sender, b.Limits.Sessions)
		if !ok {
			return nil, limited("sessions", afterAnEnd, "%d sessions that you opened are not over, and there are no more than that at a time: CLOSE some", open)
		}
		return release, nil
	case performatives.Delegate:
		if n := len(next.Roll()) - next.Principals(); n > most && len(next.Roll()) > len(l.state.Roll()) {
			return nil, tooMany("delegates and approvers", n, most)
		}
	default:
	}
	return func() {}, nil
}

// tooMany is no matter of time: the same act will not be heard later.
func tooMany(who string, n, most int) error {
	return session.Refuse(session.TooLarge, "the session would have %d %s; here it has at most %d", n, who, most).
		With(map[string]int{"maxParticipants": most})
}

func add(counts map[performatives.Agent]int, a performatives.Agent, n int) {
	if counts[a] += n; counts[a] == 0 {
		delete(counts, a)
	}
}
