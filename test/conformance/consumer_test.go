package conformance

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/test/testkit"
)

type sessionConsumer struct {
	Stream, Consumer           string
	AckWaitMs, InactiveAfterMs int
	Pending                    int
}

func (p *principal) asksForConsumer(session string) *nats.Msg {
	p.Helper()
	return ask(p.T, p.nc, "asp.agent."+token(p.uri)+".api.session.consumer", []byte(`{"sessionId":"`+session+`"}`))
}

func (p *principal) consumerOf(session string) sessionConsumer {
	p.Helper()
	m := p.asksForConsumer(session)
	var c sessionConsumer
	testkit.Must(p, json.Unmarshal(m.Data, &c))
	if c.Consumer == "" {
		p.Fatalf("session.consumer is answered with %s", m.Data)
	}
	return c
}

// process is another process of the same principal.
func (p *principal) process(b *testkit.Broker) *principal {
	p.Helper()
	other := p.again(b, p.key)
	var err error
	other.js, err = jetstream.New(other.nc)
	testkit.Must(p, err)
	return other
}

// next takes one message of a session consumer.
func (p *principal) next(c sessionConsumer) (jetstream.Msg, entry) {
	p.Helper()
	consumer, err := p.js.Consumer(p.Context(), c.Stream, c.Consumer)
	testkit.Must(p, err)
	m, err := consumer.Next(jetstream.FetchMaxWait(wait))
	testkit.Must(p, err)
	var e entry
	testkit.Must(p, json.Unmarshal(m.Data(), &e))
	return m, e
}

// TestSessionConsumers: three processes of one agent each read their own session, while none reads
// the shared inbox, and take nothing from each other (PROTOCOL.md §9).
func TestSessionConsumers(t *testing.T) {
	t.Parallel()
	b := testkit.StartBroker(t, testkit.Options{})
	a, w := join(t, b, alpha), join(t, b, beta)
	stream, err := testkit.InboxStream(t.Context(), a.nc, alpha)
	testkit.Must(t, err)
	var all sync.WaitGroup
	for n := range 3 {
		id, process := v7(), a.process(b)
		accepted(t, process.says(id, "PROPOSE", invite(beta)))
		c := process.consumerOf(id)
		if stream != c.Stream || !strings.HasPrefix(c.Consumer, token(alpha)+"+") || c.AckWaitMs != 30_000 || c.InactiveAfterMs != 600_000 {
			t.Fatalf("%+v", c)
		}
		all.Go(func() {
			for want := 1; want <= 3; want++ {
				m, e := process.next(c)
				if e.Sequence != want || m.Subject() != "asp.agent."+token(alpha)+".inbox."+id {
					t.Errorf("process %d: %s on %s, want entry %d", n, e, m.Subject(), want)
				}
				if err := m.DoubleAck(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
		accepted(t, w.says(id, "ACCEPT", `{"referenceId":"inv"}`))
		accepted(t, w.says(id, "INFORM", `{"type":"fact","data":1}`))
		accepted(t, w.says(id, "INFORM", `{"type":"fact","data":2}`))
	}
	all.Wait()
	// The shared inbox has all of it as well.
	if info, err := a.js.Consumer(t.Context(), stream, token(alpha)); err != nil || info.CachedInfo().NumPending != 9 {
		t.Error(info, err)
	}
}

// TestSessionConsumerOrder: nothing newer comes before a message is acknowledged, also where it is
// given back, taken by another process, or asked for again.
func TestSessionConsumerOrder(t *testing.T) {
	t.Parallel()
	b := testkit.StartBroker(t, testkit.Options{})
	a, w := join(t, b, alpha), join(t, b, beta)
	id := v7()
	accepted(t, a.says(id, "PROPOSE", invite(beta)))
	accepted(t, w.says(id, "ACCEPT", `{"referenceId":"inv"}`))
	for n := range 3 {
		accepted(t, a.says(id, "INFORM", fmt.Sprintf(`{"type":"fact","data":%d}`, n)))
	}
	c := w.consumerOf(id)
	if c.Pending != 4 {
		t.Errorf("%d messages to acknowledge, want 4", c.Pending)
	}
	other := w.process(b)
	if again := other.consumerOf(id); again != c {
		t.Errorf("asked again: %+v, want %+v", again, c)
	}
	consumer, err := other.js.Consumer(t.Context(), c.Stream, c.Consumer)
	testkit.Must(t, err)
	for n, want := range []int{0, 2, 3, 4} {
		m, e := w.next(c)
		if more, err := consumer.FetchNoWait(10); err != nil {
			t.Error(err)
		} else if newer := <-more.Messages(); newer != nil {
			t.Errorf("handed out before entry %d is acknowledged: %s", e.Sequence, newer.Data())
		}
		if e.Sequence != want || w.consumerOf(id).Pending != 4-n {
			t.Errorf("%s, want entry %d", e, want)
		}
		testkit.Must(t, m.Nak())
		m, e = other.next(c)
		if e.Sequence != want {
			t.Errorf("given back: %s, want entry %d", e, want)
		}
		testkit.Must(t, m.InProgress())
		testkit.Must(t, m.DoubleAck(t.Context()))
	}
}

// TestSessionConsumerAhead: with ahead, newer messages come before older ones are acknowledged, from
// another consumer than the strict one.
func TestSessionConsumerAhead(t *testing.T) {
	t.Parallel()
	b := testkit.StartBroker(t, testkit.Options{})
	a, w := join(t, b, alpha), join(t, b, beta)
	id := v7()
	accepted(t, a.says(id, "PROPOSE", invite(beta)))
	accepted(t, w.says(id, "ACCEPT", `{"referenceId":"inv"}`))
	accepted(t, a.says(id, "INFORM", `{"type":"fact","data":1}`))
	strict := w.consumerOf(id)
	asks := func(ahead string) *nats.Msg {
		return ask(t, w.nc, "asp.agent."+token(beta)+".api.session.consumer", []byte(`{"sessionId":"`+id+`","ahead":`+ahead+`}`))
	}
	var loose sessionConsumer
	testkit.Must(t, json.Unmarshal(asks("2").Data, &loose))
	if loose.Consumer == strict.Consumer {
		t.Fatalf("the same consumer: %s", loose.Consumer)
	}
	for _, want := range []int{0, 2} {
		if _, e := w.next(loose); e.Sequence != want {
			t.Errorf("%s, want entry %d", e, want)
		}
	}
	for _, ahead := range []string{"-1", "1001", `"2"`} {
		if got := checkRefusal(t, asks(ahead)); got != "malformed" {
			t.Errorf("ahead %s: %s", ahead, got)
		}
	}
}

// TestSessionConsumerLimit: a principal has so many of them, and others have theirs.
func TestSessionConsumerLimit(t *testing.T) {
	t.Parallel()
	b := testkit.StartBroker(t, testkit.Options{})
	a, w := join(t, b, alpha), join(t, b, beta)
	names := map[string]bool{}
	var first string
	for range 32 {
		id := v7()
		accepted(t, a.says(id, "PROPOSE", invite(beta)))
		names[a.consumerOf(id).Consumer] = true
		if first == "" {
			first = id
		}
	}
	if len(names) != 32 {
		t.Errorf("%d sessions have their own consumer, want 32", len(names))
	}
	id := v7()
	accepted(t, a.says(id, "PROPOSE", invite(beta)))
	m := a.asksForConsumer(id)
	if got := checkRefusal(t, m); got != "rate_limited" || !strings.Contains(string(m.Data), `"limit":"consumers"`) {
		t.Errorf("one too many: %s", m.Data)
	}
	a.consumerOf(first) // is there already
	w.consumerOf(id)    // is beta's

	// They go with their principal.
	operator, err := client.ConnectOperator(t.Context(), b.URL, client.Login(testkit.Signer(t, b.Operator())))
	testkit.Must(t, err)
	defer operator.Close()
	_, err = operator.RemoveAgent(t.Context(), alpha)
	testkit.Must(t, err)
	back := join(t, b, alpha)
	for name := range names {
		if _, err := back.js.Consumer(t.Context(), "ASP_INBOX", name); err == nil {
			t.Errorf("%s is still there", name)
		}
	}
}

// TestSessionConsumerParts: whoever has a part has its own inbox of the session: a delegate before it
// joins, and a human who may decide from the ESCALATE on; nobody else, and no operator.
func TestSessionConsumerParts(t *testing.T) {
	t.Parallel()
	b := testkit.StartBroker(t, testkit.Options{})
	a, w, lawyer, alice := join(t, b, alpha), join(t, b, beta), join(t, b, "agent://acme.com/legal"), join(t, b, "human://acme.com/alice")
	id := v7()
	accepted(t, a.says(id, "PROPOSE", invite(beta)))
	accepted(t, w.says(id, "ACCEPT", `{"referenceId":"inv"}`))
	for _, p := range []*principal{lawyer, alice} {
		if got := checkRefusal(t, p.asksForConsumer(id)); got != "unknown_session" {
			t.Errorf("%s before it has a part: %s", p.uri, got)
		}
	}
	accepted(t, a.says(id, "DELEGATE", `{"targetAgent":"agent://acme.com/legal","scope":"x","authority":"limited"}`))
	if m, e := lawyer.next(lawyer.consumerOf(id)); e.Sequence != 2 {
		t.Errorf("the delegate reads %s on %s, want its DELEGATE", e, m.Subject())
	}
	accepted(t, a.says(id, "ESCALATE", `{"reason":"policy-ambiguous","urgency":"low","context":"odd"}`))
	if m, e := alice.next(alice.consumerOf(id)); e.Sequence != 3 {
		t.Errorf("the human reads %s on %s, want the ESCALATE", e, m.Subject())
	}
	operator := b.Plain(testkit.Bare(t, b.Operator()), nats.CustomInboxPrefix("_INBOX.operator"))
	if got := checkRefusal(t, ask(t, operator, "asp.operator.api.session.consumer", []byte(`{"sessionId":"`+id+`"}`))); got != "unauthorized" {
		t.Errorf("the operator: %s", got)
	}
}
