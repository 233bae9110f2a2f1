package broker_test

import (
	"bytes"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/client/audit"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/session/modes"
	"github.com/parley-asp/parley/session/transcript"
	"github.com/parley-asp/parley/test/testkit"
)

// GATEWAYS.md G3: a standby is told by its inbox once a turn has waited, also if the broker was
// down meanwhile, picks it up and answers it on its principal's behalf.
func TestStandby(t *testing.T) {
	t.Parallel()
	for _, restart := range []bool{false, true} {
		t.Run(fmt.Sprint("restart ", restart), func(t *testing.T) {
			t.Parallel()
			w := testkit.NewWorld(t, testkit.Options{})
			delta := w.Principal("agent://acme.com/delta", func(c *api.Card) { c.Kind = performatives.KindSystem })
			alpha := w.Principal("agent://acme.com/alpha", func(c *api.Card) { c.Standby = delta.Agent })
			beta := w.Principal("agent://widgets.co/beta")
			id := testkit.NewSession()
			alpha.Say(id, &performatives.ProposeBody{
				ProposalID: "inv", Type: performatives.SessionInvitation, Subject: "s", Terms: fmt.Appendf(nil, `{"participants":[%q],"policy":{"parkedMs":500}}`, beta.Agent),
			})
			beta.Say(id, &performatives.AcceptBody{ReferenceID: "inv"})
			beta.Say(id, testkit.Offer("p1", 5))
			if restart {
				w.Down()
				w.Up()
			}
			if entry := delta.Read(1)[0]; !bytes.Contains(entry, []byte(`"p1"`)) {
				t.Errorf("the standby is told %s", entry)
			}
			var turn api.Turn
			testkit.Must(t, json.Unmarshal(delta.Call(api.TurnPickup.Name, "").Data, &turn))
			if turn.OnBehalfOf != alpha.Agent || turn.Reference != "p1" || len(turn.History) != 3 {
				t.Fatalf("the standby picks up %+v", turn)
			}
			var none api.Turn
			if testkit.Must(t, json.Unmarshal(alpha.Call(api.TurnPickup.Name, "").Data, &none)); none.Claim != nil {
				t.Errorf("its principal picks up a turn that is claimed: %+v", none)
			}
			envelope := delta.Envelope(id, &performatives.AcceptBody{ReferenceID: "p1"})
			accepted := testkit.Accepted(t, delta.Call(api.TurnRespond.Name, fmt.Sprintf(`{"turnId":%q,"envelope":%s}`, turn.Claim.ID, envelope)))
			testkit.Refused(t, delta.Submit(id, delta.Envelope(id, testkit.Offer("p2", 4))), session.AuthorityExceeded)
			entries := alpha.Read(3)
			if last := entries[2]; !bytes.Contains(last, []byte(`"onBehalfOf":"agent://acme.com/alpha"`)) || !bytes.Contains(last, []byte(accepted.Message)) {
				t.Errorf("its principal reads %s", last)
			}
			if first := beta.Read(1)[0]; !bytes.Contains(first, []byte(`"standby":"agent://acme.com/delta"`)) || !bytes.Contains(first, []byte(`"authority":"standby"`)) {
				t.Errorf("the invitation pins no standby: %s", first)
			}
			replay(t, alpha, id)
			audited(w, id)
			alpha.Say(id, testkit.Offer("p3", 7))
			beta.Say(id, &performatives.CounterBody{ProposalID: "p4", ReferenceID: "p3", Terms: []byte(`{"price":8}`)})
			if entry := delta.Read(1)[0]; !bytes.Contains(entry, []byte(`"p4"`)) {
				t.Errorf("the standby is told %s", entry)
			}
			audited(w, id)
		})
	}
}

// The standby of who is invited is told of an invitation that waits, the first entry of all.
func TestStandbyOfInvited(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t, testkit.Options{})
	delta := w.Principal("agent://widgets.co/delta", func(c *api.Card) { c.Kind = performatives.KindSystem })
	alpha := w.Principal("agent://acme.com/alpha")
	beta := w.Principal("agent://widgets.co/beta", func(c *api.Card) { c.Standby = delta.Agent })
	id := testkit.NewSession()
	alpha.Say(id, &performatives.ProposeBody{
		ProposalID: "inv", Type: performatives.SessionInvitation, Subject: "s", Terms: fmt.Appendf(nil, `{"participants":[%q],"policy":{"parkedMs":1}}`, beta.Agent),
	})
	if entry := delta.Read(1)[0]; !bytes.Contains(entry, []byte(`"inv"`)) {
		t.Errorf("the standby is told %s", entry)
	}
	audited(w, id)
}

// A standby that was told of a turn is not told of it again, and its inbox is not read again, while the
// session goes on around the turn.
func TestStandbyToldOnce(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t, testkit.Options{})
	delta := w.Principal("agent://acme.com/delta", func(c *api.Card) { c.Kind = performatives.KindSystem })
	alpha := w.Principal("agent://acme.com/alpha", func(c *api.Card) { c.Standby = delta.Agent })
	beta := w.Principal("agent://widgets.co/beta")
	broker, id := w.Server.Broker.Command, testkit.NewSession()
	broker.Lag(0)
	alpha.Say(id, &performatives.ProposeBody{
		ProposalID: "inv", Type: performatives.SessionInvitation, Subject: "s", Terms: fmt.Appendf(nil, `{"participants":[%q],"policy":{"parkedMs":1}}`, beta.Agent),
	})
	beta.Say(id, &performatives.AcceptBody{ReferenceID: "inv"})
	beta.Say(id, testkit.Offer("p1", 5))
	delta.Read(1)
	var reads atomic.Int64
	nc := w.Server.Broker.Options.Conn
	_, err := nc.Subscribe("$JS.API.DIRECT.GET.ASP_INBOX."+api.Inbox(delta.Agent, id), func(*nats.Msg) { reads.Add(1) })
	testkit.Must(t, err)
	said := func(body performatives.Body) {
		t.Helper()
		testkit.Must(t, broker.Beat(w.Ctx))
		before := broker.Applied()
		beta.Say(id, body)
		testkit.Eventually(w, "the side effects are applied", func() bool {
			testkit.Must(t, broker.Beat(w.Ctx))
			return broker.Applied() > before
		})
		testkit.Must(t, nc.Flush())
	}
	said(&performatives.ObserveBody{Subject: "the weather"})
	reads.Store(0) // the first time after it was told may be by a timer
	said(&performatives.ObserveBody{Subject: "the weather again"})
	if n := reads.Load(); n != 0 {
		t.Errorf("its inbox was read %d times more", n)
	}
	said(&performatives.WithdrawBody{ReferenceID: "p1"})
	said(testkit.Offer("p2", 6))
	if entry := delta.Read(1)[0]; !bytes.Contains(entry, []byte(`"p2"`)) {
		t.Errorf("of the next turn it is told %s", entry)
	}
	if reads.Load() == 0 {
		t.Error("reads of its inbox are not seen")
	}
}

// audited waits until all that the broker derives agrees with the transcript.
func audited(w *testkit.World, id performatives.SessionID) {
	w.Helper()
	operator := w.OperatorClient()
	testkit.Eventually(w, "what is derived agrees with the transcript", func() bool {
		entries, err := operator.Transcript(w.Ctx, id)
		testkit.Must(w, err)
		held, err := operator.Held(w.Ctx, id)
		testkit.Must(w, err)
		faults, err := audit.Session(entries, held, modes.All())
		testkit.Must(w, err)
		return len(faults) == 0
	})
}

// replay reads a transcript and judges it again.
func replay(t *testing.T, p *testkit.Principal, id performatives.SessionID) {
	t.Helper()
	var page api.Messages
	testkit.Must(t, json.Unmarshal(p.Call(api.SessionMessages.Name, fmt.Sprintf(`{"sessionId":%q}`, id)).Data, &page))
	var file bytes.Buffer
	for _, raw := range page.Messages {
		file.Write(append(raw, '\n'))
	}
	entries, err := transcript.ReadAll(&file)
	testkit.Must(t, err)
	state := session.New(id, modes.All())
	for _, e := range entries {
		state, err = session.Replay(state, e.Message, e.Stamp)
		testkit.Must(t, err)
	}
}

// A standby is another agent of the same organisation.
func TestStandbyCard(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t, testkit.Options{})
	alpha := w.Principal("agent://acme.com/alpha")
	for _, standby := range []string{"agent://acme.com/alpha", "agent://widgets.co/beta", "human://acme.com/alice"} {
		testkit.Refused(t, alpha.Call(api.AgentRegister.Name, fmt.Sprintf(`{"card":{"agentId":"agent://acme.com/alpha","standby":%q}}`, standby)), session.SchemaInvalid)
	}
	if m := alpha.Call(api.AgentRegister.Name, `{"card":{"agentId":"agent://acme.com/alpha","standby":"agent://acme.com/delta"}}`); !bytes.Contains(m.Data, []byte(`"standby":"agent://acme.com/delta"`)) {
		t.Errorf("the card is %s", m.Data)
	}
}
