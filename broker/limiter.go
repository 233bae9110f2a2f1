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

	mu            sync.Mutex
	buckets       map[performatives.Agent]*bucket
	organisations map[performatives.Organisation]*rate.Limiter // their bytes
	sweepAt       int                                          // look for idle buckets when there are so many
}

// A bucket is what one principal uses of its limits.
type bucket struct {
	rate     *rate.Limiter
	bytes    *rate.Limiter
	inFlight int
}

const fewBuckets = 1024 // are kept without a look at which of them are idle

func newLimiter(l Limits, now func() time.Time) *limiter {
	return &limiter{
		limits: l, now: now, buckets: map[performatives.Agent]*bucket{},
		organisations: map[performatives.Organisation]*rate.Limiter{}, sweepAt: fewBuckets,
	}
}

// perMinute is a quota of bytes that is full again after a minute.
func perMinute(quota int) *rate.Limiter {
	quota = min(quota, 1<<50) // more than anybody sends
	return rate.NewLimiter(rate.Limit(float64(quota)/60), quota)
}

// of finds what a principal and its organisation use of their limits.
func (l *limiter) of(a performatives.Agent, now time.Time) (*bucket, *rate.Limiter) {
	b := l.buckets[a]
	if b == nil {
		l.sweep(now)
		b = &bucket{rate: rate.NewLimiter(rate.Limit(l.limits.Rate), l.limits.Burst), bytes: perMinute(l.limits.PrincipalBytes)}
		l.buckets[a] = b
	}
	org := l.organisations[a.Organisation()]
	if org == nil {
		org = perMinute(l.limits.OrganisationBytes)
		l.organisations[a.Organisation()] = org
	}
	return b, org
}

// admit admits one request of so many bytes until it is released, or refuses it.
func (l *limiter) admit(a performatives.Agent, size int) (release func(), err error) {
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	b, org := l.of(a, now)
	if b.inFlight >= l.limits.InFlight {
		return nil, api.RateLimited("inFlight", afterAnAnswer, "%d of your requests wait for their answers, and there are no more than that at a time", b.inFlight)
	}
	if !b.rate.AllowN(now, 1) {
		missing := (1 - b.rate.TokensAt(now)) / l.limits.Rate
		wait := time.Duration(missing*float64(time.Second)) + time.Millisecond
		return nil, api.RateLimited("rate", wait, "no more than %g acts and calls a second, or %d at once after a pause", l.limits.Rate, l.limits.Burst)
	}
	if err := refuseBytes(b.bytes, now, size, "bytes", "you"); err != nil {
		return nil, err
	}
	if err := refuseBytes(org, now, size, "organisationBytes", "the principals of your organisation together"); err != nil {
		return nil, err
	}
	charge(now, size, b.bytes, org)
	b.inFlight++
	return sync.OnceFunc(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		b.inFlight--
	}), nil
}

// refuseBytes refuses a request for which a quota of bytes has no room now.
func refuseBytes(quota *rate.Limiter, now time.Time, size int, limit, whose string) error {
	left := quota.TokensAt(now)
	missing := float64(min(size, quota.Burst())) - left
	if missing <= 0 {
		return nil
	}
	wait := time.Duration(missing/float64(quota.Limit())*float64(time.Second)) + time.Millisecond
	return api.BytesLimited(limit, wait, quota.Burst(), max(0, int(left)), "%s may send %d bytes a minute, and this request has %d", whose, quota.Burst(), size)
}

// charge takes bytes from quotas: at most a minute's at once, and at most a minute's
// are owed.
func charge(now time.Time, size int, quotas ...*rate.Limiter) {
	for _, quota := range quotas {
		most := quota.Burst()
		quota.ReserveN(now, min(size, most, max(0, most+int(quota.TokensAt(now)))))
	}
}

// freeOfCopy is what a copy of an act is free of charge, so that ordinary acts cost the
// same in sessions of any size.
const freeOfCopy = 4 << 10

// chargeCopies charges for the inbox copies of an act that was accepted.
func (l *limiter) chargeCopies(a performatives.Agent, size, copies int) {
	if size <= freeOfCopy {
		return
	}
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	b, org := l.of(a, now)
	charge(now, copies*(size-freeOfCopy), b.bytes, org)
}

// sweep deletes the buckets that are as good as new: nothing in flight, and full again.
func (l *limiter) sweep(now time.Time) {
	if len(l.buckets) < l.sweepAt {
		return
	}
	maps.DeleteFunc(l.buckets, func(_ performatives.Agent, b *bucket) bool {
		return b.inFlight == 0 && b.rate.TokensAt(now) >= float64(l.limits.Burst) && isFull(b.bytes, now)
	})
	maps.DeleteFunc(l.organisations, func(_ performatives.Organisation, quota *rate.Limiter) bool { return isFull(quota, now) })
	l.sweepAt = max(fewBuckets, 2*len(l.buckets))
}

func isFull(quota *rate.Limiter, now time.Time) bool {
	return quota.TokensAt(now) >= float64(quota.Burst())
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
