package ratelimit

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"golang.org/x/time/rate"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

const (
	alpha = performatives.Agent("agent://acme.com/alpha")
	beta  = performatives.Agent("agent://widgets.co/beta")
)

// A manual clock stands still until it is told that time passes.
type manual struct{ at time.Time }

func (m *manual) now() time.Time         { return m.at }
func (m *manual) passes(d time.Duration) { m.at = m.at.Add(d) }

// limited is a limiter of these limits; zero fields are none.
func limited(l Limits, now func() time.Time) *Limiter {
	l.Rate = cmp.Or(l.Rate, float64(rate.Inf))
	for _, n := range []*int{&l.Burst, &l.InFlight, &l.PrincipalBytes, &l.OrganisationBytes} {
		*n = cmp.Or(*n, math.MaxInt)
	}
	return New(l, now)
}

// The limiter lets in what the rate allows, tells when to come again, and is right.
func TestRate(t *testing.T) {
	t.Parallel()
	var clock manual
	l := limited(Limits{Rate: 10, Burst: 3}, clock.now)
	asks := func(a performatives.Agent) time.Duration {
		leave, err := l.Admit(a, 100)
		if err == nil {
			leave()
			return 0
		}
		return time.Duration(limitedBy(t, err, "rate")) * time.Millisecond
	}
	for range 3 {
		if err := l.Check(alpha); err != nil || asks(alpha) != 0 {
			t.Errorf("refused within the burst: %v", err)
		}
	}
	limitedBy(t, l.Check(alpha), "rate")
	again := asks(alpha)
	if again <= 0 || again > 101*time.Millisecond {
		t.Errorf("retry after %s, at 10 a second", again)
	}
	if asks(beta) != 0 {
		t.Error("another's rate is not its own")
	}
	clock.passes(again)
	if asks(alpha) != 0 {
		t.Error("refused when it was told to come")
	}
	if asks(alpha) == 0 {
		t.Error("there was room for one")
	}
}

// The limiter bounds what waits for its answer.
func TestInFlight(t *testing.T) {
	t.Parallel()
	l := limited(Limits{InFlight: 2}, time.Now)
	first, err := l.Admit(alpha, 100)
	must(t, err)
	if _, err := l.Admit(alpha, 100); err != nil {
		t.Error(err)
	}
	_, err = l.Admit(alpha, 100)
	limitedBy(t, err, "inFlight")
	if _, err := l.Admit(beta, 100); err != nil {
		t.Error(err)
	}
	first()
	first() // is over once
	if _, err := l.Admit(alpha, 100); err != nil {
		t.Error(err)
	}
	_, err = l.Admit(alpha, 100)
	limitedBy(t, err, "inFlight")
}

// The limiter forgets who asked nothing for a while, and nobody else.
func TestForgets(t *testing.T) {
	t.Parallel()
	var clock manual
	l := limited(Limits{Rate: 1000, Burst: 1, InFlight: 1}, clock.now)
	if _, err := l.Admit(alpha, 100); err != nil { // and does not leave
		t.Fatal(err)
	}
	for i := range 100_000 {
		leave, err := l.Admit(performatives.Agent(fmt.Sprint("agent://acme.com/", i)), 100)
		must(t, err)
		leave()
		if i%100 == 0 {
			clock.passes(time.Millisecond) // 100,000 principals a second
		}
	}
	if n := len(l.buckets) + len(l.organisations); n > 2048 {
		t.Errorf("it knows %d", n)
	}
	_, err := l.Admit(alpha, 100)
	limitedBy(t, err, "inFlight")
}

// No limit is none.
func TestWithoutLimits(t *testing.T) {
	t.Parallel()
	l := limited(Limits{}, time.Now)
	for range 100_000 {
		if _, err := l.Admit(alpha, 100); err != nil {
			t.Fatal(err)
		}
	}
}

// A quota of bytes refills within a minute, says what is left of it and when there is
// room, and is one principal's; that of an organisation is for its principals together.
func TestByteQuotas(t *testing.T) {
	t.Parallel()
	const kib = 1 << 10
	var clock manual
	l := limited(Limits{PrincipalBytes: 600 * kib, OrganisationBytes: 1000 * kib}, clock.now)
	other := performatives.Agent("agent://acme.com/other")
	send := func(a performatives.Agent, size int) error {
		release, err := l.Admit(a, size)
		if err == nil {
			release()
		}
		return err
	}
	must(t, send(alpha, 500*kib))
	err := send(alpha, 200*kib)
	if left := bytesLeft(t, err, session.RateLimited, 600*kib); left != 100*kib {
		t.Errorf("%d bytes are left", left)
	}
	again := time.Duration(limitedBy(t, err, "bytes")) * time.Millisecond
	must(t, send(alpha, 90*kib)) // a smaller one has room
	must(t, send(other, 390*kib))
	err = send(other, 100*kib)
	bytesLeft(t, err, session.RateLimited, 1000*kib)
	limitedBy(t, err, "organisationBytes")
	must(t, send(beta, 600*kib))
	clock.passes(again + 10*time.Second)
	must(t, send(alpha, 200*kib))
	// Small copies are free of charge, large ones are not.
	clock.passes(time.Minute)
	l.ChargeCopies(alpha, 4*kib, 1000)
	must(t, send(alpha, 0))
	l.ChargeCopies(alpha, 250*kib, 1000)
	l.ChargeCopies(alpha, 250*kib, 1000)
	l.ChargeCopies(alpha, 250*kib, 1000)
	wait := time.Duration(limitedBy(t, send(alpha, kib), "bytes")) * time.Millisecond
	if wait > 2*time.Minute {
		t.Errorf("it owes %s", wait)
	}
	clock.passes(wait)
	must(t, send(alpha, kib))
}

// must insists that nothing failed.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// limitedBy insists on a rate_limited of a limit and returns when to ask again.
func limitedBy(t *testing.T, err error, limit string) (retryAfterMs int64) {
	t.Helper()
	refusal, ok := errors.AsType[*session.Refusal](err)
	if !ok || refusal.Code != session.RateLimited {
		t.Fatalf("%v, want rate_limited", err)
	}
	d, ok := refusal.Details.(api.Limited)
	if !ok || d.Limit != limit || d.RetryAfter <= 0 {
		t.Errorf("details %+v, want limit %s and when to ask again", d, limit)
	}
	return d.RetryAfter
}

// bytesLeft insists that a refusal tells a quota and what is left of it.
func bytesLeft(t *testing.T, err error, code session.Code, most int) (left int) {
	t.Helper()
	refusal, ok := errors.AsType[*session.Refusal](err)
	if !ok || refusal.Code != code {
		t.Fatalf("%v, want %s", err, code)
	}
	raw, err := json.Marshal(refusal.Details)
	must(t, err)
	var d struct{ MaxBytes, BytesLeft *int }
	must(t, json.Unmarshal(raw, &d))
	if d.MaxBytes == nil || *d.MaxBytes != most || d.BytesLeft == nil {
		t.Fatalf("details %s, want maxBytes %d and bytesLeft", raw, most)
	}
	return *d.BytesLeft
}
