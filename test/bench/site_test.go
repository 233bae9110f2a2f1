// Package bench measures what an act costs, next to what the store itself costs
// for the same bytes in the same run. Nothing here asserts a time: figures are
// for people.
//
//	go test -run '^$' -bench . ./test/bench
package bench

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"
	"go.uber.org/zap"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/server"
	"github.com/parley-asp/parley/server/embedded"
	"github.com/parley-asp/parley/server/login"
	"github.com/parley-asp/parley/test/testkit"
)

const (
	alpha = performatives.Agent("agent://acme.com/alpha")
	beta  = performatives.Agent("agent://widgets.co/beta")
)

// A site is a broker with logins, and a stream beside it for raw publishes.
type site struct {
	testing.TB
	server    *embedded.Server
	broker    *server.Broker
	sync      time.Duration
	key       nkeys.KeyPair // the broker's
	authority *login.Authority
	people    map[performatives.Agent]person
	options   []nats.Option // how clients connect
}

type person struct {
	performatives.Signer
	nc *nats.Conn
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// newSite starts one; over TCP clients use a socket, else the process.
func newSite(b testing.TB, sync time.Duration, tcp bool, change ...func(*server.BrokerOptions)) *site {
	b.Helper()
	key, callout := testkit.NewKey(b), testkit.NewKey(b)
	authority, issuer := testkit.NewLogins(b)
	s := &site{TB: b, key: key, authority: authority, people: map[performatives.Agent]person{}}
	s.server = must(embedded.Start(embedded.Options{
		StoreDir: b.TempDir(), Listen: "127.0.0.1:-1", SyncInterval: cmp.Or(sync, 10*time.Second),
		Broker: must(key.PublicKey()), Callout: must(callout.PublicKey()), Authority: authority,
	}))
	b.Cleanup(s.server.Shutdown)
	inside := func(account string, k nkeys.KeyPair) *nats.Conn {
		nc := must(nats.Connect(s.server.ClientURL(), s.server.InProcess(), must(authority.LogIn(account, "own", k))))
		b.Cleanup(nc.Close)
		return nc
	}
	var durable func(string, uint64) error
	if s.sync = sync; sync == 0 {
		durable = s.server.Durable
	}
	o := server.BrokerOptions{
		Options: broker.Options{Signer: must(performatives.NewSigner(key)), Alone: true},
		Conn:    inside(login.BrokerAccount, key), Durable: durable,
	}
	for _, c := range change {
		c(&o)
	}
	open := must(server.OpenBroker(context.Background(), o))
	s.broker = open
	b.Cleanup(func() { open.Close(context.Background()) })
	stop := must(login.Serve(inside(login.CalloutAccount, callout), issuer, func(k string) (login.Identity, bool) {
		a, ok := open.Parts.Registry.Principal(performatives.Key(k))
		return login.Identity{Name: a.Token(), Role: login.Principal}, ok
	}, nil, zap.NewNop()))
	b.Cleanup(stop)
	if !tcp {
		s.options = []nats.Option{s.server.InProcess()}
	}
	for _, a := range []performatives.Agent{alpha, beta} {
		pair := testkit.NewKey(b)
		must(open.Parts.Registry.Add(context.Background(), api.Card{Agent: a, Key: performatives.Key(must(pair.PublicKey())), LoginKeys: testkit.LoginKeys(b, pair)}))
		nc := must(nats.Connect(s.server.ClientURL(), append(s.options, testkit.Login(b, pair), nats.CustomInboxPrefix("_INBOX."+a.Token()))...))
		b.Cleanup(nc.Close)
		s.people[a] = person{testkit.Signer(b, pair), nc}
	}
	return s
}

// store is JetStream on a server of its own, with the same promise, reached the way that clients are.
func (s *site) store(tcp bool) jetstream.JetStream {
	s.Helper()
	server := must(embedded.Start(embedded.Options{
		StoreDir: s.TempDir(), Listen: "127.0.0.1:-1", SyncInterval: s.sync, Dev: true, Broker: must(s.key.PublicKey()), Authority: s.authority,
	}))
	s.Cleanup(server.Shutdown)
	options := []nats.Option{testkit.Bare(s, s.key)}
	if !tcp {
		options = append(options, server.InProcess())
	}
	nc := must(nats.Connect(server.ClientURL(), options...))
	s.Cleanup(nc.Close)
	js := must(jetstream.New(nc))
	must(js.CreateStream(context.Background(), jetstream.StreamConfig{Name: "BENCH", Subjects: []string{"bench.*"}, Storage: jetstream.FileStorage}))
	return js
}

// act makes a signed envelope.
func (s *site) act(id performatives.SessionID, sender performatives.Agent, body performatives.Body) []byte {
	return must(performatives.Draft{
		ID: testkit.NewID(), Session: id, Timestamp: time.Now(), Sender: sender, Body: body,
	}.Envelope(s.people[sender]))
}

func (s *site) submit(id performatives.SessionID, sender performatives.Agent, envelope []byte) {
	m := must(s.people[sender].nc.Request(api.Submit(sender, id), envelope, time.Minute))
	if m.Header.Get(api.ErrorCodeHeader) != "" {
		s.Fatalf("refused: %s", m.Data)
	}
}

// session opens one and lets it grow to a number of acts.
func (s *site) session(acts int) performatives.SessionID {
	id := testkit.NewSession()
	s.open(id)
	for n := 2; n < acts; n++ {
		sender, body := haggle(n)
		s.submit(id, sender, s.act(id, sender, body))
	}
	return id
}

// open has alpha invite beta, who accepts.
func (s *site) open(id performatives.SessionID) {
	s.submit(id, alpha, s.act(id, alpha, &performatives.ProposeBody{
		ProposalID: "inv", Type: performatives.SessionInvitation, Subject: "x", Terms: []byte(`{"participants":["` + string(beta) + `"]}`),
	}))
	s.submit(id, beta, s.act(id, beta, &performatives.AcceptBody{ReferenceID: "inv"}))
}

// haggle is the n-th act of a negotiation that goes on for ever: an offer, a
// counter-offer, a rejection, a remark.
func haggle(n int) (performatives.Agent, performatives.Body) {
	round := n / 4
	offer, counter := fmt.Sprint("p", round), fmt.Sprint("c", round)
	terms := fmt.Appendf(nil, `{"currency":"USD","pricePerMonth":%d,"region":"eu-west-1","retentionDays":30}`, round)
	switch n % 4 {
	case 0:
		return alpha, &performatives.ProposeBody{ProposalID: offer, Type: "service-agreement", Subject: "log ingestion", Terms: terms}
	case 1:
		if round == 0 {
			return beta, remark()
		}
		return beta, &performatives.CounterBody{ProposalID: counter, ReferenceID: offer, Terms: terms, Reason: "capacity"}
	case 2:
		if round == 0 {
			return beta, remark()
		}
		return alpha, &performatives.RejectBody{ReferenceID: counter, Code: "budget_exceeded", Reason: "too much", Retryable: true}
	}
	return beta, remark()
}

func remark() performatives.Body {
	return &performatives.ObserveBody{Subject: "load is 80 % of what was agreed", Data: must(json.Marshal(map[string]any{
		"eventsPerSecond": 4000, "p99Ms": 84, "window": "5m", "regions": []string{"eu-west-1", "eu-central-1"},
	}))}
}

// spans are durations of one kind.
type spans []time.Duration

func (s *spans) time(do func()) {
	start := time.Now()
	do()
	*s = append(*s, time.Since(start))
}

// at is a quantile in microseconds.
func (s spans) at(q float64) float64 {
	if len(s) == 0 {
		return 0
	}
	slices.Sort(s)
	return float64(s[int(q*float64(len(s)-1))].Nanoseconds()) / 1000
}
