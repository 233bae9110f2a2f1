package broker_test

import (
	"fmt"
	"hash/fnv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/server"
	"github.com/parley-asp/parley/test/testkit"
)

// A session consumer that the server neither finds nor has made keeps nobody from another one: its name
// is passed over.
func TestConsumerThatIsLost(t *testing.T) {
	t.Parallel()
	names := api.SessionConsumers(beta.Token())
	const lost, unmade = 5, 6
	process := testkit.StartServerProcess(t, fmt.Sprintf(`
jetstream { store_dir: "./store" }
no_auth_user: anybody
authorization { users: [
	{user: anybody, password: x},
	{user: broker, password: x, permissions: {publish: {deny: [%q, %q]}}}
] }
`, "$JS.API.CONSUMER.INFO.ASP_INBOX."+names[lost], "$JS.API.CONSUMER.CREATE.ASP_INBOX."+names[unmade]+".>"))
	at := testkit.ServerAt(t, process.URL())
	nc, err := nats.Connect(at.URL, nats.UserInfo("broker", "x"))
	testkit.Must(t, err)
	t.Cleanup(nc.Close)
	opened, _ := at.OpenBroker(func(o *server.BrokerOptions) { o.Conn = nc })
	id := newID()
	for pointsTo(id) != lost {
		id = newID()
	}
	said := fmt.Sprintf(`{"version":"asp/0.1","messageId":%q,"sessionId":%q,"timestamp":%q,"sender":{"agentId":%q},"performative":"PROPOSE","content":{"body":{"proposalId":"i","type":"session-invitation","subject":"s","terms":{"participants":[%q]}}}}`,
		testkit.NewSession(), id, opened.Options.Now().UTC().Format(performatives.TimeFormat), alpha, beta)
	_, err = opened.Gateway.SubmitAs(t.Context(), alpha, id, []byte(said))
	testkit.Must(t, err)
	for range 2 { // it is made, and found again
		type answer struct {
			reply any
			err   error
		}
		answered := make(chan answer, 1)
		opened.Verbs.Call(t.Context(), api.Caller{Agent: beta}, api.SessionConsumer.Name, fmt.Appendf(nil, `{"sessionId":%q}`, id), func() {}, func(reply any, _ bool, err error) {
			answered <- answer{reply, err}
		})
		got := <-answered
		testkit.Must(t, got.err)
		data, err := json.Marshal(got.reply)
		testkit.Must(t, err)
		if want := fmt.Sprintf(`"consumer":%q`, names[unmade+1]); !strings.Contains(string(data), want) {
			t.Errorf("the consumer is %s, want %s", data, want)
		}
	}
}

// pointsTo is where the search for a name of a session's consumer begins.
func pointsTo(id performatives.SessionID) uint32 {
	h := fnv.New32a()
	h.Write([]byte(id))
	return h.Sum32() % api.MaxSessionConsumers
}
