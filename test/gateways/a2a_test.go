//go:build gateways

package gateways

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/client"
	a2agateway "github.com/parley-asp/parley/gateway/a2a"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session/transcript"
	"github.com/parley-asp/parley/test/testkit"
)

// TestA2AClients has buyers that speak A2A, by its Python and its JavaScript SDK, negotiate with
// a hosted seller, with an escalation in the middle. Each verifies the seller's signed card.
func TestA2AClients(t *testing.T) {
	for name, buyer := range map[string]func(*testing.T, []string) ([]byte, error){
		"Python":     func(t *testing.T, env []string) ([]byte, error) { return python(t, env, "a2a_buyer.py") },
		"JavaScript": func(t *testing.T, env []string) ([]byte, error) { return node(t, env, "a2a_buyer.mjs") },
	} {
		for _, binding := range []string{"JSONRPC", "HTTP+JSON"} {
			t.Run(name+" "+binding, func(t *testing.T) {
				t.Parallel()
				w := testkit.NewWorld(t, testkit.Options{HTTP: "127.0.0.1:0"})
				const buys = performatives.Agent("agent://acme.com/buyer")
				_, err := w.OperatorClient().AddHosted(w.Ctx, api.Card{Agent: buys})
				testkit.Must(t, err)
				token, err := w.OperatorClient().AddToken(w.Ctx, api.AddToken{Agent: buys})
				testkit.Must(t, err)
				sells := w.Principal("agent://widgets.co/seller", func(c *api.Card) { c.Name, c.A2A = "Seller", true })
				_, err = client.Do(w.Ctx, w.OperatorClient(), api.AgentHost, api.AgentRef{Agent: sells.Agent})
				testkit.Must(t, err)
				decides := w.Principal("human://acme.com/alice")
				go sell(w, w.Client(sells.Agent), decides)
				said := must(t)(buyer(t, []string{"A2A_URL=http://" + w.HTTPAddr + "/a2a/" + sells.Agent.Token(), "TOKEN=" + token.Token, "BINDING=" + binding}))
				var deal struct {
					Task      performatives.SessionID
					History   int
					Price     float64
					Agreement string
				}
				lines := bytes.Split(bytes.TrimSpace(said), []byte("\n"))
				if err := json.Unmarshal(lines[len(lines)-1], &deal); err != nil || deal.Price != 6 || deal.History != 8 || deal.Agreement == "" {
					t.Fatalf("the buyer says %s", said)
				}
				verify(t, w, sells.Agent, deal.Task, deal.History)
			})
		}
	}
}

// sell plays the seller, who accepts invitations and counters at 6, and the human who approves.
func sell(w *testkit.World, seller *client.Client, decides *testkit.Principal) {
	for m, err := range seller.Messages(w.Ctx) {
		if err != nil {
			return // the test is over
		}
		switch body := m.Body().(type) {
		case *performatives.ProposeBody:
			if body.Type == performatives.SessionInvitation {
				_, err = m.Session().Accept(w.Ctx, m.Ref())
			} else {
				_, err = m.Session().Counter(w.Ctx, m.Ref(), client.Proposal{Terms: map[string]any{"price": 6}})
			}
		case *performatives.EscalateBody:
			decides.Say(m.Message.Session, testkit.Ruling(m.Message.ID, "approved"))
		}
		if err == nil {
			err = m.Ack()
		}
		if err != nil {
			w.Error(err)
		}
	}
}

// verify verifies a transcript offline.
func verify(t *testing.T, w *testkit.World, as performatives.Agent, id performatives.SessionID, length int) {
	t.Helper()
	entries, err := w.Client(as).Transcript(w.Ctx, id)
	testkit.Must(t, err)
	verifier := transcript.NewVerifier(w.Server.Broker.Command.Key(), transcript.Expect{Session: id, Length: length})
	for _, e := range entries {
		for _, fault := range verifier.Add(e.Bytes) {
			t.Error(fault)
		}
	}
	for _, fault := range verifier.End() {
		t.Error(fault)
	}
}

// TestA2AServers has agents elsewhere, which speak A2A by its Python and its JavaScript SDK, sell
// to a buyer on NATS, with an escalation in the middle. Their signed cards are checked.
func TestA2AServers(t *testing.T) {
	for name, program := range map[string][]string{
		"Python":     {filepath.Join(*installed, "python", "bin", "python"), "a2a_robot.py"},
		"JavaScript": {filepath.Join(*installed, "node_modules", ".bin", "node"), filepath.Join(*installed, "a2a_robot.mjs")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const robot = performatives.Agent("agent://127.0.0.1/robot")
			w := testkit.NewWorld(t, testkit.Options{HTTP: "127.0.0.1:0", PrivateWebhooks: true})
			url := serve(t, program...)
			testkit.Must(t, a2agateway.CheckRemote(w.Ctx, robot, url, false))
			card := api.Card{Agent: robot}
			card.Registry.A2A = url
			_, err := w.OperatorClient().AddHosted(w.Ctx, card)
			testkit.Must(t, err)
			decides := w.Principal("human://acme.com/alice")
			buyer := w.Client("agent://acme.com/buyer")
			s, err := buyer.Invite(w.Ctx, client.Invitation{With: []performatives.Agent{robot}, Purpose: "cups", InvitationTimeout: time.Minute})
			testkit.Must(t, err)
			await := func(act performatives.Performative) *client.Message {
				t.Helper()
				m, err := s.Await(w.Ctx, act)
				testkit.Must(t, err)
				return m
			}
			await(performatives.Accept)
			_, err = s.Propose(w.Ctx, client.Proposal{Type: "offer", Subject: "cups", Terms: map[string]any{"price": 5}})
			testkit.Must(t, err)
			counter := await(performatives.Counter)
			asked, err := s.Escalate(w.Ctx, client.Escalation{Reason: "authority-limit", Urgency: "low", Context: map[string]any{"price": 6}})
			testkit.Must(t, err)
			decides.Say(s.ID(), testkit.Ruling(performatives.MessageID(asked.ID), "approved"))
			_, err = s.Accept(w.Ctx, counter.Ref())
			testkit.Must(t, err)
			_, err = s.Close(w.Ctx, client.Closing{Outcome: performatives.Completed})
			testkit.Must(t, err)
			entries, err := buyer.Transcript(w.Ctx, s.ID())
			testkit.Must(t, err)
			verify(t, w, buyer.Agent(), s.ID(), len(entries))
		})
	}
}

// serve starts a server that prints its URL, and ends it with the test.
func serve(t *testing.T, command ...string) (url string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
	var faults bytes.Buffer
	cmd.Stderr = &faults
	out, err := cmd.StdoutPipe()
	testkit.Must(t, err)
	testkit.Must(t, cmd.Start())
	t.Cleanup(func() { cmd.Wait() }) //nolint:errcheck // it was killed
	url, err = bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("%s: %v\n%s", command[1], err, faults.Bytes())
	}
	return strings.TrimSpace(url)
}
