package inbox_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/inbox"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/test/testkit"
)

const (
	alpha = performatives.Agent("agent://acme.example/alpha")
	beta  = performatives.Agent("agent://widgets.example/beta")
)

// entersWorld signs alice in at a broker with rules for her organisation.
func entersWorld(t *testing.T, rules *escalation.Organisation) (*testkit.World, *visitor) {
	t.Helper()
	o := testkit.Options{Dev: true, HTTP: "127.0.0.1:0"}
	if rules != nil {
		o.Rules = &escalation.Rules{Organisations: map[performatives.Organisation]*escalation.Organisation{"acme.example": rules}}
		testkit.Must(t, o.Rules.Check())
	}
	w := testkit.NewWorld(t, o)
	v := visits(t, w.Broker)
	if status, body := v.posts("/inbox/login", map[string]any{"agentId": alice}); status != http.StatusOK {
		t.Fatalf("%d %s", status, body)
	}
	return w, v
}

// escalates opens a session with a seller, whose offer alpha escalates.
func escalates(w *testkit.World, seller performatives.Agent, subject string) (session performatives.SessionID, item string) {
	w.Helper()
	s, err := w.Client(seller).Invite(w.Ctx, client.Invitation{ProposalID: "inv", With: []performatives.Agent{alpha}, Purpose: "a plan"})
	testkit.Must(w, err)
	buys := w.Client(alpha).Session(s.ID())
	_, err = buys.Accept(w.Ctx, "inv")
	testkit.Must(w, err)
	_, err = s.Propose(w.Ctx, client.Proposal{ID: "p1", Type: "service-agreement", Subject: subject, Terms: map[string]any{"price": 1500, "currency": "USD"}})
	testkit.Must(w, err)
	asked, err := buys.Escalate(w.Ctx, client.Escalation{Reason: client.AuthorityLimit, Urgency: client.High, Context: "above my limit", About: "p1"})
	testkit.Must(w, err)
	return s.ID(), asked.ID
}

// Who decides is shown what the public log would show of the agreement, and nothing where that is digests.
func TestConsentShown(t *testing.T) {
	t.Parallel()
	w, v := entersWorld(t, nil)
	for publish, shown := range map[string]bool{"terms": true, "hash": false} {
		s, err := w.Client(beta).Invite(w.Ctx, client.Invitation{
			ProposalID: "inv", With: []performatives.Agent{alpha}, Purpose: "a plan", Policy: map[string]any{"publish": publish},
		})
		testkit.Must(t, err)
		buys := w.Client(alpha).Session(s.ID())
		_, err = buys.Accept(w.Ctx, "inv")
		testkit.Must(t, err)
		asked, err := buys.Escalate(w.Ctx, client.Escalation{Reason: client.AuthorityLimit, Urgency: client.High, Context: "above my limit"})
		testkit.Must(t, err)
		for _, path := range []string{"/inbox/items/" + asked.ID, "/inbox/sessions/" + string(s.ID())} {
			testkit.Eventually(t, "the page is there", func() bool { return v.sends("GET", path, "").status == http.StatusOK })
			if page := v.sends("GET", path, "").body; strings.Contains(page, "the public log shows all terms") != shown {
				t.Errorf("with publish %s, %s says so: %t", publish, path, !shown)
			}
		}
	}
}

// agreesToConfirm has alpha and beta agree on terms in a session where people confirm that. The
// items of their organisations have the ids of the two acts.
func agreesToConfirm(w *testkit.World, terms map[string]any) (session performatives.SessionID, offered, accepted performatives.MessageID) {
	w.Helper()
	s, err := w.Client(alpha).Invite(w.Ctx, client.Invitation{
		ProposalID: "inv", With: []performatives.Agent{beta}, Purpose: "a match", Mode: "bilateral/1", Policy: map[string]any{"confirm": true},
	})
	testkit.Must(w, err)
	answers := w.Client(beta).Session(s.ID())
	_, err = answers.Accept(w.Ctx, "inv")
	testkit.Must(w, err)
	fits := client.Assess(map[string]any{"reasoning": "it fits", "suggestedRoles": map[string]string{"ownUser": "peer", "otherUser": "peer"}})
	offer, err := s.Propose(w.Ctx, client.Proposal{ID: "p1", Type: "opportunity", Subject: "A boat", Terms: terms}, fits)
	testkit.Must(w, err)
	answer, err := answers.Accept(w.Ctx, "p1", fits)
	testkit.Must(w, err)
	if answer.State.String() != "ESCALATED" {
		w.Fatalf("the session is %s", answer.State)
	}
	return s.ID(), offer.Message, answer.Message
}

// An agreement is confirmed or declined, by each organisation; nothing else is offered.
func TestConfirm(t *testing.T) {
	t.Parallel()
	w, v := entersWorld(t, nil)
	bob := performatives.Agent("human://widgets.example/bob")
	w.Client(bob)
	in, offer, accepted := agreesToConfirm(w, map[string]any{"days": 3})
	page := v.sends("GET", "/inbox/items/"+string(offer), "").body
	for _, want := range []string{"An agreement to confirm", "A boat", "Confirm <kbd", "Decline <kbd", "Sign and confirm", "it fits"} {
		if !strings.Contains(page, want) {
			t.Errorf("the item does not say %q", want)
		}
	}
	for _, never := range []string{`data-open="modify"`, `data-open="guidance"`, `id="modify"`, `id="guidance"`, `name="extent"`} {
		if strings.Contains(page, never) {
			t.Errorf("the item offers %s", never)
		}
	}
	for human, item := range map[performatives.Agent]performatives.MessageID{alice: offer, bob: accepted} {
		_, err := w.Client(human).Session(in).Rule(w.Ctx, string(item), client.Ruling{Decision: performatives.Approved})
		testkit.Must(t, err)
	}
	if status, body := v.posts("/inbox/verify/"+string(in), nil); status != http.StatusOK || !strings.Contains(body, `"count":0`) {
		t.Errorf("%d %s", status, body)
	}
	if page := v.sends("GET", "/inbox/items/"+string(offer), "").body; !strings.Contains(page, "<b>approved</b>") || strings.Contains(page, "In force") {
		t.Error("the item is not said to be approved, and no more than that")
	}
}

// A human whose ceiling is below what was agreed cannot confirm a part of it.
func TestConfirmAboveCeiling(t *testing.T) {
	t.Parallel()
	w, v := entersWorld(t, nil)
	w.Client("human://widgets.example/bob")
	_, err := w.OperatorClient().AddAgent(w.Ctx, api.Card{
		Agent: alice, Kind: performatives.KindHuman, Registry: api.Registry{MayDecide: true, Limits: []performatives.Limit{{MaxAmount: 100, Currency: "USD"}}},
	})
	testkit.Must(t, err)
	_, offer, _ := agreesToConfirm(w, map[string]any{"price": 1500, "currency": "USD"})
	page := v.sends("GET", "/inbox/items/"+string(offer), "").body
	if want := "The agreed amount is above your ceiling: you may deny it, or let a colleague with a higher one decide"; !strings.Contains(page, want) || strings.Contains(page, "smaller amount") {
		t.Errorf("the item does not say %q", want)
	}
}

// The button says that a transcript is genuine, and to non-participants that there is none.
func TestVerify(t *testing.T) {
	t.Parallel()
	w, v := entersWorld(t, nil)
	in, item := escalates(w, beta, "A plan")
	if status, body := v.posts("/inbox/verify/"+string(in), nil); status != http.StatusOK || !strings.Contains(body, `"count":0`) || !strings.Contains(body, `"entries":4`) {
		t.Errorf("%d %s", status, body)
	}
	for _, path := range []string{"items/" + item, "sessions/" + string(in)} {
		if got := v.sends("GET", "/inbox/"+path, "").body; !strings.Contains(got, `data-do="verify" data-session="`+string(in)+`"`) {
			t.Errorf("%s has no button", path)
		}
	}
	v.posts("/inbox/login", map[string]any{"agentId": "human://elsewhere.example/eve"})
	if status, body := v.posts("/inbox/verify/"+string(in), nil); status != http.StatusNotFound {
		t.Errorf("a non-participant is answered %d %s", status, body)
	}
	// With another broker's key no receipt is right.
	who := string(alice)
	pages := inbox.New(inbox.Options{Service: w.Server.Broker.Service, Redeem: w.Server.Broker.Parts.Registry.Redeem, NameOf: w.Server.Broker.Parts.Registry.NameOf, Key: "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4", Dev: true, Meet: func(context.Context, performatives.Agent) error { return nil }})
	posts := func(path, body, cookie string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(w.Ctx, "POST", "http://localhost"+path, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Parley-Inbox", "1")
		r.Header.Set("Sec-Fetch-Site", "same-origin")
		r.Header.Set("Cookie", cookie)
		got := httptest.NewRecorder()
		pages.ServeHTTP(got, r)
		return got
	}
	cookie, _, _ := strings.Cut(posts("/login", `{"agentId":"`+who+`"}`, "").Header().Get("Set-Cookie"), ";")
	if got := posts("/verify/"+string(in), "{}", cookie).Body.String(); strings.Contains(got, `"count":0`) || !strings.Contains(got, `"faults":["line 1`) {
		t.Errorf("with another key: %s", got)
	}
}

// The form offers the reasons of the rules, and wants one where they do.
func TestReasonToDeny(t *testing.T) {
	t.Parallel()
	w, v := entersWorld(t, &escalation.Organisation{Deny: escalation.Deny{Required: true, Reasons: []string{`Above the "budget"`}}})
	_, id := escalates(w, beta, "A plan")
	got := v.sends("GET", "/inbox/items/"+id, "").body
	for _, want := range []string{`<option value="Above the &#34;budget&#34;">`, `name="comment" maxlength="4000" required`, "your rules want a reason"} {
		if !strings.Contains(got, want) {
			t.Errorf("the form has no %s", want)
		}
	}
}
