package inbox_test

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session/transcript"
	"github.com/parley-asp/parley/test/testkit"
)

// haggles has the seller and alpha exchange three offers, the last of which is open. What alice
// approved lets alpha agree to 1,200.
func haggles(w *testkit.World) (sells, buys *client.Session) {
	w.Helper()
	id, item := escalates(w, beta, "a plan for a year")
	most := 1200.0
	_, err := w.Client(alice).Session(id).Rule(w.Ctx, item, client.Ruling{Decision: performatives.Modified, Authority: &performatives.RulingsAuthority{MaxAmount: &most, Currency: "USD"}})
	testkit.Must(w, err)
	sells, buys = w.Client(beta).Session(id), w.Client(alpha).Session(id)
	_, err = buys.Counter(w.Ctx, "p1", client.Proposal{ID: "p2", Terms: map[string]any{"price": 1000, "currency": "USD"}})
	testkit.Must(w, err)
	_, err = sells.Counter(w.Ctx, "p2", client.Proposal{ID: "p3", Terms: map[string]any{"price": 1100, "currency": "USD", "<script>seats</script>": 5}})
	testkit.Must(w, err)
	return sells, buys
}

// The page of a deal says what is on the table, who is waited for and how the offers moved; once
// agreed, what was agreed. Its downloads verify.
func TestDealPage(t *testing.T) {
	t.Parallel()
	w, v := entersWorld(t, nil)
	sells, buys := haggles(w)
	at := "/inbox/sessions/" + string(buys.ID())

	page := v.sends("GET", at, "").body
	for _, want := range []string{
		`Negotiating</span>`, `<div class="sum">USD&nbsp;1,100</div><div class="where">on the table, <code>terms.price</code></div>`, ">On the table <", "currency USD, price 1,100 (was 1,000)</bdi>",
		`<span class="sr">was </span><bdi dir="auto">1,000</bdi>`, "&#43;100 (&#43;10 %)", "The offer of ",
		`<title id="term-0-title">Price</title><desc id="term-0-desc">1,500 (alice: modified), then 1,000, then 1,100; people allow at most USD 1,200</desc>`,
		`<path class="decided"`, `<td>alice: modified</td>`, `<rect class="pause"`, `<span class="chip warn">pause</span> Paused for `, "<b>Now: Negotiating</b>",
		`<text class="bound"`, "&lt;script&gt;seats&lt;/script&gt;", "The session ends",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not have %q", want)
		}
	}
	if strings.Contains(page, "<script>seats") || strings.Contains(page, "session_timeout") {
		t.Error("the page has markup of the counterparty, or a code of a deadline")
	}
	if rows := strings.Count(page, `class="ours`); rows == 0 || len(regexp.MustCompile(`<(circle|rect) class="(ours|theirs)`).FindAllString(page, -1)) != 3 {
		t.Errorf("the picture does not have three offers")
	}

	item := v.sends("GET", "/inbox/?status=resolved", "").body
	item = regexp.MustCompile(`items/[0-9a-f-]+`).FindString(item)
	beside := v.sends("GET", "/inbox/"+item, "").body // the deal, with the decision beside it
	for _, want := range []string{"Not used yet.", `id="term-0-title"`, "What happens next", "Timeline", "Who is in it", "Verify the transcript", "Download the transcript", `<span class="chip ">Negotiating</span>`} {
		if !strings.Contains(beside, want) {
			t.Errorf("the decided item does not have %q", want)
		}
	}
	if strings.Contains(page, `id="item"`) || !strings.Contains(beside, `id="item"`) {
		t.Error("the page of a deal has a decision, or the item has none")
	}

	_, err := buys.Accept(w.Ctx, "p3")
	testkit.Must(t, err)
	_, err = sells.Close(w.Ctx, client.Closing{Outcome: performatives.Completed})
	testkit.Must(t, err)
	page = v.sends("GET", at, "").body
	for _, want := range []string{`<span class="chip good">Completed</span>`, `<div class="where">agreed, <code>terms.price</code></div>`, ">What was agreed <", "Download the agreement", ", accepted by alpha", "Nothing: the deal is over. Completed."} {
		if !strings.Contains(page, want) {
			t.Errorf("the page of an agreed deal does not have %q", want)
		}
	}
	if got := v.sends("GET", "/inbox/"+item, "").body; !regexp.MustCompile(`Used for #\d+, ACCEPT of <code>p3</code>`).MatchString(got) {
		t.Error("the decided item does not say what its approval was used for")
	}
	got := v.sends("GET", at+"/transcript", "")
	entries, err := transcript.ReadAll(strings.NewReader(got.body))
	testkit.Must(t, err)
	if len(entries) < 8 || got.header.Get("Content-Disposition") != `attachment; filename="`+string(buys.ID())+`.jsonl"` {
		t.Errorf("the download has %d entries, as %q", len(entries), got.header.Get("Content-Disposition"))
	}
	if got := v.sends("GET", at+"/agreement", ""); got.status != http.StatusOK || !strings.Contains(got.body, `"agr_`) {
		t.Errorf("the agreement is %d %.100s", got.status, got.body)
	}
	v.posts("/inbox/login", map[string]any{"agentId": "human://elsewhere.example/eve"})
	for _, path := range []string{"", "/transcript", "/agreement"} {
		if got := v.sends("GET", at+path, ""); got.status != http.StatusNotFound && got.status != http.StatusForbidden {
			t.Errorf("a non-participant gets %d of %q", got.status, path)
		}
	}
}

// Approve is not the button that stands out where the agent warns.
func TestWary(t *testing.T) {
	t.Parallel()
	w, v := entersWorld(t, nil)
	for n, c := range []struct {
		reason, suggests string
		solid            bool
	}{
		{client.AuthorityLimit, "", true}, {client.AuthorityLimit, "approve up to 1600", true},
		{client.AdversarialDetected, "", false}, {client.AuthorityLimit, "Deny: the price doubled", false}, {client.ConfidenceLow, "please reject this", false},
	} {
		id, first := escalates(w, beta, fmt.Sprint("plan ", n))
		_, err := w.Client(alice).Session(id).Rule(w.Ctx, first, client.Ruling{Decision: performatives.Guidance, Comment: "go on"})
		testkit.Must(t, err)
		asked, err := w.Client(alpha).Session(id).Escalate(w.Ctx, client.Escalation{Reason: c.reason, Urgency: client.High, Context: "look", About: "p1", SuggestedAction: c.suggests})
		testkit.Must(t, err)
		page := v.sends("GET", "/inbox/items/"+asked.ID, "").body
		if got := strings.Contains(page, `class="primary" data-open="approve"`); got != c.solid || !strings.Contains(page, `data-open="approve"`) {
			t.Errorf("%s, %q: Approve stands out: %v", c.reason, c.suggests, got)
		}
	}
}

// The page shows who gave authority to whom.
func TestDelegationsOfDeal(t *testing.T) {
	t.Parallel()
	w, v := entersWorld(t, nil)
	const clerk = performatives.Agent("agent://acme.example/legal/clerk")
	w.Principal(clerk)
	id, item := escalates(w, beta, "plans")
	_, err := w.Client(alice).Session(id).Rule(w.Ctx, item, client.Ruling{Decision: performatives.Guidance, Comment: "go on"})
	testkit.Must(t, err)
	_, err = w.Client(alpha).Session(id).Delegate(w.Ctx, clerk, client.Delegation{Scope: "<i>read</i> it", Authority: client.Advisory})
	testkit.Must(t, err)
	page := v.sends("GET", "/inbox/sessions/"+string(id), "").body
	for _, want := range []string{"Who gave authority to whom", "1 delegation. The list below names each.", `<title>` + string(clerk) + `</title>legal/clerk</text>`, "advisory, offered", "&lt;i&gt;read&lt;/i&gt; it"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not have %q", want)
		}
	}
}
