package adversary

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/parley-asp/parley/broker/limits"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/test/testkit"
)

// TestFillingUp: offers of 250 KB in one session after the other, as fast as they are
// taken. Each session is full at some time, then the minute's quota of the flooding principal
// is used up. The deal goes on.
func TestFillingUp(t *testing.T) {
	t.Parallel()
	clock := testkit.StoppedClock(time.Now()) // however slowly the offers come, they use up one minute's quota
	largest, quota := testkit.Amount(limits.DefaultSessionBytes), testkit.Amount(limits.DefaultPrincipalBytes)
	w := newWorld(t, func(o *testkit.Options) {
		o.Now, o.Limits.Rate = clock.Now, 1e6
		o.Limits.SessionBytes, o.Limits.PrincipalBytes = largest, quota
	})
	flood, mate := w.Principal(eve), w.Principal("agent://evil.example/mate")
	terms := fmt.Appendf(nil, `{"x":%q}`, strings.Repeat("x", 250_000))
	// offers fills one session and returns why it could not go on.
	offers := func() (sent int, code session.Code) {
		id := w.Open(flood, mate)
		for n := 0; ; n++ {
			offer := &performatives.ProposeBody{ProposalID: fmt.Sprint("p", n), Type: "x", Subject: fmt.Sprint(n), Terms: fmt.Appendf(nil, `{"n":%d,%s`, n, terms[1:])}
			if code := testkit.Code(t, flood.Submit(id, flood.Envelope(id, offer))); code != "" {
				return sent, code
			}
			sent += len(terms)
		}
	}
	sent, full := 0, 0
	for {
		n, code := offers()
		if sent += n; code != session.TooLarge {
			if code != session.RateLimited {
				t.Errorf("refused as %s", code)
			}
			break
		}
		if full++; n > largest {
			t.Errorf("a session took %d bytes", n)
		}
	}
	if full == 0 || sent > quota {
		t.Errorf("%d bytes were taken, of at most %d, and %d sessions were full", sent, quota, full)
	}
	w.Principal(alpha).Say(w.deal, testkit.Fact("still here"))
	w.Principal(beta).Say(w.deal, testkit.Fact("I too"))
	testkit.Must(t, w.Server.Broker.Command.Healthy(t.Context()))
}
