package inbox_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/test/testkit"
)

// The page of an obligation has the promise, the evidence of its delivery and the time left beside it. Who
// has full authority may answer it there; who reads may not.
func TestObligationPage(t *testing.T) {
	t.Parallel()
	const carol = performatives.Agent("human://acme.example/carol")
	w, v := entersWorld(t, &escalation.Organisation{Roles: map[string][]string{escalation.RoleAuditor: {string(alice)}}})
	enters := func(who performatives.Agent) {
		t.Helper()
		if status, body := v.posts("/inbox/login", map[string]any{"agentId": who}); status != http.StatusOK {
			t.Fatalf("%d %s", status, body)
		}
	}
	enters(carol)
	gives, takes := promises(w, beta, alpha, "cups", performatives.Obligation{
		ID: "a/b", Party: beta, Action: "send <i>cups</i>", Deadline: in(time.Hour), Quantity: number(50), Unit: "boxes", VerificationMethod: "by counting",
		Amount: &performatives.Worth{Value: 1200, Currency: "USD"}, AcceptanceWindowMs: (26 * time.Hour).Milliseconds(),
	})
	asked, err := takes.Delegate(w.Ctx, carol, client.Delegation{Scope: "answer the delivery", Authority: client.Full})
	testkit.Must(t, err)
	_, err = w.Client(carol).Session(takes.ID()).Accept(w.Ctx, asked.ID)
	testkit.Must(t, err)

	at := "/inbox/sessions/" + string(takes.ID()) + "/obligation?" + url.Values{"commitment": {"k1"}, "obligation": {"a/b"}}.Encode()
	reads := func() string { return v.sends("GET", at, "").body }
	page := reads()
	for _, want := range []string{"send &lt;i&gt;cups&lt;/i&gt;", "USD&nbsp;1,200", "<dt>Quantity</dt><dd>50 <bdi>boxes</bdi>", "by counting", "Nothing waits for an answer", "due <time"} {
		if !strings.Contains(page, want) {
			t.Errorf("what is promised does not have %q", want)
		}
	}
	forms := func(page, want string) {
		t.Helper()
		var has []string
		for _, form := range strings.Split(page, ` data-form="`)[1:] {
			name, _, _ := strings.Cut(form, `"`)
			has = append(has, name)
		}
		if got := strings.Join(has, " "); got != want {
			t.Errorf("there are the forms %s, want %s", got, want)
		}
	}
	forms(page, "amend waive")
	digest := performatives.Hash("sha256:" + strings.Repeat("ab", 32))
	delivered, err := gives.Inform(w.Ctx, performatives.Result, performatives.ResultData{
		CommitmentID: "k1", Obligation: "a/b", Quantity: number(45),
		Evidence: []performatives.Evidence{{Kind: "photo", Digest: digest, URI: "javascript:alert(1)", Note: "<script>"}},
	})
	testkit.Must(t, err)
	page = reads()
	for _, want := range []string{
		`data-delivery="` + string(delivered.Message) + `"`, "<b>45</b> <bdi>boxes</bdi>", `data-digest="` + string(digest) + `"`,
		"&lt;script&gt;", "javascript:alert(1)", "1d 0", "counts as accepted <time", "its claim, not a fact", "for alpha", `max="45"`, `<input id="file" type="file"`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("what is delivered does not have %q", want)
		}
	}
	forms(page, "accept reject waive dispute")
	if strings.Contains(page, `href="javascript:`) {
		t.Error("the evidence is a link")
	}
	if list := v.sends("GET", "/inbox/due", "").body; !strings.Contains(list, `href="sessions/`+string(takes.ID())+`/obligation?commitment=k1&amp;obligation=a%2Fb"`) {
		t.Error("the list does not lead to the obligation")
	}
	if deal := v.sends("GET", "/inbox/sessions/"+string(takes.ID()), "").body; !strings.Contains(deal, "What is carried out") || !strings.Contains(deal, "Delivered, to be answered") {
		t.Error("the deal does not show what is carried out")
	}
	for _, other := range []string{"commitment=k1&obligation=zz", "commitment=k2&obligation=a/b", ""} {
		if got := v.sends("GET", "/inbox/sessions/"+string(takes.ID())+"/obligation?"+other, ""); got.status != http.StatusNotFound {
			t.Errorf("%q is answered %d", other, got.status)
		}
	}
	enters(alice)
	page = reads()
	if strings.Contains(page, "data-form=") || !strings.Contains(page, "You can read this.") {
		t.Error("an auditor is offered to answer")
	}
	_, err = w.Client(carol).Session(takes.ID()).Accept(w.Ctx, string(delivered.Message))
	testkit.Must(t, err)
	page = reads()
	for _, want := range []string{"Partly fulfilled", "<dt>Accepted so far</dt><dd>45", "<dt>Still due</dt><dd>5 "} {
		if !strings.Contains(page, want) {
			t.Errorf("once it was accepted in part, the page does not have %q", want)
		}
	}
	_, err = gives.Say(w.Ctx, &performatives.ProposeBody{
		ProposalID: "later", Type: performatives.Amendment, Subject: "mugs", ReferenceID: "k1",
		Terms: jsontext.Value(`{"obligations":[{"id":"a/b","party":"` + string(beta) + `","action":"send mugs","quantity":5,"unit":"boxes"}]}`),
	})
	testkit.Must(t, err)
	enters(carol)
	page = reads()
	forms(page, "amend waive take-0 decline-0")
	for _, want := range []string{"What would take its place", "send mugs", `data-change="later"`, `&#34;quantity&#34;:5,`, `&#34;acceptanceWindowMs&#34;:93600000`} {
		if !strings.Contains(page, want) {
			t.Errorf("with an amendment the page does not have %q", want)
		}
	}
}

// A breach can be disputed, and the page is about the entry that recorded it.
func TestBreachPage(t *testing.T) {
	t.Parallel()
	const carol = performatives.Agent("human://acme.example/carol")
	w, v := entersWorld(t, &escalation.Organisation{})
	if status, body := v.posts("/inbox/login", map[string]any{"agentId": carol}); status != http.StatusOK {
		t.Fatalf("%d %s", status, body)
	}
	_, takes := promises(w, beta, alpha, "cups", performatives.Obligation{ID: "cups", Party: beta, Action: "send cups", Deadline: in(500 * time.Millisecond)})
	asked, err := takes.Delegate(w.Ctx, carol, client.Delegation{Scope: "see that it is delivered", Authority: client.Full})
	testkit.Must(t, err)
	_, err = w.Client(carol).Session(takes.ID()).Accept(w.Ctx, asked.ID)
	testkit.Must(t, err)
	var page string
	testkit.Eventually(t, "the deadline passes", func() bool {
		page = v.sends("GET", "/inbox/sessions/"+string(takes.ID())+"/obligation?commitment=k1&obligation=cups", "").body
		return strings.Contains(page, `data-form="dispute"`)
	})
	view, err := takes.View(w.Ctx)
	testkit.Must(t, err)
	entries, err := takes.Transcript(w.Ctx)
	testkit.Must(t, err)
	breach := entries[view.Owed[0].Breach].Stamp.Hash
	if breach == "" || !strings.Contains(page, `data-shown="`+string(breach)+`"`) || !strings.Contains(page, "You dispute the breach of") {
		t.Errorf("the page is not about entry %d, %s", view.Owed[0].Breach, breach)
	}
}
