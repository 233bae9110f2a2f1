package limits

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

const (
	alpha = performatives.Agent("agent://acme.com/alpha")
	other = performatives.Agent("agent://acme.com/other")
	beta  = performatives.Agent("agent://widgets.co/beta")
)

// A manual clock stands still until it is told that time passes.
type manual struct{ at time.Time }

func (m *manual) now() time.Time         { return m.at }
func (m *manual) passes(d time.Duration) { m.at = m.at.Add(d) }

// none are limits of nothing.
var none = Limits{
	Rate: -1, Burst: -1, InFlight: -1, PrincipalBytes: -1, OrganisationBytes: -1,
	BytesOut: -1, CPU: -1, Items: -1, Buffered: -1, Streams: -1, Organisation: 2,
}

// limited opens accounts that are limited in what change sets.
func limited(now func() time.Time, change func(*Limits)) *Accounts {
	l := none
	change(&l)
	return NewAccounts(l.WithDefaults(), now)
}

// The rate lets in what it allows, tells when to come again, and is right.
func TestRate(t *testing.T) {
	t.Parallel()
	var clock manual
	s := limited(clock.now, func(l *Limits) { l.Rate, l.Burst = 10, 3 })
	asks := func(a performatives.Agent, requests int) time.Duration {
		if err := s.Of(a).Admit(requests, 100); err != nil {
			return limitedBy(t, err, "rate")
		}
		return 0
	}
	for range 3 {
		if asks(alpha, 1) != 0 {
			t.Error("refused within the burst")
		}
	}
	again := asks(alpha, 1)
	if again <= 0 || again > 101*time.Millisecond {
		t.Errorf("retry after %s, at 10 a second", again)
	}
	if asks(alpha, 0) != 0 {
		t.Error("refused without a request, and owes nothing")
	}
	if asks(beta, 3) != 0 {
		t.Error("another's rate is not its own")
	}
	clock.passes(again)
	if asks(alpha, 1) != 0 {
		t.Error("refused when it was told to come")
	}
	if asks(alpha, 1) == 0 {
		t.Error("there was room for one")
	}
}

// What is held is bounded for each principal and each organisation, and given back once.
func TestHeld(t *testing.T) {
	t.Parallel()
	for unit, limit := range map[Unit]string{InFlight: "inFlight", Buffered: "buffered", Streams: "streams"} {
		s := limited(time.Now, func(l *Limits) { l.InFlight, l.Buffered, l.Streams = 2, 2, 2 })
		hold := func(a performatives.Agent) (func(), error) { return s.Of(a).Hold(unit, 1) }
		first, err := hold(alpha)
		must(t, err)
		_, err = hold(alpha)
		must(t, err)
		_, err = hold(alpha)
		limitedBy(t, err, limit)
		_, err = hold(beta)
		must(t, err)
		first()
		first() // is over once
		_, err = hold(alpha)
		must(t, err)
		_, err = hold(alpha)
		limitedBy(t, err, limit)
		if unit == InFlight {
			continue // an organisation has as many as its principals
		}
		last, err := hold(other)
		must(t, err)
		_, err = hold(other)
		must(t, err)
		_, err = hold("agent://acme.com/third")
		limitedBy(t, err, "organisation"+strings.ToUpper(limit[:1])+limit[1:])
		last()
		_, err = hold("agent://acme.com/third")
		must(t, err)
	}
}

// What is there already is kept beyond the quota, and then there is room for nothing.
func TestKept(t *testing.T) {
	t.Parallel()
	s := limited(time.Now, func(l *Limits) { l.Buffered = 100 })
	_, err := s.Of(alpha).Hold(Buffered, 0)
	must(t, err)
	release := s.Of(alpha).Keep(Buffered, 150)
	_, err = s.Of(alpha).Hold(Buffered, 0)
	limitedBy(t, err, "buffered")
	release()
	_, err = s.Of(alpha).Hold(Buffered, 100)
	must(t, err)
}

// What is known only afterwards may be owed, at most for a minute; whoever owes it is refused
// whatever it asks, until it owes nothing, and nobody else is.
func TestOwed(t *testing.T) {
	t.Parallel()
	for unit, limit := range map[Unit]string{BytesOut: "bytesOut", CPU: "cpu", Items: "items"} {
		var clock manual
		s := limited(clock.now, func(l *Limits) { l.BytesOut, l.CPU, l.Items = 60, time.Minute, 60 })
		s.Of(alpha).Spend(unit, 60)
		must(t, s.Of(alpha).Admit(1, 100))
		s.Of(alpha).Spend(unit, 30)
		for _, requests := range []int{0, 1} {
			if again := limitedBy(t, s.Of(alpha).Admit(requests, 0), limit); again < 30*time.Second || again > 31*time.Second {
				t.Errorf("%s: come again after %s, with half a minute's owed", limit, again)
			}
		}
		if err := s.Of(alpha).Admit(0, 0); unit == BytesOut && !strings.HasSuffix(err.Error(), ", and 30 more were used") {
			t.Errorf("who owes bytes is told %q", err)
		}
		must(t, s.Of(beta).Admit(1, 0))
		must(t, s.Of(other).Admit(1, 0))
		s.Of(alpha).Spend(unit, 1e9)
		again := limitedBy(t, s.Of(alpha).Admit(0, 0), limit)
		if again > 61*time.Second {
			t.Errorf("%s: it owes %s", limit, again)
		}
		limitedBy(t, s.Of(other).Admit(0, 0), "organisation"+strings.ToUpper(limit[:1])+limit[1:])
		must(t, s.Of(beta).Admit(1, 0))
		clock.passes(2 * time.Minute)
		must(t, s.Of(alpha).Admit(1, 0))
		must(t, s.Of(other).Admit(1, 0))
	}
}

// What goes from one organisation to another is bounded, and nothing else of either.
func TestPair(t *testing.T) {
	t.Parallel()
	var clock manual
	s := limited(clock.now, func(l *Limits) { l.Items = 60 })
	there, back := s.Between("acme.com", "widgets.co"), s.Between("widgets.co", "acme.com")
	there.Spend(Items, 90)
	if again := limitedBy(t, there.Admit(0, 0), "pairItems"); again < 30*time.Second || again > 31*time.Second {
		t.Errorf("come again after %s, with half a minute's owed", again)
	}
	must(t, back.Admit(0, 0))
	must(t, s.Between("acme.com", "third.example").Admit(0, 0))
	must(t, s.Of(alpha).Admit(1, 0))
	clock.passes(31 * time.Second)
	must(t, there.Admit(0, 0))
}

// Accounts of those who asked nothing for a while are closed, and no others; of addresses there
// are few, however many ask.
func TestForgets(t *testing.T) {
	t.Parallel()
	var clock manual
	s := limited(clock.now, func(l *Limits) { l.Rate, l.Burst, l.InFlight = 1000, 1, 1 })
	release, err := s.Of(alpha).Hold(InFlight, 1)
	must(t, err)
	for i := range 100_000 {
		must(t, s.Of(performatives.Agent(fmt.Sprintf("agent://org%d.com/%d", i%5000, i))).Admit(1, 100))
		if i%100 == 0 {
			clock.passes(time.Millisecond) // 100,000 principals a second
		}
	}
	if n := len(s.open); n > 20_000 {
		t.Errorf("%d accounts are open", n)
	}
	_, err = s.Of(alpha).Hold(InFlight, 1)
	limitedBy(t, err, "inFlight")
	release()
	s.Between("acme.com", "widgets.co").Spend(Requests, 1)
	clock.passes(time.Second)
	for i := range 3 * maxAddresses {
		if err := s.At(fmt.Sprint("2001:db8::", i)).Admit(4*AddressRate, 0); err != nil {
			t.Fatalf("another address is refused: %v", err)
		}
		if s.addresses > maxAddresses {
			t.Fatalf("%d addresses are remembered", s.addresses)
		}
	}
	s.mu.Lock()
	s.sweepAt = 0
	s.sweep(clock.at.Add(time.Hour), false)
	s.sweep(clock.at.Add(time.Hour), false) // organisations, once their principals are
	s.mu.Unlock()
	if len(s.open)+s.addresses > 0 {
		t.Errorf("an hour later %d accounts are open, %d of addresses", len(s.open), s.addresses)
	}
}

// An address that asks too often is refused, and others are not.
func TestAddress(t *testing.T) {
	t.Parallel()
	var clock manual
	s := limited(clock.now, func(*Limits) {})
	must(t, s.At("192.0.2.1").Admit(4*AddressRate, 0))
	limitedBy(t, s.At("192.0.2.1").Admit(1, 0), "addressRate")
	must(t, s.At("192.0.2.2").Admit(1, 0))
	clock.passes(time.Second)
	must(t, s.At("192.0.2.1").Admit(AddressRate, 0))
	limitedBy(t, s.At("192.0.2.1").Admit(1, 0), "addressRate")
}

// No limit is none, and neither has nobody's account.
func TestWithoutLimits(t *testing.T) {
	t.Parallel()
	for _, mine := range []Account{limited(time.Now, func(*Limits) {}).Of(alpha), {}, (*Accounts)(nil).Of(alpha), (*Accounts)(nil).At("192.0.2.1"), NewAccounts(Limits{}.WithDefaults(), time.Now).Of("")} {
		for u := range all {
			for range 20_000 {
				_, err := mine.Hold(u, 1e9)
				must(t, err)
				mine.Spend(u, 1e12)
				must(t, mine.Admit(1, 1e9))
			}
		}
	}
}

// One principal that does nothing but use all slots of the machine owes nothing.
func TestOneAlone(t *testing.T) {
	t.Parallel()
	var clock manual
	s := NewAccounts(Limits{}.WithDefaults(), clock.now)
	slots := int32(s.cores) + 16
	for range 10_000 { // a tenth of a second each
		for range slots {
			s.work(alpha, 100*time.Millisecond, slots)
		}
		clock.passes(100 * time.Millisecond)
		must(t, s.Of(alpha).Admit(1, 0))
	}
	for range 10_000 {
		for range 4 * slots {
			s.work(alpha, 100*time.Millisecond, slots)
		}
	}
	limitedBy(t, s.Of(alpha).Admit(0, 0), "cpu")
}

// A quota of bytes refills within a minute, says what is left of it and when there is
// room, and is one principal's; that of an organisation is for its principals together.
func TestByteQuotas(t *testing.T) {
	t.Parallel()
	const kib = 1 << 10
	var clock manual
	s := limited(clock.now, func(l *Limits) { l.PrincipalBytes, l.OrganisationBytes = 600*kib, 1000*kib })
	send := func(a performatives.Agent, size int) error { return s.Of(a).Admit(1, size) }
	must(t, send(alpha, 500*kib))
	err := send(alpha, 200*kib)
	if left := bytesLeft(t, err, session.RateLimited, 600*kib); left != 100*kib {
		t.Errorf("%d bytes are left", left)
	}
	again := limitedBy(t, err, "bytes")
	must(t, send(alpha, 90*kib)) // a smaller one has room
	must(t, send(other, 390*kib))
	err = send(other, 100*kib)
	bytesLeft(t, err, session.RateLimited, 1000*kib)
	limitedBy(t, err, "organisationBytes")
	must(t, send(beta, 600*kib))
	clock.passes(again + 10*time.Second)
	must(t, send(alpha, 200*kib))
	clock.passes(time.Minute)
	for range 3 { // copies of what was sent
		s.Of(alpha).Spend(BytesIn, 246_000*kib)
	}
	wait := limitedBy(t, send(alpha, kib), "bytes")
	if wait > 2*time.Minute {
		t.Errorf("it owes %s", wait)
	}
	clock.passes(wait)
	must(t, send(alpha, kib))
}

// BenchmarkAccount is what accounting costs an act: of its request, its slot, its copies and its answer.
func BenchmarkAccount(b *testing.B) {
	s := NewAccounts(Limits{Rate: -1, PrincipalBytes: -1, OrganisationBytes: -1}.WithDefaults(), time.Now)
	slots := s.Scheduler(2, 0)
	agents := make([]performatives.Agent, 1000)
	for i := range agents {
		agents[i] = performatives.Agent(fmt.Sprintf("agent://org%d.com/procurement/%d", i%100, i))
	}
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		a := agents[n%len(agents)]
		n++
		mine := s.Of(a)
		release, err := mine.Hold(InFlight, 1)
		if err != nil {
			b.Fatal(err)
		}
		if err := mine.Admit(1, 900); err != nil {
			b.Fatal(err)
		}
		slots.Enter(a).Release()
		release()
		s.Between(a.Organisation(), "widgets.co").Spend(Items, 1)
		mine.Spend(Items, 1)
		mine.Spend(BytesIn, 0)
		mine.Spend(BytesOut, 400)
	}
}

// must insists that nothing failed.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// limitedBy insists on a rate_limited of a limit and returns when to ask again.
func limitedBy(t *testing.T, err error, limit string) (again time.Duration) {
	t.Helper()
	refusal, ok := errors.AsType[*session.Refusal](err)
	if !ok || refusal.Code != session.RateLimited {
		t.Fatalf("%v, want rate_limited", err)
	}
	d, ok := refusal.Details.(api.Limited)
	if !ok || d.Limit != limit || d.RetryAfter <= 0 {
		t.Errorf("details %+v, want limit %s and when to ask again", d, limit)
	}
	return time.Duration(d.RetryAfter) * time.Millisecond
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

// Who exceeded a limit is kept, the newest last; of many, as many as are bounded.
func TestHits(t *testing.T) {
	t.Parallel()
	now := time.Unix(1, 0)
	s := NewAccounts(Limits{}.WithDefaults(), func() time.Time { return now })
	exceed := func(who performatives.Agent) {
		for s.Of(who).Admit(1, 1<<40) == nil {
		}
	}
	for n := range mostHits + 5 {
		exceed(performatives.Agent(fmt.Sprintf("agent://a%d.example/x", n)))
	}
	now = now.Add(time.Millisecond)
	exceed("agent://a50.example/x")
	hits := s.Hits()
	if len(hits) != mostHits || hits[0].Who != "agent://a50.example/x" || hits[0].Limit != "bytes" || hits[0].Times != 2 || !hits[0].At.Equal(now) {
		t.Errorf("%d hits, the first is %+v", len(hits), hits[0])
	}
	if last := hits[len(hits)-1]; last.Who != "agent://a5.example/x" || last.Times != 1 {
		t.Errorf("the oldest is %+v", last)
	}
	if (*Accounts)(nil).Hits() != nil {
		t.Error("nobody's accounts have hits")
	}
}
