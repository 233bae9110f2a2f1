// Package ratelimit bounds how many requests and bytes each principal may send, and its organisation.
package ratelimit

import (
	"maps"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
)

// A Limiter admits the requests of each principal, as fast and as many at a time as
// the limits allow. It comes before everything else: who exceeds its limits is refused
// before anything of the request is read (PROTOCOL.md §3, order of checks).
type Limiter struct {
	limits Limits
	now    func() time.Time

	mu            sync.Mutex
	buckets       map[performatives.Agent]*bucket
	organisations map[performatives.Organisation]*rate.Limiter // their bytes
	sweepAt       int                                          // look for idle buckets when there are so many
}

// Limits are those of one principal, and OrganisationBytes those of its organisation.
type Limits struct {
	Rate     float64 // requests a second
	Burst    int     // of them at once after a pause
	InFlight int     // of them that wait for their answer

	PrincipalBytes    int // that it sends in a minute
	OrganisationBytes int // that its organisation sends in a minute
}

// afterAnAnswer is when to ask again, where nobody knows when there will be room.
const afterAnAnswer = 50 * time.Millisecond

// A bucket is what one principal uses of its limits.
type bucket struct {
	rate     *rate.Limiter
	bytes    *rate.Limiter
	inFlight int
}

const fewBuckets = 1024 // are kept without a look at which of them are idle

// New makes a limiter by a clock.
func New(l Limits, now func() time.Time) *Limiter {
	return &Limiter{
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
func (l *Limiter) of(a performatives.Agent, now time.Time) (*bucket, *rate.Limiter) {
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

// Admit admits one request of so many bytes until it is released, or refuses it.
func (l *Limiter) Admit(a performatives.Agent, size int) (release func(), err error) {
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	b, org := l.of(a, now)
	if err := l.refuse(b, now); err != nil {
		return nil, err
	}
	b.rate.AllowN(now, 1)
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

// Check refuses a principal's request that Admit would refuse now, whatever its size. It charges
// nothing.
func (l *Limiter) Check(a performatives.Agent) error {
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	b, _ := l.of(a, now)
	return l.refuse(b, now)
}

// refuse refuses one request more than the limits allow now.
func (l *Limiter) refuse(b *bucket, now time.Time) error {
	if b.inFlight >= l.limits.InFlight {
		return api.RateLimited("inFlight", afterAnAnswer, "%d of your requests wait for their answers, and there are no more than that at a time", b.inFlight)
	}
	if tokens := b.rate.TokensAt(now); tokens < 1 && b.rate.Limit() != rate.Inf {
		wait := time.Duration((1-tokens)/l.limits.Rate*float64(time.Second)) + time.Millisecond
		return api.RateLimited("rate", wait, "no more than %g acts and calls a second, or %d at once after a pause", l.limits.Rate, l.limits.Burst)
	}
	return nil
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

// ChargeCopies charges for the inbox copies of an act that was accepted.
func (l *Limiter) ChargeCopies(a performatives.Agent, size, copies int) {
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
func (l *Limiter) sweep(now time.Time) {
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
