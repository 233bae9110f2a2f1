package natsgateway

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/test/natskit"
)

// What may be sent twice is sent again when no answer comes, as from a broker that was killed with it.
func TestAskedAgain(t *testing.T) {
	t.Parallel()
	const alpha, id = "agent://acme.com/alpha", "018f3c1e-7b2a-7c3d-8e4f-5a6b7c8d9e0f"
	nc := natskit.StartServer(t).Connect()
	g := &Gateway{o: Options{Conn: nc, Isolated: func() bool { return false }}}
	for name, ask := range map[string]struct {
		subject string
		send    func() error
	}{
		"a submit": {api.Submit(alpha, id), func() error {
			_, err := g.SubmitAs(t.Context(), alpha, id, []byte("{}"))
			return err
		}},
		"a read": {api.Call(alpha, api.SessionGet.Name), func() error {
			_, err := g.CallAs(t.Context(), alpha, api.SessionGet.Name, []byte("{}"))
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			taken := 0
			_, err := nc.Subscribe(ask.subject, func(m *nats.Msg) {
				if taken++; taken > 1 {
					m.Respond([]byte("{}")) //nolint:errcheck // the asker finds out
				}
			})
			natskit.Must(t, err)
			natskit.Must(t, ask.send())
		})
	}
}

// Nobody is asked, and nobody waits, while the NATS server is away.
func TestAway(t *testing.T) {
	t.Parallel()
	s := natskit.StartServer(t)
	nc := s.Connect(nats.MaxReconnects(-1))
	lost := nc.StatusChanged(nats.RECONNECTING)
	s.Shutdown()
	<-lost
	g := &Gateway{o: Options{Conn: nc, Isolated: func() bool { return true }}}
	before := nc.Stats().OutMsgs
	_, err := g.CallAs(t.Context(), "agent://acme.com/alpha", api.SessionGet.Name, []byte("{}"))
	if session.CodeOf(err) != session.Unavailable || nc.Stats().OutMsgs != before {
		t.Errorf("%v, after %d requests", err, nc.Stats().OutMsgs-before)
	}
}

func TestRepeatable(t *testing.T) {
	t.Parallel()
	for request, want := range map[[2]string]bool{
		{"session.get", "{}"}:                                        true,
		{"turn.wait", "{}"}:                                          false,
		{"turn.pickup", "{}"}:                                        false,
		{"session.say", `{"sessionId":"s"}`}:                         false,
		{"session.say", `{"messageId":"m"}`}:                         false,
		{"session.say", `{"sessionId":"s","messageId":"m"}`}:         true,
		{"session.say", `{"key":"k"}`}:                               true,
		{"session.say", `{`}:                                         false,
		{"escalation.comment", `{"escalationId":"e","comment":"c"}`}: false,
		{"no.such", "{}"}:                                            false,
	} {
		if repeatable(request[0], []byte(request[1])) != want {
			t.Errorf("%s: want %v", request, want)
		}
	}
}

func TestWaits(t *testing.T) {
	t.Parallel()
	for request, want := range map[[2]string]time.Duration{
		{"session.get", "{}"}:                 0,
		{"turn.wait", "{}"}:                   0,
		{"turn.wait", `{"seconds":2.5}`}:      2500 * time.Millisecond,
		{"turn.wait", `{"seconds":-1e9}`}:     0,
		{"turn.wait", `{"seconds":1e9}`}:      api.LongestWait,
		{"turn.wait", `{`}:                    api.LongestWait,
		{"discovery.call", `{"waitMs":1}`}:    api.LongestWait,
		{"turn.pickup", `{"seconds":"none"}`}: 0,
	} {
		if got := waits(request[0], []byte(request[1])); got != want {
			t.Errorf("%s: %s, want %s", request, got, want)
		}
	}
}
