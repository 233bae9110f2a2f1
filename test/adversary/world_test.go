package adversary

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
	"go.uber.org/zap"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/test/testbroker"
)

const (
	alpha = performatives.Agent("agent://acme.com/procurement/alpha")
	delta = performatives.Agent("agent://acme.com/legal/delta")
	alice = performatives.Agent("human://acme.com/alice") // may decide for acme.com
	carol = performatives.Agent("human://acme.com/carol") // may not
	beta  = performatives.Agent("agent://widgets.co/sales/beta")
	bob   = performatives.Agent("human://widgets.co/bob") // may decide for widgets.co
	eve   = performatives.Agent("agent://evil.example/eve")
	// May decide for an organisation whose name begins like another's.
	mallory = performatives.Agent("human://acme.com.evil.example/mallory")

	patience = 30 * time.Second // for what must come
)

// world is a broker with logins, and the session that is attacked.
type world struct {
	testing.TB
	broker   *testbroker.Broker
	deal     performatives.SessionID // of alpha and beta, CONVERSING, with beta's offer p1 open
	people   map[performatives.Agent]*person
	oversees *nats.Conn // the operator's connection, once needed
}

// A person has a key and, once needed, a connection.
type person struct {
	testing.TB
	agent  performatives.Agent
	pair   nkeys.KeyPair
	signer performatives.Signer
	url    string
	nc     *nats.Conn
}

func newWorld(t testing.TB, log ...*zap.Logger) *world {
	t.Helper()
	// No timer goes off while the store is being looked at.
	policy := performatives.Policy{InvitationTimeout: time.Hour.Milliseconds(), MaxDuration: time.Hour.Milliseconds()}
	o := testbroker.Options{Sync: time.Minute, Policy: policy}
	if len(log) > 0 {
		o.Log = log[0]
	}
	w := &world{TB: t, broker: testbroker.Start(t, o), people: map[performatives.Agent]*person{}}
	for _, a := range []performatives.Agent{alpha, delta, alice, carol, beta, bob, eve, mallory} {
		w.people[a] = w.registers(a)
	}
	w.deal = w.opens(alpha, beta)
	w.says(beta, w.deal, offer("p1", 15000))
	return w
}

func (w *world) registers(a performatives.Agent) *person {
	w.Helper()
	key := w.broker.Register(a, func(c *api.Card) { c.Registry.MayDecide = a.IsHuman() && a != carol })
	return w.person(a, key)
}

func (w *world) person(a performatives.Agent, key nkeys.KeyPair) *person {
	w.Helper()
	signer, err := performatives.NewSigner(key)
	must(w.TB, err)
	return &person{TB: w.TB, agent: a, pair: key, signer: signer, url: w.broker.URL}
}

// opens makes a session of two, CONVERSING.
func (w *world) opens(from, with performatives.Agent) performatives.SessionID {
	w.Helper()
	id := newSession()
	w.says(from, id, invitation(with))
	w.says(with, id, &performatives.AcceptBody{ReferenceID: "inv"})
	w.says(from, id, fact("hello"))
	return id
}

// says submits an act that must be accepted.
func (w *world) says(a performatives.Agent, id performatives.SessionID, body performatives.Body, change ...func(*performatives.Draft)) api.Acceptance {
	w.Helper()
	p := w.people[a]
	return accepted(w.TB, p.submits(id, p.envelope(id, body, change...)))
}

func newSession() performatives.SessionID { return performatives.SessionID(newID()) }

func newID() string { return uuid.Must(uuid.NewV7()).String() }

func invitation(with ...performatives.Agent) performatives.Body {
	terms, err := json.Marshal(map[string]any{"participants": with})
	if err != nil {
		panic(err)
	}
	return &performatives.ProposeBody{ProposalID: "inv", Type: performatives.SessionInvitation, Subject: "a deal", Terms: terms}
}

func offer(id string, price int) performatives.Body {
	return &performatives.ProposeBody{ProposalID: id, Type: "service-agreement", Subject: "support", Terms: fmt.Appendf(nil, `{"price":%d}`, price)}
}

func fact(text string) performatives.Body {
	return &performatives.InformBody{Type: performatives.Fact, Data: fmt.Appendf(nil, "%q", text)}
}

// ruling is a human's word on an escalation.
func ruling(escalation string) performatives.Body {
	return &performatives.InformBody{
		Type: performatives.Resolution, Data: fmt.Appendf(nil, `{"escalationId":%q,"decision":"approved"}`, escalation),
	}
}

// dial connects as whoever the options say; the connection does not come back once it is closed.
func (p *person) dial(options ...nats.Option) (*nats.Conn, error) {
	nc, err := nats.Connect(p.url, append([]nats.Option{
		nats.CustomInboxPrefix("_INBOX." + p.agent.Token()), nats.NoReconnect(), nats.Timeout(patience),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}), // the tests look at LastError
	}, options...)...)
	if err == nil {
		p.Cleanup(nc.Close)
	}
	return nc, err
}

// login is the person's own.
func (p *person) login() nats.Option { return nats.Nkey(string(p.signer.Key()), p.pair.Sign) }

func (p *person) conn() *nats.Conn {
	p.Helper()
	if p.nc == nil {
		var err error
		p.nc, err = p.dial(p.login())
		must(p.TB, err)
	}
	return p.nc
}

// envelope is one that the person signs.
func (p *person) envelope(id performatives.SessionID, body performatives.Body, change ...func(*performatives.Draft)) []byte {
	p.Helper()
	d := performatives.Draft{
		ID: performatives.MessageID(newID()), Session: id, Timestamp: time.Now(), Sender: p.agent, Body: body,
	}
	for _, c := range change {
		c(&d)
	}
	data, err := d.Envelope(p.signer)
	must(p.TB, err)
	return data
}

// submits sends bytes on the person's own subject.
func (p *person) submits(id performatives.SessionID, data []byte) *nats.Msg {
	p.Helper()
	return p.asks(api.Submit(p.agent, id), data)
}

func (p *person) calls(verb, request string) *nats.Msg {
	p.Helper()
	return p.asks(api.Call(p.agent, verb), []byte(request))
}

func (p *person) asks(subject string, data []byte) *nats.Msg {
	p.Helper()
	m, err := p.conn().Request(subject, data, patience)
	if err != nil {
		p.Fatalf("%s: %v", subject, err)
	}
	return m
}

// operator is the operator's person.
func (w *world) operator() *person {
	w.Helper()
	signer, err := performatives.NewSigner(w.broker.Operator())
	must(w.TB, err)
	p := &person{TB: w.TB, agent: alpha, pair: w.broker.Operator(), signer: signer, url: w.broker.URL}
	p.nc, err = p.dial(p.login(), nats.CustomInboxPrefix("_INBOX.operator"))
	must(w.TB, err)
	return p
}

func accepted(t testing.TB, m *nats.Msg) api.Acceptance {
	t.Helper()
	var a api.Acceptance
	if err := json.Unmarshal(m.Data, &a); err != nil || !a.Accepted {
		t.Fatalf("not accepted: %s %v", m.Data, err)
	}
	return a
}

// refused is the code of an answer that must be a refusal, and one that names no internals.
func refused(t testing.TB, m *nats.Msg) session.Code {
	t.Helper()
	var r struct {
		Accepted *bool
		Error    struct {
			Code    session.Code
			Message string
		}
	}
	if err := json.Unmarshal(m.Data, &r, json.MatchCaseInsensitiveNames(true)); err != nil || r.Accepted == nil || *r.Accepted || r.Error.Code.Status() == 0 {
		t.Errorf("not a refusal: %.300s %v", m.Data, err)
		return ""
	}
	if got := m.Header.Get(api.ErrorCodeHeader); got != fmt.Sprint(r.Error.Code.Status()) {
		t.Errorf("%s has the error code %q", r.Error.Code, got)
	}
	for _, inside := range internals {
		if strings.Contains(string(m.Data), inside) || strings.Contains(m.Header.Get(api.ErrorHeader), inside) {
			t.Errorf("a refusal names %q: %s", inside, m.Data)
		}
	}
	return r.Error.Code
}

// internals are words that only the inside of the broker knows.
var internals = []string{
	"goroutine", "panic", "runtime error", "nats:", "nats.", "jetstream", "JetStream", "$JS", "$KV", "_INBOX", "ASP_", "stream", ".go:",
	"/root/", "/home/", "/tmp/", "performatives.", "Go api.", "json:", "jsontext", "Go struct", "unmarshal", "interface {}", "map[", "0x",
	"context deadline", "EOF",
}

// want says what an attack is answered with.
func want(t testing.TB, what string, m *nats.Msg, code session.Code) {
	t.Helper()
	if got := refused(t, m); got != code {
		t.Errorf("%s: %q, want %q: %.300s", what, got, code, m.Data)
	}
}

// denied tells whether the server refuses what the connection did last about a subject. The
// server's error arrives before the answer to the flush.
func denied(t testing.TB, nc *nats.Conn, subject string) bool {
	t.Helper()
	must(t, nc.Flush())
	err := nc.LastError()
	return errors.Is(err, nats.ErrPermissionViolation) && strings.Contains(err.Error(), `"`+subject+`"`)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
