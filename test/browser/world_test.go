//go:build browser

// Package browser goes through the escalation inbox in a real Chromium, as a
// person does, and has an agent in a page negotiate: .ci/browser installs it where it is missing, and runs this.
package browser

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/go-json-experiment/json"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/test/testkit"
)

const (
	alpha = performatives.Agent("agent://acme.example/procurement/alpha")
	sales = performatives.Agent("agent://clouds.example/sales/enterprise")
	alice = performatives.Agent("human://acme.example/alice")
	bob   = performatives.Agent("human://acme.example/bob")

	patience = 2 * time.Minute // for what must come
	shift    = 8 * time.Minute // for a whole test, unless it takes longer
	grace    = 3 * time.Minute // for what still goes on then
)

var (
	screenshots = flag.Bool("screenshots", false, "write the screenshots of docs/")
	manyItems   = flag.Int("items", 1000, "how many open items TestManyItems makes; 10000 takes a minute")
	axe         = flag.String("axe", "", "axe.min.js of axe-core, which .ci/browser gets")
	chromium    = flag.String("chromium", "chromium", "the browser to run")
)

// browserContext is the one Chromium of this run; each person has a profile of
// their own in it.
var browserContext context.Context

func TestMain(m *testing.M) {
	flag.Parse()
	profile, err := os.MkdirTemp("", "parley-browser")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	allocator, stop := chromedp.NewExecAllocator(context.Background(),
		chromedp.ExecPath(*chromium), chromedp.UserDataDir(profile), chromedp.Headless, chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.NoFirstRun, chromedp.Flag("disable-quic", true), chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true),
		chromedp.Flag("disable-dev-shm-usage", true), chromedp.Flag("hide-scrollbars", true), chromedp.Env("TZ=UTC", "LANG=en_GB.UTF-8"),
		chromedp.Flag("lang", "en-GB"),
		// A page behind another one is as quick as the one in front.
		chromedp.Flag("disable-background-timer-throttling", true), chromedp.Flag("disable-backgrounding-occluded-windows", true),
		chromedp.Flag("disable-renderer-backgrounding", true), chromedp.Flag("disable-hang-monitor", true),
	)
	var quit context.CancelFunc
	browserContext, quit = chromedp.NewContext(allocator)
	status := 1
	if err := starts(browserContext, quit); err != nil {
		fmt.Fprintf(os.Stderr, "%s does not start: %v\n.ci/browser installs it where it is missing\n", *chromium, err)
	} else {
		status = m.Run()
	}
	ending := time.AfterFunc(grace, func() { // a browser that does not go is no reason to stay
		fmt.Fprintf(os.Stderr, "%s does not end within %s\n", *chromium, grace)
		os.Exit(max(status, 1))
	})
	quit()
	stop()
	ending.Stop()
	if err := os.RemoveAll(profile); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(status)
}

// starts makes the browser or the page of a context, which lives as long as the
// context of its first action: that one can have no deadline, so it is called off.
func starts(ctx context.Context, callOff context.CancelFunc) error {
	late := time.AfterFunc(patience, callOff)
	err := chromedp.Do(ctx)
	if !late.Stop() {
		return fmt.Errorf("there is no page after %s: %w", patience, errors.Join(err, context.DeadlineExceeded))
	}
	return err
}

// world is a broker with pages, two agents and the humans behind one of them.
type world struct {
	*testkit.World
	clients map[performatives.Agent]*client.Client

	late, stuck *time.Timer
}

// takes says how long the test may go on. After that nothing waits any longer;
// and should something wait all the same, it is named.
func (w *world) takes(d time.Duration) {
	w.late.Reset(d)
	w.stuck.Reset(d + grace)
}

func newWorld(t *testing.T, o testkit.Options) *world {
	t.Helper()
	o.HTTP = "127.0.0.1:0"
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	w := &world{clients: map[performatives.Agent]*client.Client{}}
	w.late = time.AfterFunc(shift, func() {
		t.Error("this takes longer than it may")
		cancel()
	})
	w.stuck = time.AfterFunc(shift+grace, func() {
		debug.SetTraceback("all")
		panic(t.Name() + " hangs")
	})
	t.Cleanup(func() { w.late.Stop(); w.stuck.Stop() })
	w.World = testkit.NewWorld(t, o)
	w.Ctx = ctx
	if !o.Dev {
		for _, a := range []performatives.Agent{alpha, sales, alice, bob} {
			w.registers(a)
		}
	}
	return w
}

func (w *world) registers(a performatives.Agent, change ...func(*api.Card)) {
	w.Helper()
	name := strings.ToUpper(string(a[strings.LastIndex(string(a), "/")+1])) + string(a[strings.LastIndex(string(a), "/")+2:])
	w.Principal(a, append([]func(*api.Card){func(c *api.Card) { c.Name = name }}, change...)...)
}

// as is the client of an agent, or of a human at the command line.
func (w *world) as(a performatives.Agent) *client.Client {
	w.Helper()
	if w.clients[a] == nil {
		w.clients[a] = w.Client(a)
	}
	return w.clients[a]
}

func (w *world) said(_ client.Receipt, err error) {
	w.Helper()
	testkit.Must(w, err)
}

// opens is a session of the two agents, CONVERSING.
func (w *world) opens(purpose string) (buyer, seller *client.Session) {
	w.Helper()
	s, err := w.as(sales).Invite(w.Ctx, client.Invitation{With: []performatives.Agent{alpha}, Purpose: purpose, MaxDuration: 24 * time.Hour})
	testkit.Must(w, err)
	view, err := w.as(sales).View(w.Ctx, s.ID())
	testkit.Must(w, err)
	buyer = w.as(alpha).Session(s.ID())
	w.said(buyer.Accept(w.Ctx, view.Invitation.Proposal))
	return buyer, s
}

// asks is the $15,000 proposal of the seed, and the buyer's agent that asks
// about it. It returns the escalation's id.
func (w *world) asks(subject, urgency string, terms any) (buyer, seller *client.Session, escalation string) {
	w.Helper()
	buyer, seller = w.opens("Offer an enterprise plan")
	w.said(seller.Propose(w.Ctx, client.Proposal{ID: "prop_050", Type: "service-agreement", Subject: subject, Terms: terms}))
	receipt, err := buyer.Escalate(w.Ctx, client.Escalation{
		Reason: client.AuthorityLimit, Urgency: urgency, About: "prop_050",
		Context:         "Proposed commitment of $15,000/month exceeds my authorized spending limit of $5,000/month",
		SuggestedAction: "Approve the commitment or provide a revised budget ceiling",
	})
	testkit.Must(w, err)
	return buyer, seller, string(receipt.Message)
}

var plan = map[string]any{"seats": 300, "support": "24/7", "pricePerMonth": 15000, "currency": "USD"}

// state is where the session stands.
func (w *world) state(s *client.Session) string {
	w.Helper()
	view, err := w.as(alpha).View(w.Ctx, s.ID())
	testkit.Must(w, err)
	return view.State.String()
}

// code is what an operator gives to a human who is to enrol a browser.
func (w *world) code(a performatives.Agent) string {
	w.Helper()
	reply, err := w.OperatorClient().Conn().RequestWithContext(w.Ctx, api.OperatorCall(api.HumanEnrol.Name), []byte(`{"agentId":"`+string(a)+`"}`))
	testkit.Must(w, err)
	var e api.Enrolment
	testkit.Must(w, json.Unmarshal(reply.Data, &e))
	if e.Code == "" {
		w.Fatalf("no code: %s", reply.Data)
	}
	return e.Code
}

// A browser is one profile of Chromium, with one page.
type browser struct {
	testing.TB
	ctx  context.Context
	test context.Context // over with the test
	root string
}

func (w *world) browser() *browser {
	w.Helper()
	b := &browser{TB: w, test: w.Ctx, root: "http://" + w.HTTPAddr + "/inbox/"}
	b.begins(browserContext, chromedp.WithNewBrowserContext())
	return b
}

// tab is another page of the same profile, until it is closed.
func (b *browser) tab() (t *browser, closes func()) {
	b.Helper()
	t = &browser{TB: b.TB, test: b.test, root: b.root}
	return t, t.begins(b.ctx)
}

// begins makes the page, and fails the test for whatever the page's scripts fail
// with, and for what its policy keeps out.
func (b *browser) begins(in context.Context, how ...chromedp.ContextOption) (closes func()) {
	b.Helper()
	var cancel context.CancelFunc
	var listener sync.WaitGroup
	b.ctx, cancel = chromedp.NewContext(in, how...)
	stop := context.AfterFunc(b.test, cancel)
	closes = func() { stop(); cancel(); listener.Wait() }
	b.Cleanup(closes)
	if err := starts(b.ctx, cancel); err != nil {
		b.Fatal(err)
	}
	console := chromedp.Console(b.ctx)
	listener.Go(func() {
		for m, err := range console {
			switch {
			case err != nil:
				return
			case m.IsException(), strings.Contains(m.Text, "Content Security Policy"):
				b.Errorf("in the page: %s", m)
			case b.ctx.Err() == nil:
				b.Logf("in the page: %s", m)
			}
		}
	})
	b.do(chromedp.EmulateViewport(1440, 900))
	return closes
}

// enters enrols the browser as a human does, and looks at a page.
func (w *world) enters(a performatives.Agent, path string) *browser {
	w.Helper()
	b := w.browser()
	b.opens("login?next=" + path)
	b.do(chromedp.SendKeys(css("#code"), w.code(a)), chromedp.SendKeys(css("#name"), "test"), chromedp.Click(css("form button.primary")))
	b.sees(".queue, .door .refused:not(:empty)")
	if refused := b.text(".refused"); b.has(".door") && refused != "" {
		w.Fatal(refused)
	}
	return b
}

// css is how this package names an element.
type css = chromedp.CSS

func (b *browser) do(actions ...chromedp.Action[chromedp.Void]) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	for _, action := range actions {
		err := chromedp.Do(ctx, action)
		for gone(err) {
			err = chromedp.Do(ctx, action)
		}
		if err != nil {
			b.fails(err)
		}
	}
}

// gone reports whether an action found a node that a live page has replaced before it did anything with it.
func gone(err error) bool {
	return err != nil && strings.Contains(err.Error(), "Could not find node with given id")
}

// fails ends the test with what is on the page.
func (b *browser) fails(err error) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, 5*time.Second) // it may be the page that hangs
	defer cancel()
	there, lost := chromedp.Run(ctx, chromedp.Evaluate[string](`location.href + "\n" + document.body.innerText`))
	if lost != nil {
		there = lost.Error()
	}
	b.Fatalf("%v\nThe page has: %.3000s", err, there)
}

// get is the value of an expression in the page.
func get[T any](b *browser, expression string) T {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		b.fails(fmt.Errorf("%s: %w", expression, err))
	}
	return value
}

func (b *browser) opens(path string) { b.Helper(); b.do(chromedp.Navigate(b.root + path)) }

func (b *browser) sees(selector string) {
	b.Helper()
	b.do(chromedp.WaitVisible(css(selector)))
}

// clicks waits for the page's scripts too: a page that is not there yet receives
// nothing. What is clicked stays where it is for two frames, and nothing is above it.
func (b *browser) clicks(selector string) {
	b.Helper()
	b.sees(selector)
	b.holds(`document.readyState === "complete"`)
	b.holds(fmt.Sprintf(`(async () => {
  const at = () => document.querySelector(%q)?.getClientRects()[0];
  document.querySelector(%[1]q)?.scrollIntoView({ block: "nearest", behavior: "instant" });
  const before = at();
  await new Promise((ok) => requestAnimationFrame(() => requestAnimationFrame(ok)));
  const now = at();
  if (!before || !now || before.x !== now.x || before.y !== now.y) return false;
  const top = document.elementFromPoint(now.x + now.width / 2, now.y + now.height / 2);
  return Boolean(top?.closest(%[1]q) || document.querySelector(%[1]q).contains(top));
})()`, selector))
	b.do(chromedp.WaitVisible(css(selector)), chromedp.Click(css(selector)))
}

func (b *browser) types(selector, text string) {
	b.Helper()
	b.sees(selector)
	b.holds(`document.readyState === "complete"`)
	get[string](b, fmt.Sprintf(`document.querySelector(%q).value = ""`, selector))
	b.do(chromedp.SendKeys(css(selector), text))
}

// presses is for the keyboard alone. A single letter goes as one event with its
// text, so that a page that takes the key keeps it from being written.
func (b *browser) presses(keys string, with ...chromedp.KeyOption) {
	b.Helper()
	b.holds(`document.readyState === "complete"`)
	if len(keys) > 1 || keys < " " {
		b.do(chromedp.KeyEvent(keys, with...))
		return
	}
	b.do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		for _, half := range []input.DispatchKeyEventParams{{Type: "keyDown", Text: keys, Key: keys}, {Type: "keyUp", Key: keys}} {
			if _, err := cdp.Call(ctx, t, input.DispatchKeyEvent, half); err != nil {
				return err
			}
		}
		return nil
	}))
}

func (b *browser) signs() {
	b.Helper()
	b.presses(kb.Enter, chromedp.KeyModifiers(chromedp.ModifierCtrl))
}

// reads waits until an element has this text in it.
func (b *browser) reads(selector, text string) {
	b.Helper()
	b.holds(fmt.Sprintf(`[...document.querySelectorAll(%q)].some((e) => e.innerText.replaceAll("\u00a0", " ").includes(%q))`, selector, text))
}

// holds waits until an expression is true, on whatever page comes.
func (b *browser) holds(expression string) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	var err error
	if late := testkit.Until(ctx, func() (yes bool) {
		yes, err = chromedp.Run(ctx, chromedp.Evaluate[bool](expression, chromedp.EvalAwaitPromise))
		return yes && err == nil
	}); late != nil {
		b.fails(fmt.Errorf("%s does not become true: %w", expression, errors.Join(err, late)))
	}
}

func (b *browser) text(selector string) string {
	b.Helper()
	return get[string](b, fmt.Sprintf(`document.querySelector(%q)?.innerText ?? ""`, selector))
}

func (b *browser) has(selector string) bool {
	b.Helper()
	return get[bool](b, fmt.Sprintf(`!!document.querySelector(%q)`, selector))
}

// photographs writes a picture of the window for docs/, if that was asked for.
func (b *browser) photographs(name string) {
	b.Helper()
	if !*screenshots {
		return
	}
	picture, err := small(b.picture())
	if err != nil {
		b.Fatal(err)
	}
	where := filepath.Join("..", "..", "docs", "inbox", name+".png")
	if err := os.MkdirAll(filepath.Dir(where), 0o750); err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(where, picture, 0o600); err != nil {
		b.Fatal(err)
	}
}

// picture is one of the window. Chromium can miss the frame that it waits for,
// of a page that has just come, and then waits for ever: it is asked again.
func (b *browser) picture() []byte {
	b.Helper()
	for try := 1; ; try++ {
		ctx, cancel := context.WithTimeout(b.ctx, 15*time.Second)
		png, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
		cancel()
		if err == nil {
			return png
		}
		if try == 5 || b.ctx.Err() != nil {
			b.Fatalf("no picture: %v", err)
		}
		b.Logf("no picture at the first try: %v", err)
	}
}
