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
		asks, rules   = "sealed by the agent", "sealed by the human"
	)
	for _, a := range []performatives.Agent{boss, chief, judge, clerk} {
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
	asked, err := w.Client(buyer).Session(id).Escalate(w.Ctx, client.Escalation{
		Reason: client.AuthorityLimit, Context: map[string]string{"limit": asks}, SuggestedAction: asks,
	})
	testkit.Must(t, err)
	_, err = w.Client(boss).Session(id).Rule(w.Ctx, asked.ID, client.Ruling{Decision: performatives.Guidance, Comment: rules, SealComment: true})
	testkit.Must(t, err)

	reads := func(a performatives.Agent) (found string) {
		t.Helper()
		for verb, request := range map[string]string{
			"session.messages": `{"sessionId":"` + string(id) + `"}`, "session.snapshot": `{"sessionId":"` + string(id) + `","since":0}`,
		} {
			got := string(w.Principal(a).Call(verb, request).Data)
			now := ""
			for _, secret := range []string{asks, rules} {
				if strings.Contains(got, secret) {
					now += secret + "; "
				}
			}
			if found != "" && now != found {
				t.Errorf("%s: %s has %q, and the other verb %q", a, verb, now, found)
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
	says(buyer, testkit.Fact("on we go"))
	says(buyer, &performatives.CommitBody{CommitmentID: "k1", Terms: &performatives.CommitmentTerms{
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
	for a, want := range map[performatives.Agent]string{judge: asks + "; " + rules + "; ", seller: "", chief: "", buyer: asks + "; " + rules + "; "} {
		if got := reads(a); got != want {
			t.Errorf("%s reads %q, want %q", a, got, want)
		}
	}
}
