package inbox_test

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/test/testkit"
)

// The pages of disputes show the claim, what is said of it and how it ended, to parties, who reads for
// them, and the arbiter. Each is offered what it may say, and nobody else sees them.
func TestDisputes(t *testing.T) {
	t.Parallel()
	const judy, colin, bob = performatives.Agent("human://chamber.example/judy"), performatives.Agent("human://acme.example/colin"), performatives.Agent("human://widgets.example/bob")
	w, v := entersWorld(t, &escalation.Organisation{Roles: map[string][]string{escalation.RoleAuditor: {string(alice)}}})
	enters := func(who performatives.Agent) {
		t.Helper()
		if status, body := v.posts("/inbox/login", map[string]any{"agentId": who}); status != http.StatusOK {
			t.Fatalf("%d %s", status, body)
		}
	}
	enters(judy)
	gives, takes := promises(w, beta, alpha, "cups", performatives.Obligation{ID: "0", Party: beta, Action: "send the cups", Quantity: number(50), Amount: &performatives.Worth{Value: 120.5, Currency: "EUR"}, Deadline: in(time.Hour)})
	delivered, err := gives.Inform(w.Ctx, performatives.Result, performatives.ResultData{CommitmentID: "k1", Obligation: "0"})
	testkit.Must(t, err)
	const claim = "ten boxes are <b>cracked</b>"
	_, err = takes.Inform(w.Ctx, performatives.Dispute, performatives.DisputeData{
		DisputeID: "d/1", Subject: delivered.Hash, Ground: "mismatch", Claim: claim, Remedy: "ten boxes", Severity: 4,
		Evidence: []performatives.Evidence{{Kind: "photo", Digest: performatives.Hash("sha256:" + strings.Repeat("cd", 32))}},
	})
	testkit.Must(t, err)
	_, err = gives.Inform(w.Ctx, performatives.Reply, performatives.ReplyData{DisputeID: "d/1", Position: performatives.OfferOf, Comment: "they were whole", Remedy: "half the price"})
	testkit.Must(t, err)

	at := "/inbox/sessions/" + string(takes.ID()) + "/dispute?" + url.Values{"dispute": {"d/1"}}.Encode()
	has := func(what, page string, all ...string) {
		t.Helper()
		for _, want := range all {
			if !strings.Contains(page, want) {
				t.Errorf("%s does not have %q", what, want)
			}
		}
	}
	enters(alice)
	list := v.sends("GET", "/inbox/disputes", "").body
	has("the list", list, `<a href="sessions/`+string(takes.ID())+`/dispute?dispute=d%2F1">`, "ten boxes are &lt;b&gt;cracked", `<span class="chip warn">Open</span>`, "4 of 5", "it is not what was promised")
	page := v.sends("GET", at, "").body
	has("the dispute", page, "half the price", "they were whole", `data-digest="sha256:cdcd`, "severity 4 of 5", "send the cups", "none was agreed", `data-form="reply"`, `<option value="concede">Give the claim up</option>`)
	if strings.Contains(page, `<option value="deny">`) || !strings.Contains(page, `data-form="take-offer"`) {
		t.Error("who may decide for the side that filed it is not offered just to give the claim up, or to take the offer")
	}
	queue := v.sends("GET", "/inbox/", "").body
	asked := regexp.MustCompile(`data-id="([0-9a-f-]{36})"`).FindStringSubmatch(queue)
	if asked == nil {
		t.Fatal("the dispute is not in the queue")
	}
	has("the item", v.sends("GET", "/inbox/items/"+asked[1], "").body, "A dispute to answer", `dispute?dispute=d%2F1">Answer the dispute</a>`)
	has("the item of the side that filed it", v.sends("GET", "/inbox/items/"+asked[1], "").body, `<blockquote class="said"><span class="by">alpha of acme.example, in its own words</span>`)
	enters(bob)
	queue = v.sends("GET", "/inbox/", "").body
	if asked = regexp.MustCompile(`data-id="([0-9a-f-]{36})"`).FindStringSubmatch(queue); asked == nil {
		t.Fatal("the dispute is not in the queue of the other side")
	}
	has("the other side's queue", queue, `<span>alpha <span class="soft org">acme.example</span></span>`)
	theirs := v.sends("GET", "/inbox/items/"+asked[1], "").body
	has("the other side's item", theirs, `<blockquote class="said counterparty"><span class="by">alpha of acme.example, in its own words</span>`, "acme.example disputes · to be answered for <b", "What is carried out", ": the dispute is unresolved", "send the cups EUR 120.50")
	if strings.Contains(theirs, "asks for") || strings.Contains(theirs, "has no terms") || strings.Contains(theirs, "Nothing has been offered") || strings.Contains(theirs, "the session fails") || strings.Contains(theirs, "your organisation’s agent") {
		t.Error("a claim of the other side passes for one of the reader's own agent")
	}
	enters(alice)
	if got := v.sends("GET", strings.ReplaceAll(at, "d%2F1", "d2"), ""); got.status != http.StatusNotFound {
		t.Errorf("another dispute is answered %d", got.status)
	}
	has("the obligation", v.sends("GET", "/inbox/sessions/"+string(takes.ID())+"/obligation?commitment=k1&obligation=0", "").body, `dispute?dispute=d%2F1"`, "paused")
	has("the deal", v.sends("GET", "/inbox/sessions/"+string(takes.ID()), "").body, `dispute?dispute=d%2F1"`)
	enters(colin)
	has("a colleague's list", v.sends("GET", "/inbox/disputes", "").body, "cracked")
	enters(judy)
	if list := v.sends("GET", "/inbox/disputes?status=all", "").body; !strings.Contains(list, "No disputes") || strings.Contains(list, "cracked") {
		t.Error("another organisation sees a dispute of others")
	}
	if got := v.sends("GET", at, ""); got.status != http.StatusNotFound {
		t.Errorf("another organisation gets %d", got.status)
	}
	_, err = gives.Inform(w.Ctx, performatives.Reply, performatives.ReplyData{DisputeID: "d/1", Position: performatives.Concede})
	testkit.Must(t, err)
	enters(alice)
	if list := v.sends("GET", "/inbox/disputes", "").body; !strings.Contains(list, "No open disputes") {
		t.Error("what was conceded is listed as open")
	}
	has("the list of all", v.sends("GET", "/inbox/disputes?status=all", "").body, `<span class="chip good">Conceded</span>`)
}

// A human who is a party files, replies and accepts offers on the pages, and a human arbiter decides there.
func TestDisputeForms(t *testing.T) {
	t.Parallel()
	const judy, carol = performatives.Agent("human://chamber.example/judy"), performatives.Agent("human://acme.example/carol")
	w, v := entersWorld(t, nil)
	enters := func(who performatives.Agent) {
		t.Helper()
		if status, body := v.posts("/inbox/login", map[string]any{"agentId": who}); status != http.StatusOK {
			t.Fatalf("%d %s", status, body)
		}
	}
	enters(judy)
	enters(carol)
	s, err := w.Client(beta).Invite(w.Ctx, client.Invitation{ProposalID: "inv", With: []performatives.Agent{carol}, Purpose: "cups", Policy: map[string]any{"arbiter": judy}})
	testkit.Must(t, err)
	gives, takes := s, w.Client(carol).Session(s.ID())
	_, err = takes.Accept(w.Ctx, "inv")
	testkit.Must(t, err)
	_, err = takes.Observe(w.Ctx, "on we go", nil)
	testkit.Must(t, err)
	_, err = gives.Commit(w.Ctx, client.Commitment{ID: "k1", Obligations: []performatives.Obligation{{ID: "0", Party: beta, Action: "send the cups", Quantity: number(50)}}})
	testkit.Must(t, err)
	_, err = takes.Accept(w.Ctx, "k1")
	testkit.Must(t, err)
	delivered, err := gives.Inform(w.Ctx, performatives.Result, performatives.ResultData{CommitmentID: "k1", Obligation: "0"})
	testkit.Must(t, err)
	forms := func(path string) (found []string) {
		t.Helper()
		got := v.sends("GET", "/inbox/sessions/"+string(s.ID())+path, "")
		if got.status != http.StatusOK {
			t.Fatalf("%s is answered %d", path, got.status)
		}
		for _, form := range []string{"accept", "reject", "dispute", "reply", "take-offer", "rule"} {
			if button, dialog := strings.Contains(got.body, `data-form="`+form+`"`), strings.Contains(got.body, `data-act="`+form+`"`); button != dialog {
				t.Errorf("%s: the form %s has a button: %v, a dialog: %v", path, form, button, dialog)
			} else if button {
				found = append(found, form)
			}
		}
		return found
	}
	offers := func(path, want string) {
		t.Helper()
		if got := strings.Join(forms(path), " "); got != want {
			t.Errorf("%s offers %q, want %q", path, got, want)
		}
	}
	offers("/obligation?commitment=k1&obligation=0", "accept reject dispute")
	_, err = takes.Inform(w.Ctx, performatives.Dispute, performatives.DisputeData{DisputeID: "d1", Subject: delivered.Hash, Ground: "mismatch", Claim: "cracked", Severity: 1})
	testkit.Must(t, err)
	offers("/dispute?dispute=d1", "")
	_, err = gives.Inform(w.Ctx, performatives.Reply, performatives.ReplyData{DisputeID: "d1", Position: performatives.OfferOf, Remedy: "half the price"})
	testkit.Must(t, err)
	offers("/dispute?dispute=d1", "take-offer")
	enters(judy)
	if list := v.sends("GET", "/inbox/disputes", "").body; !strings.Contains(list, "cracked") {
		t.Error("the arbiter does not see the dispute")
	}
	offers("/dispute?dispute=d1", "rule")
	_, err = w.Client(judy).Session(s.ID()).Inform(w.Ctx, performatives.Resolution, performatives.DecisionData{DisputeID: "d1", Decision: performatives.Split, Reason: "packed badly"})
	testkit.Must(t, err)
	offers("/dispute?dispute=d1", "")
	if page := v.sends("GET", "/inbox/sessions/"+string(s.ID())+"/dispute?dispute=d1", "").body; !strings.Contains(page, "packed badly") || !strings.Contains(page, ">Split</span>") {
		t.Error("the page does not say how it ended")
	}
}
