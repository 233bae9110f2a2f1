package approvals_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/test/testkit"
)

// A page costs the same however many wait behind it.
func BenchmarkList(b *testing.B) {
	for _, open := range []int{100, 10_000} {
		t := testkit.StartBroker(b, testkit.Options{Sync: time.Minute})
		t.Register(alice)
		fill(b, t, open)
		for name, request := range map[string]string{"first page": `{}`, "of one urgency": `{"urgency":"critical"}`, "a thousand": `{"limit":1000}`} {
			b.Run(fmt.Sprintf("%s/open=%d", name, open), func(b *testing.B) {
				for b.Loop() {
					if _, err := t.Broker.Gateway.CallAs(b.Context(), alice, api.EscalationList.Name, []byte(request)); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// fill puts items into the inbox as a broker would, and waits until all are there.
func fill(b *testing.B, t *testkit.Broker, open int) {
	b.Helper()
	js, err := jetstream.New(t.Broker.Options.Conn)
	if err != nil {
		b.Fatal(err)
	}
	urgencies := []string{"low", "medium", "high", "critical"}
	for n := range open {
		due := time.Now().Add(time.Duration(n%5000) * time.Minute).UTC().Format("2006-01-02T15:04:05.000Z")
		item := api.EscalationItem{
			EscalationView: api.EscalationView{
				ID: escalation.ID(fmt.Sprintf("019478a3-0002-7def-8a12-%012d", n)), By: alpha, OnBehalfOf: alpha, Organisation: "acme.com",
				Reason: "authority-limit", Urgency: urgencies[n%4], Context: jsontext.Value(`"over my limit"`), Deadline: due, Status: "open",
				Amount: &escalation.Amount{Value: 15000, Currency: "USD", Path: "terms.price"},
			},
			Session: performatives.SessionID(fmt.Sprintf("019478a3-0001-7def-8a12-%012d", n)), Head: &session.ChainHead{},
			Route: &api.Route{Levels: []api.Level{{Quorum: 1, Due: due}}}, Due: due,
			Proposal: &api.OfferView{Proposal: "p1", Subject: "a plan", Terms: jsontext.Value(`{"price":15000,"currency":"USD","seats":300}`)},
		}
		data, err := json.Marshal(item)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := js.PublishMsgAsync(&nats.Msg{Subject: api.Escalation("acme.com", item.Urgency, string(item.ID)), Data: data}); err != nil {
			b.Fatal(err)
		}
	}
	<-js.PublishAsyncComplete()
	for {
		reply, err := t.Broker.Gateway.CallAs(b.Context(), alice, api.EscalationList.Name, []byte(`{"limit":1}`))
		if err != nil {
			b.Fatal(err)
		}
		var list api.Escalations
		if err := json.Unmarshal(reply, &list); err != nil {
			b.Fatal(err)
		}
		if list.Counts.Open == open {
			return
		}
	}
}
