//go:build browser

package browser

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker/limits"
	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/test/testkit"
)

// TestHostileText shows whatever a counterparty writes as text: markup does not
// become any, what is invisible is seen, and nothing gets out of its place.
func TestHostileText(t *testing.T) {
	w := newWorld(t, testkit.Options{})
	evil := `<img src=x onerror="window.pwned=1"><script>window.pwned=1</script></bdi></article><h1>Approved</h1>`
	turned := "invoice \u202efdp.exe\u202c zero\u200bwidth \u0000 Z" + strings.Repeat("\u0301", 40)
	long := strings.Repeat("W", 20000) + " " + strings.Repeat("many words ", 2000)
	buyer, seller := w.opens(evil)
	w.said(seller.Propose(w.Ctx, client.Proposal{ID: "p<1>", Type: "service-agreement", Subject: evil, Terms: map[string]any{
		"price": 15000, evil: turned, "note": long, "javascript:alert(1)": map[string]any{"__proto__": "x", "deep": []any{evil}},
	}}, client.Note(turned+evil)))
	receipt, err := buyer.Escalate(w.Ctx, client.Escalation{
		Reason: client.AuthorityLimit, Urgency: client.High, About: "p<1>", Context: map[string]any{"what": evil, "long": long}, SuggestedAction: turned,
	})
	testkit.Must(w, err)
	id := string(receipt.Message)
	b := w.enters(alice, "")
	b.reads(".row", "<img src=x")
	b.fits()
	b.clicks(".row")
	b.reads("#item-title", "<img src=x")
	b.reads(".title .facts", "their title")
	b.reads(".entry.counterparty", `\u202e`)
	b.reads(".said", `\u200b`)
	b.fits()
	for _, open := range []string{"approve", "modify", "deny"} {
		b.clicks("[data-open=" + open + "]")
		b.sees("#" + open + "[open]")
		b.fits()
		b.presses("\x1b")
	}
	b.opens("sessions/" + string(buyer.ID()))
	b.reads("h1", "<img src=x")
	b.fits()
	b.opens("sessions")
	b.reads("td", "<img src=x")
	b.opens("items/" + id)
	b.sees("#item")
	if get[bool](b, `"pwned" in window || !!document.querySelector("main img, main script, main h1 ~ h1")`) {
		t.Error("the counterparty's text became markup")
	}
	if n := get[int](b, `[...document.querySelectorAll("h1")].filter((h) => h.textContent === "Approved").length`); n != 0 {
		t.Error("the counterparty wrote a heading")
	}
}

// TestKeyboard goes the whole way without a pointer.
func TestKeyboard(t *testing.T) {
	w := newWorld(t, testkit.Options{})
	_, _, first := w.asks("First", "critical", plan)
	buyer, _, second := w.asks("Second", "low", plan)
	b := w.enters(alice, "")
	b.reads(".live", "live")
	b.presses("?")
	b.sees("#help[open]")
	b.presses("\x1b")
	b.presses("j")
	b.holds(`document.activeElement.dataset.id === "` + first + `"`)
	b.presses("j")
	b.holds(`document.activeElement.dataset.id === "` + second + `"`)
	b.presses("k")
	b.presses("j")
	b.presses("\r")
	b.reads("#item-title", "Second")
	b.presses("x")
	b.reads("#item > .notice", "You have claimed this")
	b.presses("c")
	b.holds(`document.activeElement.id === "comment"`)
	b.presses("as agreed")
	b.signs()
	b.reads(".notes li", "as agreed")
	b.presses("\x1b")
	b.presses("d")
	b.sees("#deny[open]")
	b.presses("\x1b")
	b.holds(`!document.querySelector("dialog[open]")`)
	b.presses("a")
	b.sees("#approve[open]")
	b.presses("ok")
	b.signs()
	b.reads("#item > .notice", "approved by alice")
	b.presses("u")
	b.holds(`document.querySelector("#main").hidden && document.querySelectorAll(".row").length === 1`)
	if rulings := w.rulings(buyer); len(rulings) != 1 || rulings[0].Comment != "ok" {
		t.Errorf("signed was %+v", rulings)
	}
}

// TestSearch narrows the queue while somebody types, and keeps it so.
func TestSearch(t *testing.T) {
	w := newWorld(t, testkit.Options{})
	for _, subject := range []string{"Coffee beans", "Coffee machine", "Freight"} {
		w.asks(subject, "high", plan)
	}
	b := w.enters(alice, "")
	b.reads(".live", "live")
	b.presses("/")
	b.holds(`document.activeElement.id === "search"`)
	for _, key := range "coffee" {
		b.presses(string(key))
	}
	b.holds(`document.querySelectorAll(".row").length === 2 && document.activeElement.id === "search"`)
	w.asks("More coffee", "high", plan)
	w.asks("More freight", "high", plan)
	b.holds(`document.querySelectorAll(".row").length === 3 && document.activeElement.value === "coffee"`)
	b.presses("\x1b")
	b.presses("j")
	b.presses("\r")
	b.reads("#item-title", "Coffee beans")
	b.opens(strings.TrimPrefix(get[string](b, "location.href"), b.root)) // as a link that was kept
	b.holds(`document.querySelectorAll(".row").length === 3`)
	b.presses("/")
	b.types("#search", "no such thing")
	b.reads(".empty", "no such thing")
	b.clicks(".empty a")
	b.holds(`document.querySelectorAll(".row").length === 5`)
}

// TestFocusStays where a reader has it while the queue is shown anew.
func TestFocusStays(t *testing.T) {
	w := newWorld(t, testkit.Options{})
	_, _, id := w.asks("First", "low", plan)
	b := w.enters(alice, "items/"+id)
	b.reads(".live", "live")
	for n, focused := range []string{`a[data-choice="mine"]`, `.row[data-id="` + id + `"]`, `#search`, `[data-open=deny]`} {
		get[bool](b, fmt.Sprintf(`(document.querySelector(%q).focus(), true)`, focused))
		w.asks(fmt.Sprintf("More of it: %d", n), "high", plan)
		b.reads(".queue", fmt.Sprintf("More of it: %d", n))
		b.holds(fmt.Sprintf(`document.activeElement === document.querySelector(%q)`, focused))
	}
}

// TestFocusMoves while the queue is on its way: where a reader is by then counts.
func TestFocusMoves(t *testing.T) {
	w := newWorld(t, testkit.Options{})
	_, _, id := w.asks("First", "high", plan)
	b := w.enters(alice, "")
	b.reads(".live", "live")
	get[bool](b, `(() => {
  const real = window.fetch;
  window.fetch = async (what, how) => {
    const answer = await real(what, how);
    if (String(what).includes('part/queue')) await new Promise((go) => { window.goOn = go; });
    return answer;
  };
  return true;
})()`)
	w.asks("Second", "low", plan)
	b.holds(`!!window.goOn`)
	b.presses("j")
	b.holds(`document.activeElement.dataset.id === "` + id + `"`)
	get[bool](b, `(window.goOn(), true)`)
	b.reads(".queue", "Second")
	b.holds(`document.activeElement.dataset.id === "` + id + `"`)
}

// TestNames asserts that whoever cannot see the page is told what everything is.
func TestNames(t *testing.T) {
	w := newWorld(t, testkit.Options{})
	_, _, id := w.asks("Enterprise plan", "high", plan)
	b := w.enters(alice, "items/"+id)
	b.sees("#item")
	nameless := get[string](b, `[...document.querySelectorAll('a, button, input, select, textarea, dialog, [role=toolbar]')]
  .filter((e) => !(e.innerText?.trim() || e.textContent.trim() || e.labels?.length || e.ariaLabel || e.getAttribute('aria-labelledby') || e.type === 'radio' && e.closest('label')))
  .map((e) => e.outerHTML.slice(0, 120)).join('\n')`)
	if nameless != "" {
		t.Errorf("these have no name:\n%s", nameless)
	}
	if broken := get[string](b, `[...document.querySelectorAll('[aria-labelledby]')].filter((e) => !document.getElementById(e.getAttribute('aria-labelledby'))).map((e) => e.outerHTML.slice(0, 120)).join('\n')`); broken != "" {
		t.Errorf("these are named by nothing:\n%s", broken)
	}
	if doubled := get[string](b, `[...document.querySelectorAll('[id]')].map((e) => e.id).filter((id, i, all) => all.indexOf(id) !== i).join(' ')`); doubled != "" {
		t.Errorf("these ids are there twice: %s", doubled)
	}
}

// TestPhone decides with a finger.
func TestPhone(t *testing.T) {
	w := newWorld(t, testkit.Options{})
	buyer, _, id := w.asks("Enterprise plan", "high", plan)
	b := w.enters(alice, "")
	b.do(chromedp.EmulateViewport(375, 667, chromedp.EmulateMobile, chromedp.EmulateTouch, chromedp.EmulateScale(2)))
	b.do(chromedp.WaitVisible(css(".row")), chromedp.Tap(css(".row")))
	b.reads("#item-title", "Enterprise plan")
	b.fits()
	b.do(chromedp.Tap(css("[data-open=approve]")), chromedp.WaitVisible(css("#approve[open]")))
	b.fits()
	b.do(chromedp.ScrollIntoView(css("#approve button[type=submit]")), chromedp.Tap(css("#approve button[type=submit]")))
	b.reads("#item > .notice", "approved by alice")
	b.do(chromedp.Tap(css(".back a")))
	b.reads(".empty", "Nothing to decide")
	_ = id
	if n := len(w.rulings(buyer)); n != 1 {
		t.Errorf("%d rulings", n)
	}
}

// fourEyes are rules that want two approvals.
func fourEyes() *escalation.Rules {
	return &escalation.Rules{Organisations: map[performatives.Organisation]*escalation.Organisation{
		"acme.example": {Rules: []*escalation.Rule{{Name: "four-eyes", Asked: escalation.Asked{Quorum: 2}}}},
	}}
}

// TestQuorum lets the session go on only when the second has signed, and shows what
// is in force before and after that.
func TestQuorum(t *testing.T) {
	w := newWorld(t, testkit.Options{Rules: fourEyes()})
	buyer, _, id := w.asks("Enterprise plan", "high", plan)
	one, two := w.enters(alice, "items/"+id), w.enters(bob, "items/"+id)
	one.reads("#item > .notice", "0 of 2 approvals")
	one.clicks("[data-open=approve]")
	one.reads("#approve", "0 of 2 approvals")
	one.clicks("#approve-to-amount")
	one.clicks("#approve button[type=submit]")
	one.reads("#toast", "Signed: 1 of 2. More approvals are needed")
	one.reads(".decide", "you may still deny it")
	one.presses("a")
	if one.has("#approve[open]") || one.has("[data-open=approve]") {
		t.Error("who has approved can approve again")
	}
	one.reads(".chain", "1 of 2")
	if got := w.state(buyer); got != "ESCALATED" {
		t.Fatalf("with one of two approvals the session is %s", got)
	}
	two.reads("#item > .notice", "1 of 2 approvals. So far the agent may agree to: at most USD 15,000 for Price per month")
	two.clicks("[data-open=approve]")
	two.reads("#approve", "1 of 2 approvals. So far: at most USD 15,000")
	two.clicks("#approve-to-amount")
	two.types("#approve-amount", "11000")
	two.clicks("#approve button[type=submit]")
	one.reads("#item > .notice", "approved by bob")
	one.reads("#item > .notice", "In force: at most USD 11,000 for Price per month")
	if got := w.state(buyer); got != "CONVERSING" {
		t.Errorf("with both approvals the session is %s", got)
	}
}

// TestCeiling refuses more than a human may let an agent agree to, says who can,
// and takes what is within.
func TestCeiling(t *testing.T) {
	w := newWorld(t, testkit.Options{})
	w.registers(alice, func(c *api.Card) { c.Registry.Limits = []performatives.Limit{{Currency: "USD", MaxAmount: 10000}} })
	buyer, _, id := w.asks("Enterprise plan", "high", plan)
	b := w.enters(alice, "items/"+id)
	b.reads(".people", "above their ceiling")
	b.clicks("[data-open=approve]")
	b.clicks("#approve button[type=submit]")
	b.reads("#approve .refused", "bob of acme.example")
	if n := len(w.rulings(buyer)); n != 0 {
		t.Fatalf("%d rulings above the ceiling", n)
	}
	b.clicks("#approve-to-amount")
	b.types("#approve-amount", "9000")
	b.clicks("#approve button[type=submit]")
	b.reads("#item > .notice", "In force: at most USD 9,000")
}

// TestExpiryChain lets nobody answer, by a clock that is the test's: the next
// level is asked, and in the end the session fails, while the page looks on.
func TestExpiryChain(t *testing.T) {
	c := new(testkit.Clock)
	w := newWorld(t, testkit.Options{Now: c.Now, Rules: &escalation.Rules{Organisations: map[performatives.Organisation]*escalation.Organisation{
		"acme.example": {Rules: []*escalation.Rule{{
			Name: "chain", Asked: escalation.Asked{Level: "Procurement", Approvers: []string{string(alice)}, Due: escalation.Times{All: escalation.Duration(10 * time.Minute)}},
			Chain: []escalation.Asked{{Level: "Head", Approvers: []string{string(bob)}, Due: escalation.Times{All: escalation.Duration(20 * time.Minute)}}},
		}}},
	}}})
	buyer, _, id := w.asks("Enterprise plan", "high", plan)
	b := w.enters(alice, "items/"+id)
	b.reads(".chain .now", "Procurement")
	b.reads("#else ~ p", "Head is asked")
	c.Advance(11 * time.Minute)
	w.rings(buyer)
	b.reads(".chain .now", "Head")
	b.reads(".events", "moved to the next level")
	c.Advance(10 * time.Minute)
	w.rings(buyer)
	b.reads("#item > .notice", "expired, without a decision")
	view := string(w.Principal(sales).Call(api.SessionGet.Name, `{"sessionId":"`+string(buyer.ID())+`"}`).Data)
	if !strings.Contains(view, `"state":"FAILED"`) || !strings.Contains(view, "escalation_expired") {
		t.Errorf("the other side sees %s", view)
	}
}

// rings makes the session's durable timer go off: it goes by the real clock,
// which has not jumped.
func (w *world) rings(s *client.Session) {
	w.Helper()
	_, err := w.Server.Broker.Options.Conn.Request("asp.timer.due."+string(s.ID()), nil, patience)
	testkit.Must(w, err)
}

// TestKilled takes the broker away right after a decision was answered: the
// session goes on when it is back, the page finds it by itself, and the decision
// is there once.
func TestKilled(t *testing.T) {
	w := newWorld(t, testkit.Options{})
	buyer, _, id := w.asks("Enterprise plan", "high", plan)
	b := w.enters(alice, "items/"+id)
	b.reads(".live", "live")
	b.clicks("[data-open=approve]")
	b.sees("#approve[open]")
	b.do(chromedp.Click(css("#approve button[type=submit]")))
	w.awaitsRuling(buyer)
	w.Crash()
	b.reads(".live", "not live")
	w.Up()
	b.reads(".live", "live")
	b.opens("items/" + id)
	b.reads("#item > .notice", "approved by alice")
	if got, n := w.state(buyer), len(w.rulings(buyer)); got != "CONVERSING" || n != 1 {
		t.Errorf("the session is %s, with %d rulings", got, n)
	}
}

// awaitsRuling returns once the agent has received the decision.
func (w *world) awaitsRuling(s *client.Session) {
	w.Helper()
	_, err := s.Await(w.Ctx, performatives.Inform)
	testkit.Must(w, err)
}

// TestBehindProxy looks at it under a prefix of somebody else's.
func TestBehindProxy(t *testing.T) {
	w := newWorld(t, testkit.Options{})
	buyer, _, id := w.asks("Enterprise plan", "high", plan)
	to, err := url.Parse("http://" + w.HTTPAddr)
	testkit.Must(w, err)
	proxy := httptest.NewServer(http.StripPrefix("/tools/parley", &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }, FlushInterval: -1,
	}))
	defer func() { // Close alone waits for ever for the page that follows the queue
		proxy.Listener.Close()
		proxy.CloseClientConnections()
		proxy.Close()
	}()
	b := w.browser()
	b.root = proxy.URL + "/tools/parley/inbox/"
	b.do(chromedp.Navigate(strings.TrimSuffix(b.root, "/")))
	b.do(chromedp.WaitVisible(css("#code")), chromedp.SendKeys(css("#code"), w.code(alice)), chromedp.Click(css("form button.primary")))
	b.reads(".live", "live")
	b.clicks(".row")
	b.reads("#item-title", "Enterprise plan")
	b.clicks("[data-open=approve]")
	b.clicks("#approve button[type=submit]")
	b.reads("#item > .notice", "approved by alice")
	b.opens("items/" + id)
	b.reads("#item-title", "Enterprise plan")
	b.reads(".live", "live")
	if got := w.state(buyer); got != "CONVERSING" {
		t.Errorf("the session is %s", got)
	}
}

// TestDev picks a human, and is told loudly.
func TestDev(t *testing.T) {
	w := newWorld(t, testkit.Options{Dev: true})
	buyer, _, id := w.asks("Enterprise plan", "high", plan)
	b := w.browser()
	b.opens("items/" + id)
	b.reads(".dev", "there is no login")
	b.types("#agent", string(alice))
	b.clicks("form button.primary")
	b.reads(".dev", "there is no login")
	b.reads("#item-title", "Enterprise plan")
	b.clicks("[data-open=guidance]")
	b.types("#guidance-comment", "Ask for 30 days")
	b.clicks("#guidance button[type=submit]")
	b.reads("#item > .notice", "guidance by alice")
	if got := w.state(buyer); got != "CONVERSING" {
		t.Errorf("the session is %s", got)
	}
}

// TestSignsInAgain has a browser whose cookie is gone, and whose key is not.
func TestSignsInAgain(t *testing.T) {
	w := newWorld(t, testkit.Options{})
	_, _, id := w.asks("Enterprise plan", "high", plan)
	b := w.enters(alice, "items/"+id)
	b.sees("#item")
	w.Down()
	w.Up() // who is signed in was in memory
	b.opens("items/" + id)
	b.reads("#item-title", "Enterprise plan")
	w.Down()
	w.Up()
	b.opens("sessions/" + id + "/obligation?commitment=k1&obligation=0") // as a mail's link has it
	b.reads("main", "There is no such session")
	if at := get[string](b, "location.pathname + location.search"); !strings.HasSuffix(at, "/obligation?commitment=k1&obligation=0") {
		t.Errorf("it lands on %s", at)
	}
	if extractable := get[bool](b, `(async () => {
  const db = await new Promise((ok) => { const r = indexedDB.open('parley-inbox'); r.onsuccess = () => ok(r.result); });
  const key = await new Promise((ok) => { const r = db.transaction('keys').objectStore('keys').get('current'); r.onsuccess = () => ok(r.result); });
  db.close();
  return key.pair.privateKey.extractable;
})()`); extractable {
		t.Error("the key can be copied out of the browser")
	}
}

// TestAnotherBrowser tells somebody of a browser that was enrolled after theirs.
func TestAnotherBrowser(t *testing.T) {
	w := newWorld(t, testkit.Options{})
	first := w.enters(alice, "")
	if first.has(".dev") {
		t.Error("the only browser is told of another")
	}
	second := w.enters(alice, "")
	if second.has(".dev") {
		t.Error("the newest browser is told of another")
	}
	first.opens("")
	first.reads(".dev", "Another browser was enrolled for you, “test”")
	first.readable()
	first.fits()
}

// TestSignsOut stays signed out until told otherwise.
func TestSignsOut(t *testing.T) {
	w := newWorld(t, testkit.Options{})
	_, _, id := w.asks("Enterprise plan", "high", plan)
	b := w.enters(alice, "")
	b.clicks("[data-do=leave]")
	b.reads("#again", string(alice))
	b.clicks("[data-do=again]")
	b.sees(`.row[data-id="` + id + `"]`)
	b.clicks("[data-do=leave]")
	b.clicks("[data-do=forget]")
	b.holds(`document.querySelector("#again").hidden`) // it takes a moment, which leaving would cut short
	b.opens("")
	b.sees("#code")
	if b.has("#again:not([hidden]), .row") {
		t.Error("a key that was forgotten is there")
	}
}

// TestTwoHumans has a human of another organisation enrol in a browser in which a page is open: what the first human is
// told nothing of, the second one has at once.
func TestTwoHumans(t *testing.T) {
	w := newWorld(t, testkit.Options{})
	const carol performatives.Agent = "human://clouds.example/carol"
	w.registers(carol)
	first := w.enters(alice, "")
	first.reads(".live", "live")
	second, closes := first.tab()
	defer closes()
	second.opens("login?out")
	second.do(chromedp.SendKeys(css("#code"), w.code(carol)), chromedp.SendKeys(css("#name"), "test"), chromedp.Click(css("form button.primary")))
	second.sees(".queue")
	second.reads(".live", "live")
	buyer, seller := w.opens("Offer an enterprise plan")
	w.said(buyer.Propose(w.Ctx, client.Proposal{ID: "p1", Type: "service-agreement", Subject: "Enterprise plan", Terms: plan}))
	asked, err := seller.Escalate(w.Ctx, client.Escalation{Reason: client.AuthorityLimit, Urgency: "high", About: "p1", Context: "It is below our price"})
	testkit.Must(t, err)
	second.sees(`.row[data-id="` + string(asked.Message) + `"]`)
}

// TestNewsDuringAClick has the queue change between the press and the release of a click.
func TestNewsDuringAClick(t *testing.T) {
	const fetched = `performance.getEntriesByType("resource").filter((r) => r.name.includes("part/queue") && r.responseEnd > 0).length`
	w := newWorld(t, testkit.Options{})
	_, _, id := w.asks("Enterprise plan", "high", plan)
	b := w.enters(alice, "")
	row := `.row[data-id="` + id + `"]`
	b.sees(row)
	b.holds(`document.querySelector("#live").dataset.live === "yes"`)
	type point struct{ X, Y float64 }
	at := get[point](b, fmt.Sprintf(`(() => { const r = document.querySelector(%q).getBoundingClientRect(); return { X: r.x + r.width / 2, Y: r.y + r.height / 2 }; })()`, row))
	mouse := func(how input.DispatchMouseEventType) {
		b.do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
			_, err := cdp.Call(ctx, t, input.DispatchMouseEvent, input.DispatchMouseEventParams{Type: how, X: at.X, Y: at.Y, Button: input.MouseButtonLeft, Buttons: 1, ClickCount: 1})
			return err
		}))
	}
	before := get[int](b, fetched)
	mouse("mousePressed")
	w.asks("Another plan", "high", plan)
	b.holds(fmt.Sprintf("%s > %d", fetched, before))
	mouse("mouseReleased")
	b.reads("#item-title", "Enterprise plan")
	b.holds(`document.querySelectorAll(".row").length === 2`)
}

// TestManyItems prints how long the page takes with so many open items.
func TestManyItems(t *testing.T) {
	const workers = 8
	items := *manyItems
	w := newWorld(t, testkit.Options{Sync: time.Minute, Limits: limits.Limits{Rate: 1e6, InFlight: 1000, Sessions: 2 * items}})
	w.takes(15 * time.Minute)
	w.as(sales)
	w.as(alpha)
	began := time.Now()
	var work sync.WaitGroup
	for n := range workers {
		work.Go(func() {
			for i := n; i < items; i += workers {
				buyer, _ := w.opens(fmt.Sprintf("Order %05d", i))
				w.said(buyer.Escalate(w.Ctx, client.Escalation{Reason: client.ConfidenceLow, Urgency: []string{"low", "medium", "high", "critical"}[i%4], Context: "?"}))
			}
		})
	}
	work.Wait()
	t.Logf("%d items made in %s", items, time.Since(began).Round(time.Second))
	began = time.Now()
	w.calls(alice, api.EscalationList.Name, api.ListEscalations{Limit: 60})
	t.Logf("the verb alone: %s", time.Since(began).Round(time.Millisecond))
	b := w.enters(alice, "")
	b.holds(fmt.Sprintf(`document.querySelector(".tabs .n").textContent === "%d"`, items))
	b.opens("")
	b.sees(".row")
	b.holds(`performance.getEntriesByName("first-contentful-paint").length > 0`)
	t.Logf("the queue: %s", get[string](b, `(() => {
  const n = performance.getEntriesByType('navigation')[0];
  const paint = performance.getEntriesByName('first-contentful-paint')[0];
  return 'answer ' + Math.round(n.responseEnd - n.requestStart) + ' ms, first paint ' + Math.round(paint?.startTime ?? -1) + ' ms, ' + document.querySelectorAll('.row').length + ' rows, ' + Math.round(n.transferSize / 1024) + ' KiB';
})()`))
	began = time.Now()
	b.clicks(".row")
	b.sees("#item")
	t.Logf("opening an item: %s", time.Since(began).Round(time.Millisecond))
	began = time.Now()
	b.clicks("[data-open=guidance]")
	b.types("#guidance-comment", "go on")
	b.clicks("#guidance button[type=submit]")
	b.holds(fmt.Sprintf(`document.querySelector(".tabs .n").textContent === "%d"`, items-1))
	t.Logf("deciding, until the count says so: %s", time.Since(began).Round(time.Millisecond))
	get[bool](b, `(document.querySelector("[data-more]").focus(), true)`) // which it keeps while the queue is drawn anew
	b.presses("\r")
	b.holds(`document.querySelectorAll(".row").length > 60`)
}
