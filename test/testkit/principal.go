package testkit

import (
	"cmp"
	"context"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
)

// A Principal speaks to a broker over a plain NATS connection of its own.
type Principal struct {
	testing.TB
	Agent  performatives.Agent
	Key    nkeys.KeyPair // nil under Dev
	Signer performatives.Signer
	URL    string // of its NATS server
	Inbox  string // prefix of its inboxes; "" is its own

	conn *nats.Conn
}

// Dial makes a connection that logs in as the options say. It does not reconnect, and its errors
// are in LastError.
func (p *Principal) Dial(options ...nats.Option) (*nats.Conn, error) {
	nc, err := nats.Connect(p.URL, append([]nats.Option{
		nats.CustomInboxPrefix(cmp.Or(p.Inbox, "_INBOX."+p.Agent.Token())), nats.NoReconnect(), nats.Timeout(Patience),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}),
	}, options...)...)
	if err == nil {
		p.Cleanup(nc.Close)
	}
	return nc, err
}

// Login is how the principal logs in.
func (p *Principal) Login() nats.Option {
	p.Helper()
	if p.Key == nil {
		return func(*nats.Options) error { return nil }
	}
	if p.Agent == "" { // the operator, who only logs in
		return Bare(p, p.Key)
	}
	return Login(p, p.Key)
}

// SetKey has the principal log in and sign with another key from now on.
func (p *Principal) SetKey(key nkeys.KeyPair) {
	p.Helper()
	p.Key, p.Signer = key, Signer(p, key)
	if p.conn != nil {
		p.conn.Close()
		p.conn = nil
	}
}

// Conn is the principal's connection, made when it is first asked for.
func (p *Principal) Conn() *nats.Conn {
	p.Helper()
	if p.conn == nil || p.conn.IsClosed() {
		var err error
		p.conn, err = p.Dial(p.Login())
		Must(p, err)
	}
	return p.conn
}

// Envelope is a new act, signed; change alters the draft first.
func (p *Principal) Envelope(id performatives.SessionID, body performatives.Body, change ...func(*performatives.Draft)) []byte {
	p.Helper()
	d := performatives.Draft{ID: NewID(), Session: id, Timestamp: time.Now(), Sender: p.Agent, Body: body}
	for _, c := range change {
		c(&d)
	}
	data, err := d.Envelope(p.Signer)
	Must(p, err)
	return data
}

// Say submits an act that must be accepted.
func (p *Principal) Say(id performatives.SessionID, body performatives.Body, change ...func(*performatives.Draft)) api.Acceptance {
	p.Helper()
	return Accepted(p, p.Submit(id, p.Envelope(id, body, change...)))
}

// Submit sends bytes as an act and returns the answer.
func (p *Principal) Submit(id performatives.SessionID, envelope []byte) *nats.Msg {
	p.Helper()
	return p.Request(api.Submit(p.Agent, id), envelope)
}

// Call calls a verb with a request in JSON and returns the answer.
func (p *Principal) Call(verb, request string) *nats.Msg {
	p.Helper()
	return p.Request(api.Call(p.Agent, verb), []byte(request))
}

// Request is [Request] over the principal's connection.
func (p *Principal) Request(subject string, data []byte) *nats.Msg {
	p.Helper()
	m, err := Request(p.Conn(), subject, data)
	if err != nil {
		p.Fatalf("%s: %v", subject, err)
	}
	return m
}

// InboxStream is the stream of a principal's inbox, as the broker says.
func InboxStream(ctx context.Context, nc *nats.Conn, a performatives.Agent) (string, error) {
	m, err := nc.RequestWithContext(ctx, api.Call(a, api.BrokerInfo.Name), []byte("{}"))
	if err != nil {
		return "", err
	}
	var info api.Broker
	if err := json.Unmarshal(m.Data, &info); err != nil {
		return "", err
	}
	return cmp.Or(info.Inbox, api.InboxStream), nil
}

// Read takes the next n entries from the principal's inbox and acknowledges them.
func (p *Principal) Read(n int) (entries [][]byte) {
	p.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	js, err := jetstream.New(p.Conn())
	Must(p, err)
	stream, err := InboxStream(ctx, p.Conn(), p.Agent)
	Must(p, err)
	consumer, err := js.Consumer(ctx, stream, p.Agent.Token())
	Must(p, err)
	batch, err := consumer.Fetch(n, jetstream.FetchMaxWait(Patience))
	Must(p, err)
	for m := range batch.Messages() {
		Must(p, m.DoubleAck(ctx))
		entries = append(entries, m.Data())
	}
	if batch.Error() != nil || len(entries) != n {
		p.Fatalf("the inbox of %s has %d of %d entries: %v", p.Agent, len(entries), n, batch.Error())
	}
	return entries
}
