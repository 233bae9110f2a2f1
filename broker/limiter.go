package broker

import (
	"errors"
	"maps"
	"sync"
	"time"

	"go.uber.org/zap"
	"golang.org/x/time/rate"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// A limiter admits the requests of each principal, as fast and as many at a time as
// the limits allow. It comes before everything else: who exceeds its limits is refused
// before anything of the request is read (PROTOCOL.md §3, order of checks).
type limiter struct {
	limits Limits
	now    func() time.Time

	mu      sync.Mutex
	buckets map[performatives.Agent]*bucket
	sweepAt int // look for idle buckets when there are so many
}

// A bucket is what one principal uses of its limits.
type bucket struct {
	rate     *rate.Limiter
	inFlight int
}

const fewBuckets = 1024 // are kept without a look at which of them are idle

func newLimiter(l Limits, now func() time.Time) *limiter {
	return &limiter{limits: l, now: now, buckets: map[performatives.Agent]*bucket{}, sweepAt: fewBuckets}
}

// admit admits one request until it is released, or refuses it.
func (l *limiter) admit(a performatives.Agent) (release func(), err error) {
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.buckets[a]
	if b == nil {
		l.sweep(now)
		b = &bucket{rate: rate.NewLimiter(rate.Limit(l.limits.Rate), l.limits.Burst)}
		l.buckets[a] = b
	}
	if b.inFlight >= l.limits.InFlight {
		return nil, api.RateLimited("inFlight", afterAnAnswer, "%d of your requests wait for their answers, and there are no more than that at a time", b.inFlight)
	}
	if !b.rate.AllowN(now, 1) {
		missing := (1 - b.rate.TokensAt(now)) / l.limits.Rate
		wait := time.Duration(missing*float64(time.Second)) + time.Millisecond
		return nil, api.RateLimited("rate", wait, "no more than %g acts and calls a second, or %d at once after a pause", l.limits.Rate, l.limits.Burst)
	}
	b.inFlight++
	return sync.OnceFunc(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		b.inFlight--
	}), nil
}

// sweep deletes the buckets that are as good as new: nothing in flight, and full again.
func (l *limiter) sweep(now time.Time) {
	if len(l.buckets) < l.sweepAt {
		return
	}
	maps.DeleteFunc(l.buckets, func(_ performatives.Agent, b *bucket) bool {
		return b.inFlight == 0 && b.rate.TokensAt(now) >= float64(l.limits.Burst)
	})
	l.sweepAt = max(fewBuckets, 2*len(l.buckets))
}

// limitedEvery is how often monitors hear that a principal exceeds its limits: who does
// so may ask thousands of times a second.
const limitedEvery = time.Second

// noSession stands for the session in an event that is about none.
const noSession = performatives.SessionID("-")

// limitEvents are when monitors last heard of whom, and how often it has happened since.
type limitEvents struct {
	mu      sync.Mutex
	told    map[performatives.Agent]limitEvent
	sweepAt int // look for old ones when there are so many
}

type limitEvent struct {
	at   time.Time
	more int
}

// tellLimited tells monitors and the log that a principal exceeds its limits.
func (b *Broker) tellLimited(a performatives.Agent, id performatives.SessionID, err error) {
	var refusal *session.Refusal
	if !errors.As(err, &refusal) {
		return
	}
	now := b.Now()
	n := b.limitEvents.count(a, now)
	if n == 0 {
		return
	}
	b.Log.Debug("a principal exceeds its limits", zap.String("agent", string(a)), zap.Int("times", n), zap.Error(err))
	b.tell(id, "limited", map[string]any{
		"sessionId": id, "sender": a, "code": refusal.Code, "times": n, "details": refusal.Details, "at": now.UTC().Format(time.RFC3339Nano),
	})
}

// count notes a refusal and returns how many there are to tell of; 0 is none yet.
func (e *limitEvents) count(a performatives.Agent, now time.Time) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	last := e.told[a]
	if now.Sub(last.at) < limitedEvery {
		last.more++
		e.told[a] = last
		return 0
	}
	if len(e.told) >= e.sweepAt {
		maps.DeleteFunc(e.told, func(_ performatives.Agent, of limitEvent) bool { return now.Sub(of.at) >= limitedEvery })
		e.sweepAt = max(fewBuckets, 2*len(e.told))
	}
	if e.told == nil {
		e.told = map[performatives.Agent]limitEvent{}
	}
	e.told[a] = limitEvent{at: now}
	return last.more + 1
}
