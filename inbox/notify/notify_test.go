package notify_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-smtp"
	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/inbox/notify"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/test/testkit"
)

const (
	acme  = performatives.Organisation("acme.example")
	alice = performatives.Agent("human://acme.example/alice")
	bob   = performatives.Agent("human://acme.example/bob")
	id    = "019478a3-7b2c-7def-8a12-3456789abcde"
)

var secret = []byte("0123456789abcdef0123456789abcdef")

// world is a broker with a web server and a mail server that receive notifications.
type world struct {
	testing.TB
	*testkit.Broker
	ctx   context.Context //nolint:containedctx // the test's own
	dir   string
	hooks chan *http.Request // a hook's, with its body read
	down  int                // how many of them to answer with a failure first
	mails chan string

	passwords chan string
	hook      *httptest.Server
	smtp      net.Listener
	mu        sync.Mutex
	item      api.EscalationItem
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := listens(t)
	w.Broker = testkit.StartBroker(t, testkit.Options{})
	return w
}

// listens is a world without a broker.
func listens(t *testing.T) *world {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	t.Cleanup(cancel)
	w := &world{TB: t, ctx: ctx, dir: t.TempDir(), hooks: make(chan *http.Request, 64), mails: make(chan string, 64)}
	w.hook = httptest.NewServer(http.HandlerFunc(w.answer))
	t.Cleanup(w.hook.Close)
	var err error
	if w.smtp, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	server := smtp.NewServer(w)
	server.Domain = "localhost"
	go server.Serve(w.smtp) //nolint:errcheck // it ends with the test
	t.Cleanup(func() { server.Close() })
	at := time.Now()
	w.item = api.EscalationItem{
		EscalationView: api.EscalationView{
			ID: id, By: "agent://acme.example/procurement/alpha", OnBehalfOf: "agent://acme.example/procurement/alpha", Organisation: acme,
			Reason: "authority-limit", Urgency: "high", Context: []byte(`"beyond my limit\r\nBcc: x@evil.example"`), Status: "open",
			At: at.Format(time.RFC3339Nano), Deadline: at.Add(time.Hour).Format(time.RFC3339Nano),
			Amount: &escalation.Amount{Value: 15000, Currency: "USD", Path: "terms.price"},
		},
		Counterparties: []performatives.Agent{"agent://clouds.example/sales"},
		Proposal:       &api.OfferView{By: "agent://clouds.example/sales", Subject: "<b>Cheap</b>\u202e plan", Terms: []byte(`{"price":15000}`)},
		Route:          &api.Route{Levels: []api.Level{{Approvers: []performatives.Agent{alice}, Quorum: 1}, {Approvers: []performatives.Agent{bob}, Quorum: 1}}},
	}
	return w
}

func (w *world) answer(out http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		w.Error(err)
	}
	w.mu.Lock()
	fail := w.down > 0
	w.down--
	w.mu.Unlock()
	if fail {
		out.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	r.Body = io.NopCloser(strings.NewReader(string(body)))
	w.hooks <- r
}

// NewSession, Mail, Rcpt and Data make a mail server of it.
func (w *world) NewSession(*smtp.Conn) (smtp.Session, error) { return &letter{w: w}, nil }

type letter struct {
	w  *world
	to []string
}

func (*letter) Mail(string, *smtp.MailOptions) error { return nil }
func (l *letter) Rcpt(to string, _ *smtp.RcptOptions) error {
	l.to = append(l.to, to)
	return nil
}

func (l *letter) Data(r io.Reader) error {
	data, err := io.ReadAll(r)
	l.w.mails <- "RCPT " + strings.Join(l.to, ",") + "\r\n" + string(data)
	return err
}
func (l *letter) Reset()      { l.to = nil }
func (*letter) Logout() error { return nil }

// config writes a file and loads it.
func (w *world) config(text string) *notify.Config {
	w.Helper()
	path := filepath.Join(w.dir, "notify.yaml")
	text = strings.NewReplacer("HOOK", w.hook.URL, "SMTP", w.smtp.Addr().String()).Replace(text)
	for name, content := range map[string]string{"notify.yaml": text, "hook.secret": "whsec_" + base64.StdEncoding.EncodeToString(secret) + "\n"} {
		testkit.Must(w, os.WriteFile(filepath.Join(w.dir, name), []byte(content), 0o600))
	}
	c, err := notify.Load(path)
	testkit.Must(w, err)
	return c
}

func (w *world) starts(c *notify.Config) *notify.Notifier {
	w.Helper()
	return w.startsWith(c, func(*notify.Options) {})
}

func (w *world) startsWith(c *notify.Config, change func(*notify.Options)) *notify.Notifier {
	w.Helper()
	o := notify.Options{
		Conn: w.Server.Broker.Options.Conn, Config: c, Item: func(context.Context, string) (api.EscalationItem, error) { return w.item, nil },
		Delays: []time.Duration{time.Millisecond},
	}
	change(&o)
	n, err := notify.Start(context.Background(), o)
	testkit.Must(w, err)
	w.Cleanup(n.Close)
	return n
}

// happens writes an event as the broker does.
func (w *world) happens(e escalation.Action) {
	w.Helper()
	e.At = time.Now()
	data, err := json.Marshal(map[string]any{"event": e})
	testkit.Must(w, err)
	if _, err := w.Server.Broker.Options.Conn.Request(api.CaseLogOf(acme, id), data, testkit.Patience); err != nil {
		w.Fatal(err)
	}
}

func next[T any](w *world, from chan T) T {
	w.Helper()
	select {
	case v := <-from:
		return v
	case <-w.ctx.Done():
		w.Fatal("nothing was told")
		panic("unreachable")
	}
}

const both = `
links: https://parley.acme.example/inbox
smtp: {server: SMTP, from: parley@acme.example, tls: none}
organisations:
  acme.example:
    webhooks:
      - {url: HOOK, secretFile: hook.secret}
    mail:
      people: {human://acme.example/alice: alice@acme.example, human://acme.example/bob: bob@acme.example}
`

// TestWebhook checks the body and the signature of a webhook.
func TestWebhook(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.starts(w.config(both))
	w.happens(escalation.Action{Kind: escalation.Opened, By: w.item.By})
	r := next(w, w.hooks)
	body, err := io.ReadAll(r.Body)
	testkit.Must(t, err)
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(r.Header.Get("Webhook-Id") + "." + r.Header.Get("Webhook-Timestamp") + "." + string(body)))
	if want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)); r.Header.Get("Webhook-Signature") != want {
		t.Errorf("the signature is %q, want %q", r.Header.Get("Webhook-Signature"), want)
	}
	var p notify.Payload
	testkit.Must(t, json.Unmarshal(body, &p))
	if p.Type != "escalation.opened" || p.Link != "https://parley.acme.example/inbox/items/"+id || p.Amount.Value != 15000 || r.Method != http.MethodPost {
		t.Errorf("told %s %s", r.Method, body)
	}
	if strings.Contains(string(body), "Cheap") || strings.Contains(string(body), "beyond") {
		t.Errorf("a hook is told what was said: %s", body)
	}
}

// TestFromTheBroker checks that an escalation at a broker is notified.
func TestFromTheBroker(t *testing.T) {
	t.Parallel()
	w := listens(t)
	w.Broker = testkit.StartBroker(t, testkit.Options{Dev: true, Notify: w.config(both)})
	ctx := w.ctx
	connect := func(a performatives.Agent) *client.Client {
		c, err := client.Connect(ctx, w.URL, a, client.Unsigned())
		testkit.Must(t, err)
		t.Cleanup(func() { c.Close() })
		return c
	}
	seller, buyer := connect("agent://clouds.example/sales"), connect(w.item.By)
	s, err := seller.Invite(ctx, client.Invitation{With: []performatives.Agent{w.item.By}})
	testkit.Must(t, err)
	invitation, err := buyer.Await(ctx, performatives.Propose)
	testkit.Must(t, err)
	for _, step := range []func() (client.Receipt, error){
		func() (client.Receipt, error) { return buyer.Session(s.ID()).Accept(ctx, invitation.Ref()) },
		func() (client.Receipt, error) {
			return s.Propose(ctx, client.Proposal{ID: "p", Type: "service-agreement", Terms: map[string]any{"price": 15000, "currency": "USD"}})
		},
		func() (client.Receipt, error) {
			return buyer.Session(s.ID()).Escalate(ctx, client.Escalation{Reason: client.AuthorityLimit, About: "p", Context: "beyond my limit"})
		},
	} {
		if _, err := step(); err != nil {
			t.Fatal(err)
		}
	}
	var p notify.Payload
	testkit.Must(t, json.UnmarshalRead(next(w, w.hooks).Body, &p))
	if p.Type != "escalation.opened" || p.Session != s.ID() || p.Amount == nil || p.Amount.Value != 15000 || p.Status != "open" {
		t.Errorf("told is %+v", p)
	}
	if mail := next(w, w.mails); !strings.Contains(mail, p.Link[len(p.Link)-8:]) {
		t.Errorf("the mail has no link to %s: %s", p.Link, mail)
	}
	w.remembers(p.Escalation, "mail to alice@acme.example, bob@acme.example", "webhook "+strings.TrimPrefix(w.hook.URL, "http://"))
}

// remembers waits until what happened around an item has who was told, and asks for its history.
func (w *world) remembers(item string, want ...string) {
	w.Helper()
	js, err := jetstream.New(w.Server.Broker.Options.Conn)
	testkit.Must(w, err)
	events, err := js.OrderedConsumer(w.ctx, api.CaseLogStream, jetstream.OrderedConsumerConfig{FilterSubjects: []string{api.CaseLogOf(acme, item)}})
	testkit.Must(w, err)
	told := 0
	for told < len(want) {
		m, err := events.Next(jetstream.FetchContext(w.ctx))
		testkit.Must(w, err)
		var happened struct{ Event escalation.Action }
		testkit.Must(w, json.Unmarshal(m.Data(), &happened, json.MatchCaseInsensitiveNames(true)))
		if happened.Event.Kind == escalation.Notified {
			told++
		}
	}
	request, err := json.Marshal(api.GetEscalation{Escalation: item})
	testkit.Must(w, err)
	reply, err := testkit.Request(w.Server.Broker.Options.Conn, api.OperatorCall(api.EscalationHistory.Name), request)
	testkit.Must(w, err)
	for _, who := range want {
		if !strings.Contains(string(reply.Data), who) {
			w.Errorf("the history does not say %q: %s", who, reply.Data)
		}
	}
}

// TestEnrolled checks that an enrolled browser is announced to its human, and by
// mail to nobody else.
func TestEnrolled(t *testing.T) {
	t.Parallel()
	w := listens(t)
	w.Broker = testkit.StartBroker(t, testkit.Options{Notify: w.config(both + "      always: [approvals@acme.example]\n")})
	w.Register(alice)
	w.Register(bob)
	reply, err := w.Server.Broker.Options.Conn.Request(api.OperatorCall(api.HumanEnrol.Name), []byte(`{"agentId":"`+string(alice)+`"}`), testkit.Patience)
	testkit.Must(t, err)
	var code api.Enrolment
	testkit.Must(t, json.Unmarshal(reply.Data, &code))
	key := testkit.Public(t, testkit.NewKey(t))
	if _, err := w.Server.Broker.Parts.Registry.Redeem(t.Context(), code.Code, performatives.Key(key), "phone\r\nBcc: x@evil.example"); err != nil {
		t.Fatal(err)
	}
	mail := next(w, w.mails)
	head, text, _ := strings.Cut(mail, "\r\n\r\n")
	text = strings.ReplaceAll(strings.ReplaceAll(text, "=\r\n", ""), "=3D", "=")
	if !strings.HasPrefix(head, "RCPT alice@acme.example\r\n") || strings.Contains(head, "evil") ||
		!strings.Contains(text, "parley human unenrol "+string(alice)+" "+key) || !strings.Contains(text, "> phone") {
		t.Errorf("the mail is %s", mail)
	}
	var p notify.EnrolledPayload
	testkit.Must(t, json.UnmarshalRead(next(w, w.hooks).Body, &p))
	if p.Type != "human.enrolled" || p.Human != alice || p.Device.Key != performatives.Key(key) {
		t.Errorf("the hook is told %+v", p)
	}
}

// TestRetry checks that failures are retried with the same id, also after a restart.
func TestRetry(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.config(both)
	w.down = 3
	first := w.starts(c)
	w.happens(escalation.Action{Kind: escalation.Opened})
	one := next(w, w.hooks)
	first.Close()
	w.happens(escalation.Action{Kind: escalation.Decided, By: alice})
	w.Down()
	w.Up()
	w.starts(c)
	two := next(w, w.hooks)
	if a, b := one.Header.Get("Webhook-Id"), two.Header.Get("Webhook-Id"); a == b {
		t.Errorf("two events have one id, %s", a)
	}
	body, err := io.ReadAll(two.Body)
	if err != nil || !strings.Contains(string(body), "escalation.decided") {
		t.Errorf("after the restart it is told %s (%v)", body, err)
	}
}

// A target whose consumer was deleted is told of what happens after it was made anew.
func TestConsumerDeleted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.starts(w.config(both))
	js, err := jetstream.New(w.Server.Broker.Options.Conn)
	testkit.Must(t, err)
	cases, err := js.Stream(w.ctx, api.CaseLogStream)
	testkit.Must(t, err)
	consumers := func() (names []string) {
		for name := range cases.ConsumerNames(w.ctx).Name() {
			if strings.HasPrefix(name, "notify-") {
				names = append(names, name)
			}
		}
		return names
	}
	before := consumers()
	for _, name := range before {
		testkit.Must(t, cases.DeleteConsumer(w.ctx, name))
	}
	testkit.Eventually(t, "the consumers are made anew", func() bool { return len(before) > 0 && len(consumers()) == len(before) })
	w.happens(escalation.Action{Kind: escalation.Opened, By: w.item.By})
	next(w, w.hooks)
	next(w, w.mails)
}

// TestAllowed: who is told that an item was approved is told what that allows. What the counterparty
// wrote stays out of webhooks, and is quoted in mails.
func TestAllowed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	most := 15000.0
	w.item.Status, w.item.DecidedBy = performatives.Modified, alice
	w.item.Votes = []api.VoteView{{By: alice, Decision: performatives.Modified, Authority: &performatives.RulingsAuthority{Bounds: []performatives.RulingsBound{
		{TermPath: "terms.pricePerMonth", Max: &most, Currency: "USD"},
		{TermPath: "terms.support", Equals: []byte(`"pay at evil.example"`)},
	}}}}
	w.starts(w.config(strings.Replace(both, "mail:", "mail:\n      events: [decided]", 1)))
	told := func(e escalation.Action) (p notify.Payload, mail string) {
		t.Helper()
		w.happens(e)
		testkit.Must(t, json.UnmarshalRead(next(w, w.hooks).Body, &p))
		return p, strings.ReplaceAll(strings.ReplaceAll(next(w, w.mails), "=\r\n", ""), "=3D", "=")
	}
	p, mail := told(escalation.Action{Kind: escalation.Decided, By: alice})
	if p.Allowed == nil || len(p.Allowed.Bounds) != 1 || *p.Allowed.Bounds[0].Max != most || p.Allowed.More != 1 {
		t.Errorf("the hook is told %+v", p.Allowed)
	}
	if !strings.Contains(mail, "> terms.pricePerMonth: at most 15000 USD, terms.support: exactly pay at evil.example; may change: price") {
		t.Errorf("the mail is %s", mail)
	}
	w.item.Status = performatives.Denied
	if p, mail := told(escalation.Action{Kind: escalation.Decided, By: alice}); p.Allowed != nil || strings.Contains(mail, "may agree to") {
		t.Errorf("of a denial they are told %+v, %s", p.Allowed, mail)
	}
}

// TestMail checks that those who are asked get mail, and that text of others is quoted.
func TestMail(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.item.Amount.Currency = "USD, pay at evil.example"
	w.item.TermsHash = "sha256:00"
	w.starts(w.config(both))
	w.happens(escalation.Action{Kind: escalation.Opened})
	mail := next(w, w.mails)
	head, text, _ := strings.Cut(mail, "\r\n\r\n")
	if !strings.Contains(head, "RCPT alice@acme.example\r\n") {
		t.Errorf("the first level is alice, and the mail went to %s", head)
	}
	if strings.Contains(head, "evil") || strings.Contains(head, "Cheap") || !strings.Contains(head, "15000") {
		t.Errorf("a counterparty's words are in the header: %s", head)
	}
	text = strings.ReplaceAll(strings.ReplaceAll(text, "=\r\n", ""), "=3D", "=")
	for _, want := range []string{
		"https://parley.acme.example/inbox/items/" + id, "> beyond my limit", "> Bcc: x@evil.example",
		"Written by the counterparty", `> <b>Cheap</b>\u202e plan`, "Opening the link decides nothing", "An approval allows exactly the terms that you see there",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the mail has no %q:\n%s", want, text)
		}
	}
	w.item.By, w.item.Dispute = "agent://widgets.example/beta", "d1"
	w.happens(escalation.Action{Kind: escalation.Opened})
	if mail := next(w, w.mails); !strings.Contains(mail, "In the words of agent://widgets.example/beta:") || strings.Contains(mail, "your agent") {
		t.Errorf("a dispute of the other side is told so: %s", mail)
	}
	w.happens(escalation.Action{Kind: escalation.Reescalated, Level: 1})
	if mail := next(w, w.mails); !strings.HasPrefix(mail, "RCPT bob@acme.example\r\n") {
		t.Errorf("the second level is bob, and the mail is %s", mail)
	}
	w.happens(escalation.Action{Kind: escalation.Viewed, By: bob})
	w.happens(escalation.Action{Kind: escalation.Assigned, By: bob, To: alice})
	if mail := next(w, w.mails); !strings.Contains(strings.ReplaceAll(mail, "\r\n ", " "), "was assigned to you") || !strings.HasPrefix(mail, "RCPT alice@acme.example\r\n") {
		t.Errorf("assigned to alice, and the mail is %s", mail)
	}
	w.happens(escalation.Action{Kind: escalation.Assigned, To: alice, Absent: bob})
	if mail := next(w, w.mails); !strings.Contains(mail, "Stand-in for "+string(bob)) || !strings.HasPrefix(mail, "RCPT alice@acme.example\r\n") {
		t.Errorf("alice stands in for bob, and the mail is %s", mail)
	}
}

// TestConfig checks the errors of a configuration and their paths.
func TestConfig(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, content := range map[string]string{"short": "whsec_YWJj", "good": "whsec_" + base64.StdEncoding.EncodeToString(secret)} {
		testkit.Must(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	for _, c := range []struct{ text, want string }{
		{"links: https://x.example/inbox/\n", ""},
		{"links: https://x.example/inbox/\nlink: 1\n", "line 2: field link not found"},
		{"links: inbox\n", "not an http(s) URL"},
		{"links: https://x.example\norganisations: {acme.example: {webhooks: [{url: 'https://h.example', secretFile: good}]}}\n", ""},
		{"links: https://x.example\norganisations: {acme.example: {webhooks: [{url: 'https://h.example', secretFile: short}]}}\n", "24 to 64"},
		{"links: https://x.example\norganisations: {acme.example: {webhooks: [{url: 'https://h.example'}]}}\n", "no file with the secret"},
		{"links: https://x.example\norganisations: {acme.example: {webhooks: [{url: 'https://h.example', secretFile: good, events: [opend]}]}}\n", `no "opend"`},
		{"links: https://x.example\norganisations: {acme.example: {mail: {always: [a@b.example]}}}\n", "mail needs smtp"},
		{"links: https://x.example\nsmtp: {server: 'm.example:25', from: p@x.example, user: u, tls: none}\n", "without TLS"},
		{"links: https://x.example\norganisations: {Acme.example: {webhooks: [{url: 'https://h.example', secretFile: good}]}}\n", "is no host"},
		{"links: https://x.example\nsmtp: {server: 'm.example:25', from: p@x.example, caFile: good}\n", "no PEM certificate"},
		{"links: https://x.example\nsmtp: {server: 'm.example:25', from: p@x.example}\norganisations: {acme.example: {mail: {people: {'human://b.example/x': x@b.example}}}}\n", "is not a human of acme.example"},
	} {
		path := filepath.Join(dir, "notify.yaml")
		testkit.Must(t, os.WriteFile(path, []byte(c.text), 0o600))
		_, err := notify.Load(path)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s\n\tis answered %v, want %q", c.text, err, c.want)
		}
	}
	if _, err := notify.Load(filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

// TestAsked checks that a human to whom an agent delegates is told once, with text of
// others quoted.
func TestAsked(t *testing.T) {
	t.Parallel()
	const seller, buyer = performatives.Agent("agent://clouds.example/sales"), performatives.Agent("agent://acme.example/alpha")
	w := listens(t)
	w.Broker = testkit.StartBroker(t, testkit.Options{Dev: true, Notify: w.config(both)})
	must := func(_ client.Receipt, err error) { t.Helper(); testkit.Must(t, err) }
	theirs, ours := w.client(seller), w.client(buyer)
	s, err := theirs.Invite(t.Context(), client.Invitation{ProposalID: "inv", With: []performatives.Agent{buyer}, Purpose: "x"})
	testkit.Must(t, err)
	must(ours.Session(s.ID()).Accept(t.Context(), "inv"))
	ask := client.Delegation{Scope: "check this\r\nBcc: x@evil.example \u202e", Authority: client.Advisory}
	must(ours.Session(s.ID()).Delegate(t.Context(), alice, ask))
	mail := next(w, w.mails)
	head, text, _ := strings.Cut(mail, "\r\n\r\n")
	text = strings.ReplaceAll(strings.ReplaceAll(text, "=\r\n", ""), "=3D", "=")
	if !strings.HasPrefix(head, "RCPT alice@acme.example\r\n") || strings.Contains(head, "evil") || !strings.Contains(head, string(buyer)+" asks") ||
		!strings.Contains(text, "> check this") || !strings.Contains(text, `\u202e`) || !strings.Contains(text, "checks/"+string(s.ID())) {
		t.Errorf("the mail is %s", mail)
	}
	var p notify.AskedPayload
	testkit.Must(t, json.UnmarshalRead(next(w, w.hooks).Body, &p))
	if p.Type != "check.asked" || p.Human != alice || p.Session != s.ID() || p.Authority != client.Advisory || !strings.HasSuffix(p.Link, "checks/"+string(s.ID())) {
		t.Errorf("the hook is told %+v", p)
	}
	w.Down() // the session is read anew, and nobody is told again
	w.Up()
	must(w.client(seller).Session(s.ID()).Observe(t.Context(), "still here", nil))
	must(w.client(buyer).Session(s.ID()).Delegate(t.Context(), bob, ask))
	var second notify.AskedPayload
	testkit.Must(t, json.UnmarshalRead(next(w, w.hooks).Body, &second))
	if second.Human != bob {
		t.Errorf("the second the hook is told of is %+v", second)
	}
}

// TestAskedOften checks that nobody floods a human, and that whoever does uses up no
// other organisation's notices: the rest is on the page.
func TestAskedOften(t *testing.T) {
	t.Parallel()
	w := listens(t)
	w.Broker = testkit.StartBroker(t, testkit.Options{Dev: true, Sync: time.Minute, Notify: w.config(both)})
	opens := func(a, with performatives.Agent) *client.Session {
		t.Helper()
		s, err := w.client(a).Invite(t.Context(), client.Invitation{ProposalID: "inv", With: []performatives.Agent{with}, Purpose: "x"})
		testkit.Must(t, err)
		_, err = w.client(with).Session(s.ID()).Accept(t.Context(), "inv")
		testkit.Must(t, err)
		return s
	}
	asks := func(s *client.Session, human performatives.Agent) {
		t.Helper()
		asked, err := s.Delegate(t.Context(), human, client.Delegation{Scope: "again", Authority: client.Advisory})
		testkit.Must(t, err)
		_, err = s.Withdraw(t.Context(), asked.ID)
		testkit.Must(t, err)
	}
	flood := opens("agent://flood.example/a", "agent://flood.example/b")
	for range 31 {
		asks(flood, alice)
	}
	asks(opens("agent://flood.example/c", "agent://flood.example/b"), alice)
	asks(opens("agent://acme.example/alpha", "agent://clouds.example/sales"), alice)
	asks(flood, bob)
	for n := range 32 {
		want := performatives.Organisation("flood.example")
		if n == 30 {
			want = "acme.example"
		}
		var p notify.AskedPayload
		testkit.Must(t, json.UnmarshalRead(next(w, w.hooks).Body, &p))
		if p.From.Organisation() != want || (p.Human == bob) != (n == 31) {
			t.Fatalf("the hook is told of %s asking %s at %d, want %s", p.From, p.Human, n, want)
		}
	}
}

func (w *world) client(a performatives.Agent) *client.Client {
	w.Helper()
	c, err := client.Connect(w.ctx, w.URL, a, client.Unsigned())
	testkit.Must(w, err)
	w.Cleanup(func() { c.Close() })
	return c
}
