package fault_test

import (
	"fmt"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker"
	"github.com/parley-asp/parley/test/fault"
	"github.com/parley-asp/parley/test/testkit"
)

// TestKilledWithATurn kills a broker after a claim and at each point of the way of a
// response: after the restart the claim is as it was, and the response sent again is the one
// that was entered.
func TestKilledWithATurn(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	c := startNode(t, data, "127.0.0.1:-1")
	w := fault.NewWitness(t, c.URL)
	for n, point := range broker.Failpoints() {
		s := w.Open(parties...)
		s.Say(alpha, "PROPOSE", `{"proposalId":"p","type":"service-agreement","subject":"s","terms":{"price":5}}`)
		claimed := pickup(t, c.URL)
		if n == 0 {
			c.Kill()
			c = again(t, data, c)
			if same := pickup(t, c.URL); *same.Claim != *claimed.Claim || *same.Turn != *claimed.Turn {
				t.Errorf("after the kill the claim is %+v %+v, it was %+v %+v", same.Claim, same.Turn, claimed.Claim, claimed.Turn)
			}
		}
		c.DieAt(point)
		response := fmt.Sprintf(`{"turnId":%q,"performative":"COUNTER","body":{"proposalId":"c","referenceId":"p","terms":{"price":4}}}`, claimed.Claim.ID)
		nc, err := nats.Connect(c.URL, nats.NoReconnect())
		testkit.Must(t, err)
		testkit.Must(t, nc.PublishRequest(api.Call(beta, api.TurnRespond.Name), nc.NewInbox(), []byte(response)))
		nc.Flush() //nolint:errcheck // the broker may be dead before it answers
		c.Dies()
		nc.Close()
		c = again(t, data, c)
		var accepted api.Acceptance
		ask(t, c.URL, api.TurnRespond.Name, response, &accepted)
		if !accepted.Accepted {
			t.Errorf("killed %s: the response sent again is answered %+v", point, accepted)
		}
		s.Again()
		var view struct {
			Proposals []api.OfferView `json:"proposals"`
		}
		ask(t, c.URL, api.SessionGet.Name, fmt.Sprintf(`{"sessionId":%q}`, s.ID), &view)
		if n := len(view.Proposals); n != 2 {
			t.Errorf("killed %s: there are %d offers, want the first and one COUNTER", point, n)
		}
		var none api.Turn
		if ask(t, c.URL, api.TurnPickup.Name, `{}`, &none); none.Claim != nil {
			t.Errorf("killed %s: the answered turn waits again: %+v", point, none)
		}
	}
	verifyAll(t, c.URL)
}

func pickup(t *testing.T, url string) (turn api.Turn) {
	t.Helper()
	ask(t, url, api.TurnPickup.Name, `{}`, &turn)
	if turn.Claim == nil {
		t.Fatal("no turn waits")
	}
	return turn
}

// ask calls a verb as beta.
func ask(t *testing.T, url, verb, request string, reply any) {
	t.Helper()
	nc, err := nats.Connect(url)
	testkit.Must(t, err)
	defer nc.Close()
	m, err := testkit.Request(nc, api.Call(beta, verb), []byte(request))
	testkit.Must(t, err)
	if m.Header.Get(api.ErrorHeader) != "" {
		t.Fatalf("%s is refused: %s", verb, m.Data)
	}
	testkit.Must(t, json.Unmarshal(m.Data, reply))
}
