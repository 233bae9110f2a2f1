package adversary

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/test/testkit"
)

// TestReplay sends again what was said once: in the same session, in another, at another
// broker, later, or as it was delivered (PROTOCOL.md §3).
func TestReplay(t *testing.T) {
	t.Parallel()
	w, other := newWorld(t), newWorld(t)
	// At the other broker the same principals are known by the same keys.
	for _, a := range everyone {
		card := api.Card{Agent: a, Key: w.Principal(a).Signer.Key(), LoginKeys: testkit.LoginKeys(t, w.Principal(a).Signer), Registry: api.Registry{MayDecide: a.IsHuman()}}
		_, err := other.Server.Broker.Parts.Registry.Add(context.Background(), card)
		testkit.Must(t, err)
		other.Principal(a).SetKey(w.Principal(a).Key)
	}
	a, b := w.Principal(alpha), w.Principal(beta)
	second := w.opens(alpha, beta)
	w.Principal(beta).Say(w.deal, testkit.Offer("p2", 1))
	said := a.Envelope(w.deal, testkit.Fact("once"))
	first := testkit.Accepted(t, a.Submit(w.deal, said))
	delivered := w.entries(alpha, w.deal)
	withdrawal := a.Envelope(w.deal, &performatives.RejectBody{ReferenceID: "p1", Code: "unspecified", Reason: "no"})
	testkit.Accepted(t, a.Submit(w.deal, withdrawal))
	elsewhere := strings.ReplaceAll(string(said), string(w.deal), string(second))
	old := a.Envelope(w.deal, testkit.Fact("old"), func(d *performatives.Draft) { d.Timestamp = time.Now().Add(-6 * time.Minute) })
	early := a.Envelope(w.deal, testkit.Fact("early"), func(d *performatives.Draft) { d.Timestamp = time.Now().Add(6 * time.Minute) })

	w.harmless(func() {
		for range 3 {
			again := testkit.Accepted(t, a.Submit(w.deal, said))
			if !again.Duplicate || again.Sequence != first.Sequence || again.Hash != first.Hash {
				t.Errorf("the same bytes are answered with %+v, at first with %+v", again, first)
			}
		}
		for name, c := range map[string]struct {
			by   *testkit.Principal
			at   performatives.SessionID
			data string
			code session.Code
		}{
			"by the counterparty":             {b, w.deal, string(said), session.Unauthorized},
			"by the counterparty, as its own": {b, w.deal, strings.ReplaceAll(string(said), string(alpha), string(beta)), session.SignatureInvalid},
			"in another session":              {a, second, string(said), session.MalformedEnvelope},
			"in another session, moved there": {a, second, elsewhere, session.SignatureInvalid},
			"under another id":                {a, w.deal, strings.ReplaceAll(string(said), string(first.Message), string(testkit.NewID())), session.SignatureInvalid},
			"of another offer":                {a, w.deal, strings.Replace(string(withdrawal), `"p1"`, `"p2"`, 1), session.SignatureInvalid},
			"with a later timestamp":          {a, w.deal, redated(t, said), session.SignatureInvalid},
			"as it was delivered":             {a, w.deal, string(delivered[first.Sequence]), session.MalformedEnvelope},
			"the counterparty's, delivered":   {b, w.deal, string(delivered[0]), session.MalformedEnvelope},
			"too old":                         {a, w.deal, string(old), session.StaleTimestamp},
			"too early":                       {a, w.deal, string(early), session.StaleTimestamp},
			"another message under its id": {a, w.deal, string(a.Envelope(w.deal, testkit.Fact("other"), func(d *performatives.Draft) {
				d.ID = first.Message
			})), session.Duplicate},
		} {
			want(t, name, c.by.Submit(c.at, []byte(c.data)), c.code)
		}
	})
	other.harmless(func() {
		want(t, "at another broker", other.Principal(alpha).Submit(w.deal, said), session.UnknownSession)
		want(t, "in a session of another broker", other.Principal(alpha).Submit(other.deal, said), session.MalformedEnvelope)
		moved := strings.ReplaceAll(string(said), string(w.deal), string(other.deal))
		want(t, "moved into a session of another broker", other.Principal(alpha).Submit(other.deal, []byte(moved)), session.SignatureInvalid)
		want(t, "another broker's entry", other.Principal(alpha).Submit(w.deal, delivered[0]), session.MalformedEnvelope)
	})
	// An invitation needs no session to be there: it says which broker it is for.
	for name, c := range map[string]struct {
		broker performatives.Key
		code   session.Code
	}{
		"an invitation for the other broker": {w.Server.Broker.Command.Key(), session.SignatureInvalid},
		"an invitation for nobody's key":     {w.Principal(eve).Signer.Key(), session.SignatureInvalid},
	} {
		id := testkit.NewSession()
		invites := a.Envelope(id, testkit.Invitation(beta), func(d *performatives.Draft) { d.Broker = c.broker })
		other.harmless(func() {
			want(t, name, other.Principal(alpha).Submit(id, invites), c.code)
			forged := strings.Replace(string(invites), string(c.broker), string(other.Server.Broker.Command.Key()), 1)
			want(t, name+", changed", other.Principal(alpha).Submit(id, []byte(forged)), session.SignatureInvalid)
		})
		if c.broker == w.Server.Broker.Command.Key() {
			testkit.Accepted(t, a.Submit(id, invites))
		}
	}
	plain := testkit.NewSession()
	testkit.Accepted(t, a.Submit(plain, a.Envelope(plain, testkit.Invitation(beta)))) // who names none is accepted
	w.Principal(alpha).Say(w.deal, &performatives.CloseBody{Outcome: "completed"})
	w.harmless(func() {
		if again := testkit.Accepted(t, a.Submit(w.deal, said)); !again.Duplicate {
			t.Error("said once more after the end")
		}
	})
}

func redated(t *testing.T, data []byte) string {
	t.Helper()
	return string(bend(t, data, func(e map[string]any) { e["timestamp"] = time.Now().UTC().Format(time.RFC3339Nano) }))
}
