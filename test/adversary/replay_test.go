package adversary

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// TestReplay sends again what was said once: in the same session, in another, at another
// broker, later, or as it was delivered (PROTOCOL.md §3).
func TestReplay(t *testing.T) {
	t.Parallel()
	w, other := newWorld(t), newWorld(t)
	// At the other broker the same principals are known by the same keys.
	for a, p := range w.people {
		card := api.Card{Agent: a, Key: p.signer.Key(), Registry: api.Registry{MayDecide: a.IsHuman()}}
		_, err := other.broker.AddAgent(context.Background(), card)
		must(t, err)
		other.people[a] = other.person(a, p.pair)
	}
	a, b := w.people[alpha], w.people[beta]
	second := w.opens(alpha, beta)
	w.says(beta, w.deal, offer("p2", 1))
	said := a.envelope(w.deal, fact("once"))
	first := accepted(t, a.submits(w.deal, said))
	delivered := w.entries(alpha, w.deal)
	withdrawal := a.envelope(w.deal, &performatives.RejectBody{ReferenceID: "p1", Code: "unspecified", Reason: "no"})
	accepted(t, a.submits(w.deal, withdrawal))
	elsewhere := strings.ReplaceAll(string(said), string(w.deal), string(second))
	old := a.envelope(w.deal, fact("old"), func(d *performatives.Draft) { d.Timestamp = time.Now().Add(-6 * time.Minute) })
	early := a.envelope(w.deal, fact("early"), func(d *performatives.Draft) { d.Timestamp = time.Now().Add(6 * time.Minute) })

	w.harmless(func() {
		for range 3 {
			again := accepted(t, a.submits(w.deal, said))
			if !again.Duplicate || again.Sequence != first.Sequence || again.Hash != first.Hash {
				t.Errorf("the same bytes are answered with %+v, at first with %+v", again, first)
			}
		}
		for name, c := range map[string]struct {
			by   *person
			at   performatives.SessionID
			data string
			code session.Code
		}{
			"by the counterparty":             {b, w.deal, string(said), session.Unauthorized},
			"by the counterparty, as its own": {b, w.deal, strings.ReplaceAll(string(said), string(alpha), string(beta)), session.SignatureInvalid},
			"in another session":              {a, second, string(said), session.MalformedEnvelope},
			"in another session, moved there": {a, second, elsewhere, session.SignatureInvalid},
			"under another id":                {a, w.deal, strings.ReplaceAll(string(said), string(first.Message), newID()), session.SignatureInvalid},
			"of another offer":                {a, w.deal, strings.Replace(string(withdrawal), `"p1"`, `"p2"`, 1), session.SignatureInvalid},
			"with a later timestamp":          {a, w.deal, redated(t, said), session.SignatureInvalid},
			"as it was delivered":             {a, w.deal, string(delivered[first.Sequence]), session.MalformedEnvelope},
			"the counterparty's, delivered":   {b, w.deal, string(delivered[0]), session.MalformedEnvelope},
			"too old":                         {a, w.deal, string(old), session.StaleTimestamp},
			"too early":                       {a, w.deal, string(early), session.StaleTimestamp},
			"another message under its id": {a, w.deal, string(a.envelope(w.deal, fact("other"), func(d *performatives.Draft) {
				d.ID = first.Message
			})), session.Duplicate},
		} {
			want(t, name, c.by.submits(c.at, []byte(c.data)), c.code)
		}
	})
	other.harmless(func() {
		want(t, "at another broker", other.people[alpha].submits(w.deal, said), session.UnknownSession)
		want(t, "in a session of another broker", other.people[alpha].submits(other.deal, said), session.MalformedEnvelope)
		moved := strings.ReplaceAll(string(said), string(w.deal), string(other.deal))
		want(t, "moved into a session of another broker", other.people[alpha].submits(other.deal, []byte(moved)), session.SignatureInvalid)
		want(t, "another broker's entry", other.people[alpha].submits(w.deal, delivered[0]), session.MalformedEnvelope)
	})
	// An invitation needs no session to be there: it says which broker it is for.
	for name, c := range map[string]struct {
		broker performatives.Key
		code   session.Code
	}{
		"an invitation for the other broker": {w.broker.Key(), session.SignatureInvalid},
		"an invitation for nobody's key":     {w.people[eve].signer.Key(), session.SignatureInvalid},
	} {
		id := newSession()
		invites := a.envelope(id, invitation(beta), func(d *performatives.Draft) { d.Broker = c.broker })
		other.harmless(func() {
			want(t, name, other.people[alpha].submits(id, invites), c.code)
			forged := strings.Replace(string(invites), string(c.broker), string(other.broker.Key()), 1)
			want(t, name+", changed", other.people[alpha].submits(id, []byte(forged)), session.SignatureInvalid)
		})
		if c.broker == w.broker.Key() {
			accepted(t, a.submits(id, invites))
		}
	}
	plain := newSession()
	accepted(t, a.submits(plain, a.envelope(plain, invitation(beta)))) // who says nothing is heard
	w.says(alpha, w.deal, &performatives.CloseBody{Outcome: "completed"})
	w.harmless(func() {
		if again := accepted(t, a.submits(w.deal, said)); !again.Duplicate {
			t.Error("said once more after the end")
		}
	})
}

func redated(t *testing.T, data []byte) string {
	t.Helper()
	return string(bend(t, data, func(e map[string]any) { e["timestamp"] = time.Now().UTC().Format(time.RFC3339Nano) }))
}
