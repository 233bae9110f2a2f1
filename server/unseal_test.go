package server_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/test/testkit"
)

// An arbiter reads what a side has sealed once that side opens it, and only that; nobody else does
// (COMMITMENTS.md C2, PROTOCOL.md §7).
func TestSealedPartsForTheArbiter(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t, testkit.Options{})
	const (
		buyer, seller = performatives.Agent("agent://acme.com/buyer"), performatives.Agent("agent://widgets.co/seller")
		boss, clerk   = performatives.Agent("human://acme.com/boss"), performatives.Agent("agent://acme.com/clerk")
		chief, judge  = performatives.Agent("human://widgets.co/chief"), performatives.Agent("agent://chamber.org/judge")
		ours, theirs  = performatives.Agent("agent://law.org/ours"), performatives.Agent("agent://firm.org/theirs") // delegates
		other         = performatives.Agent("agent://none.net/other")
		asks, rules   = "sealed by the agent", "sealed by the human"
		most          = float64(sealedAllowed)
	)
	for _, a := range []performatives.Agent{boss, chief, judge, clerk, ours, theirs, other} {
		w.Principal(a)
	}
	id := testkit.NewSession()
	says := func(a performatives.Agent, body performatives.Body) { w.Principal(a).Say(id, body) }
	w.Principal(seller)
	says(buyer, &performatives.ProposeBody{
		ProposalID: "inv", Type: performatives.SessionInvitation, Subject: "a deal",
		Terms: []byte(`{"participants":["` + string(seller) + `"],"policy":{"arbiter":"` + string(judge) + `"}}`),
	})
	says(seller, &performatives.AcceptBody{ReferenceID: "inv"})
	for side, delegate := range map[performatives.Agent]performatives.Agent{buyer: ours, seller: theirs} {
		asked := w.Principal(side).Say(id, &performatives.DelegateBody{TargetAgent: delegate, Scope: "law", Authority: "advisory"})
		says(delegate, &performatives.AcceptBody{ReferenceID: string(asked.Message)})
	}
	says(seller, &performatives.ProposeBody{ProposalID: "p1", Type: "sale", Subject: "crane", Terms: []byte(`{"price":{"amount":9000,"currency":"USD"}}`)})
	asked, err := w.Client(buyer).Session(id).Escalate(w.Ctx, client.Escalation{
		Reason: client.AuthorityLimit, Context: map[string]string{"limit": asks}, SuggestedAction: asks, About: "p1",
	})
	testkit.Must(t, err)
	_, err = w.Client(boss).Session(id).Rule(w.Ctx, asked.ID, client.Ruling{
		Decision: performatives.Modified, Comment: rules, SealComment: true,
		Authority: &performatives.RulingsAuthority{MaxAmount: new(most), Currency: "USD", TermPath: "terms.price"},
	})
	testkit.Must(t, err)

	finds := func(reply string) (found string) {
		for _, secret := range []string{asks, rules} {
			if strings.Contains(reply, secret) {
				found += secret + "; "
			}
		}
		if allowedText.MatchString(reply) {
			found += "allowed"
		}
		return found
	}
	reads := func(a performatives.Agent) (found string) {
		t.Helper()
		for n, call := range [][2]string{
			{"session.messages", `{"sessionId":"` + string(id) + `"}`}, {"session.snapshot", `{"sessionId":"` + string(id) + `","since":0}`},
			{"session.get", `{"sessionId":"` + string(id) + `"}`}, {"session.evidence", `{"sessionId":"` + string(id) + `"}`},
			{"escalation.get", `{"escalationId":"` + asked.ID + `"}`},
		} {
			now := finds(string(w.Principal(a).Call(call[0], call[1]).Data))
			if n > 0 && now != found {
				t.Errorf("%s: %s has %q, and the verb before %q", a, call[0], now, found)
			}
			found = now
		}
		return found
	}
	unseals := func(a performatives.Agent, sealer performatives.Agent) (api.EscalationItem, error) {
		return client.Do(w.Ctx, w.Client(a), api.EscalationUnseal, api.UnsealEscalation{Escalation: asked.ID, Sealer: sealer})
	}
	refused := func(err error, want session.Code) {
		t.Helper()
		if code := testkit.CodeOf(err); code != want {
			t.Errorf("%q, want %q: %v", code, want, err)
		}
	}
	_, err = unseals(chief, "") // of the other side, and no participant: there is no such thing
	refused(err, session.UnknownSession)
	_, err = unseals(seller, "")
	refused(err, session.Unauthorized)
	_, err = unseals(buyer, "")
	refused(err, session.Unauthorized)
	_, err = unseals(clerk, "")
	refused(err, session.UnknownSession)
	_, err = unseals(boss, seller)
	refused(err, session.UnknownAgent)

	_, err = unseals(boss, "") // before there is a dispute
	testkit.Must(t, err)
	says(buyer, &performatives.AcceptBody{ReferenceID: "p1"})
	says(buyer, &performatives.CommitBody{CommitmentID: "k1", ReferenceID: "p1", Terms: &performatives.CommitmentTerms{
		Obligations: []performatives.Obligation{{Party: seller, Action: "deliver", VerificationMethod: "a look"}},
	}})
	w.Principal(seller).Say(id, &performatives.AcceptBody{ReferenceID: "k1"})
	snapshot, err := client.Do(w.Ctx, w.Client(buyer), api.SessionSnapshot, api.GetSnapshot{Session: id})
	testkit.Must(t, err)
	filed, err := json.Marshal(performatives.DisputeData{DisputeID: "x1", Subject: snapshot.Head.Hash, Ground: "other", Claim: "?", Severity: 1})
	testkit.Must(t, err)
	says(buyer, &performatives.InformBody{Type: performatives.Dispute, Data: filed})

	if got := reads(judge); got != asks+"; " {
		t.Errorf("the arbiter reads %q, want what the agent sealed", got)
	}
	for range 2 {
		item, err := unseals(boss, boss)
		testkit.Must(t, err)
		if len(item.Unsealed) != 2 || item.Arbiter != judge {
			t.Errorf("unsealed: %s, to %s", item.Unsealed, item.Arbiter)
		}
	}
	w.Down()
	w.Up()
	const all = asks + "; " + rules + "; allowed"
	for a, want := range map[performatives.Agent]string{judge: all, buyer: all, boss: all, seller: "", chief: "", clerk: "", ours: "", theirs: "", other: ""} {
		if got := reads(a); got != want {
			t.Errorf("%s reads %q, want %q", a, got, want)
		}
	}
	turn := string(w.Principal(judge).Call("turn.pickup", `{}`).Data)
	if got := finds(turn); got != all {
		t.Errorf("the arbiter's turn has %q: %s", got, turn)
	}
}
