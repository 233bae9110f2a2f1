package adversary

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/internal/natslogin"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/server"
	"github.com/parley-asp/parley/session/agreement"
	"github.com/parley-asp/parley/test/testkit"
)

// A hostileServer speaks NATS as far as the login, with a nonce of its choice.
type hostileServer struct {
	url string

	mu       sync.Mutex
	asked    int
	connects []string
}

func startHostile(t *testing.T, nonce string) *hostileServer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Must(t, err)
	t.Cleanup(func() { l.Close() })
	h := &hostileServer{url: "nats://" + l.Addr().String()}
	info, err := json.Marshal(map[string]any{"server_id": "N", "version": "2.12.0", "proto": 1, "max_payload": 1 << 20, "auth_required": true, "headers": true, "nonce": nonce})
	testkit.Must(t, err)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go h.serve(c, info)
		}
	}()
	return h
}

func (h *hostileServer) serve(c net.Conn, info []byte) {
	defer c.Close()
	h.mu.Lock()
	h.asked++
	h.mu.Unlock()
	fmt.Fprintf(c, "INFO %s\r\n", info) //nolint:errcheck // who hangs up is not served
	lines := bufio.NewScanner(c)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if connect, is := strings.CutPrefix(lines.Text(), "CONNECT "); is {
			h.mu.Lock()
			h.connects = append(h.connects, connect)
			h.mu.Unlock()
		}
	}
}

// signatures are those that the server got, and how often it was asked to let somebody in.
func (h *hostileServer) signatures(t *testing.T) (all []string, asked int) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, text := range h.connects {
		var connect struct{ Sig string }
		testkit.Must(t, json.Unmarshal([]byte(text), &connect))
		if connect.Sig != "" {
			all = append(all, connect.Sig)
		}
	}
	return all, h.asked
}

// A NATS server chooses the nonce that a login signs. One that asks for an ACCEPT, a token's proof or a receipt
// gets no signature, from a client nor from a broker, and the keys that sign those log in nowhere.
func TestLoginIsNoOracle(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.Principal(alpha)
	accept := string(p.Envelope(testkit.NewSession(), &performatives.AcceptBody{ReferenceID: "p1"}))
	proof, err := api.ProveToken{Agent: alpha, Audience: w.Server.Broker.Command.Key(), Timestamp: "2026-11-23T00:00:00.000Z"}.SigningBytes()
	testkit.Must(t, err)
	for name, nonce := range map[string]string{
		"an ACCEPT": accept, "a token's proof": string(proof), "a receipt": `{"acceptedAt":"2026-11-23T00:00:00.000Z","hash":"sha256:00","state":"CONVERSING"}`,
		"an agreement": "sha256-" + strings.Repeat("0", 64), "a card's JWS": "eyJhbGciOiJFZERTQSJ9.e30",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := startHostile(t, nonce)
			ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
			defer cancel()
			fails := client.NATS(nats.RetryOnFailedConnect(false))
			dir := t.TempDir()
			testkit.WriteKeys(t, filepath.Join(dir, "alpha.nk"), p.Key)
			for how, options := range map[string][]client.Option{
				"keys": testkit.Keys(t, p.Signer), "files": {client.SeedFile(filepath.Join(dir, "alpha.nk"))},
				"one key of before": {client.Key(p.Signer), client.SharedKeys()},
			} {
				if c, err := client.Connect(ctx, h.url, alpha, append(options, fails)...); err == nil {
					c.Close()
					t.Errorf("%s: connected", how)
				}
			}
			if o, err := client.ConnectOperator(ctx, h.url, client.Login(testkit.Signer(t, w.Operator())), fails); err == nil {
				o.Close()
				t.Error("an operator connected")
			}
			if s, err := server.Start(ctx, server.Options{Data: t.TempDir(), NATS: h.url}); err == nil {
				s.Close(ctx)
				t.Error("a broker connected")
			}
			if got, asked := h.signatures(t); len(got) > 0 || asked < 5 {
				t.Errorf("of %d logins, the server has the signatures %q", asked, got)
			}
		})
	}
}

// A recorder signs, and keeps what it signed.
type recorder struct {
	performatives.Signer
	mu     sync.Mutex
	signed []string
}

func (r *recorder) Sign(data []byte) ([]byte, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.signed = append(r.signed, string(data))
	return r.Signer.Sign(data)
}

// forms are those of all that a principal's key signs, and the broker's (docs/SECURITY.md). None can be taken for
// another.
var forms = map[string]func(text string, members map[string]json.RawMessage) bool{
	"an envelope": func(_ string, m map[string]json.RawMessage) bool {
		return m["performative"] != nil && m["messageId"] != nil
	},
	"a receipt":    func(_ string, m map[string]json.RawMessage) bool { return m["acceptedAt"] != nil && m["hash"] != nil },
	"a proof":      func(_ string, m map[string]json.RawMessage) bool { return m["agentId"] != nil && m["audience"] != nil },
	"a rotation":   func(_ string, m map[string]json.RawMessage) bool { return m["agentId"] != nil && m["key"] != nil },
	"an agreement": func(text string, _ map[string]json.RawMessage) bool { return agreementForm.MatchString(text) },
	"a salt": func(text string, _ map[string]json.RawMessage) bool {
		return strings.HasPrefix(text, "parley agreement salt\n")
	},
	"a card's JWS": func(text string, _ map[string]json.RawMessage) bool { return jwsForm.MatchString(text) },
	"a webhook":    func(text string, _ map[string]json.RawMessage) bool { return webhookForm.MatchString(text) },
	"a NATS login": func(text string, _ map[string]json.RawMessage) bool { return nonceForm(text) },
	"a checkpoint": func(text string, _ map[string]json.RawMessage) bool { return checkpointForm.MatchString(text) },
}

var (
	agreementForm  = regexp.MustCompile(`^sha256-[0-9a-f]{64}$`)
	jwsForm        = regexp.MustCompile(`^eyJ[A-Za-z0-9_-]*\.[A-Za-z0-9_-]*$`)
	webhookForm    = regexp.MustCompile(`^[0-9A-Za-z_-]+\.[0-9]{10,}\.\{`)
	checkpointForm = regexp.MustCompile(`^[^ +]+\n[0-9]+\n[A-Za-z0-9+/]{43}=\n`)
)

func nonceForm(text string) bool {
	_, err := natslogin.Only(func([]byte) ([]byte, error) { return nil, nil })([]byte(text))
	return err == nil
}

func formsOf(text string) (is []string) {
	var members map[string]json.RawMessage
	if json.Unmarshal([]byte(text), &members) != nil {
		members = nil
	}
	for name, fits := range forms {
		if fits(text, members) {
			is = append(is, name)
		}
	}
	return is
}

// What a key signs has one form, and nobody else can have it sign another.
func TestSignedFormsAreApart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.Principal(alpha)
	signer := &recorder{Signer: p.Signer}
	c, err := client.Connect(w.Ctx, w.URL, alpha, client.Key(signer), client.Login(testkit.Signer(t, testkit.LoginOf(t, p.Signer))))
	testkit.Must(t, err)
	defer c.Close()
	b := w.Client(beta)
	s, err := c.Invite(w.Ctx, client.Invitation{ProposalID: "inv", With: []performatives.Agent{beta}, Purpose: "sha256-" + strings.Repeat("0", 64), Mode: "binding/1"})
	testkit.Must(t, err)
	_, err = b.Session(s.ID()).Accept(w.Ctx, "inv")
	testkit.Must(t, err)
	_, err = agreement.Sign(signer, agreement.Digest("sha256-"+strings.Repeat("a", 64)))
	testkit.Must(t, err)
	proof, err := api.ProveToken{Agent: alpha, Audience: w.Server.Broker.Command.Key(), Timestamp: time.Now().UTC().Format(performatives.TimeFormat)}.SigningBytes()
	testkit.Must(t, err)
	_, err = signer.Sign(proof)
	testkit.Must(t, err)
	_, err = c.RotateKey(w.Ctx, testkit.Signer(t, testkit.NewKey(t)))
	testkit.Must(t, err)
	seen := map[string]bool{}
	for _, text := range append(signer.signed, "PXoWU7zWAMt75FY", "eyJhbGciOiJFZERTQSJ9.e30", "msg_1.1763856000.{}", "parley/x\n1\n"+strings.Repeat("A", 43)+"=\n",
		`{"acceptedAt":"2026-11-23T00:00:00.000Z","hash":"sha256:00","state":"CONVERSING"}`, "parley agreement salt\ns\nm") {
		is := formsOf(text)
		if len(is) != 1 {
			t.Errorf("%.200q has the forms %q, want one", text, is)
			continue
		}
		seen[is[0]] = true
	}
	for name := range forms {
		if !seen[name] {
			t.Errorf("%s was not signed", name)
		}
	}
}
