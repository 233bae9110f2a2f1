package a2agateway_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2asrv"
	"github.com/go-json-experiment/json"

	"github.com/parley-asp/parley/api"
	a2agateway "github.com/parley-asp/parley/gateway/a2a"
	"github.com/parley-asp/parley/internal/background"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/test/testkit"
)

// robot is an agent elsewhere: its domain is where its server listens.
const robot = performatives.Agent("agent://127.0.0.1/robot")

// A robotServer speaks A2A by the Go SDK, and signs its card.
type robotServer struct {
	a2asrv.RequestHandler
	*httptest.Server

	mu   sync.Mutex
	down bool
	came []string // messageIds, in order
	auth bool

	fails string // in a request that it cannot answer
	nulls bool   // its lists have them

	once  sync.Once
	asked chan struct{} // closed when somebody has
}

func startRobot(t *testing.T, change ...func(card map[string]any)) *robotServer {
	t.Helper()
	r := &robotServer{asked: make(chan struct{})}
	mux := http.NewServeMux()
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r.mu.Lock()
		down, fails := r.down, r.fails
		r.mu.Unlock()
		body, err := io.ReadAll(req.Body)
		if err != nil {
			t.Error(err)
		}
		req.Body = io.NopCloser(bytes.NewReader(body))
		down = down || fails != "" && bytes.Contains(body, []byte(fails))
		r.once.Do(func() { close(r.asked) })
		if down {
			http.Error(w, "down", http.StatusBadGateway)
			return
		}
		mux.ServeHTTP(w, req)
	}))
	t.Cleanup(r.Close)
	public, private, err := ed25519.GenerateKey(nil)
	testkit.Must(t, err)
	card := map[string]any{
		"name": "Robot", "description": "sells", "version": "1", "capabilities": map[string]any{"streaming": true}, "defaultInputModes": []any{"text/plain"}, "defaultOutputModes": []any{"text/plain"},
		"skills":              []any{map[string]any{"id": "s", "name": "s", "description": "s", "tags": []any{"s"}}},
		"supportedInterfaces": []any{map[string]any{"url": r.URL + "/rpc", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}},
	}
	data, err := json.Marshal(card)
	testkit.Must(t, err)
	payload, err := performatives.Canonical(data)
	testkit.Must(t, err)
	protected := base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, `{"alg":"EdDSA","kid":"k","jku":%q,"typ":"JOSE"}`, r.URL+"/keys"))
	card["signatures"] = []any{map[string]any{"protected": protected, "signature": base64.RawURLEncoding.EncodeToString(
		ed25519.Sign(private, []byte(protected+"."+base64.RawURLEncoding.EncodeToString(payload))))}}
	for _, c := range change {
		c(card)
	}
	data, err = json.Marshal(card)
	testkit.Must(t, err)
	mux.HandleFunc("/.well-known/agent-card.json", func(w http.ResponseWriter, _ *http.Request) { w.Write(data) }) //nolint:errcheck // a test
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"k","x":%q}]}`, base64.RawURLEncoding.EncodeToString(public)) //nolint:errcheck // a test
	})
	mux.Handle("/rpc", a2asrv.NewJSONRPCHandler(r))
	return r
}

// SendMessage answers in words, counters an offer at 6, and asks for credentials when told.
func (r *robotServer) SendMessage(_ context.Context, q *a2a.SendMessageRequest) (a2a.SendMessageResult, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(q.Message.Parts) != 2 {
		return nil, a2a.ErrInvalidParams
	}
	r.came = append(r.came, q.Message.ID)
	data, _ := q.Message.Parts[1].Data().(map[string]any)
	switch act := data["performative"]; {
	case r.nulls:
		welcome := &a2a.Message{ID: "m", Role: a2a.MessageRoleAgent, Parts: a2a.ContentParts{nil, a2a.NewTextPart("Welcome")}}
		return &a2a.Task{ID: "t", ContextID: "c", Status: a2a.TaskStatus{State: a2a.TaskStateCompleted}, Artifacts: []*a2a.Artifact{nil}, History: []*a2a.Message{welcome, nil}}, nil
	case r.auth:
		return &a2a.Task{ID: "t", ContextID: "c", Status: a2a.TaskStatus{State: a2a.TaskStateAuthRequired, Message: a2a.NewMessage(a2a.MessageRoleAgent, a2a.NewTextPart("log in at evil.example"))}}, nil
	case act == "PROPOSE" && data["state"] == "CONVERSING":
		return &a2a.Task{ID: "t", ContextID: "c", Status: a2a.TaskStatus{
			State: a2a.TaskStateInputRequired, Message: a2a.NewMessage(a2a.MessageRoleAgent, a2a.NewDataPart(map[string]any{"action": "counter", "terms": map[string]any{"price": 6}})),
		}}, nil
	case act == "ACCEPT" || act == "CLOSE":
		return &a2a.Message{ID: "m", Role: a2a.MessageRoleAgent, Parts: a2a.ContentParts{a2a.NewTextPart("")}}, nil
	default:
		return a2a.NewMessage(a2a.MessageRoleAgent, a2a.NewTextPart("Welcome")), nil
	}
}

func (r *robotServer) set(down, auth bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.down, r.auth = down, auth
}

func (w world) addRobot(url string) {
	w.Helper()
	card := api.Card{Agent: robot}
	card.Registry.A2A = url
	_, err := w.OperatorClient().AddHosted(w.Ctx, card)
	testkit.Must(w, err)
}

// GATEWAYS.md G7, outbound: an agent elsewhere is invited and bargains through its own server,
// its answers are acts signed by a hosted key, its auth-required is shown and not obeyed, and a
// restart loses nothing and sends nothing twice.
func TestA2ARemote(t *testing.T) {
	t.Parallel()
	w := world{testkit.NewHosted(t, testkit.Options{PrivateWebhooks: true})}
	r := startRobot(t)
	testkit.Must(t, a2agateway.CheckRemote(w.Ctx, robot, r.URL, false))
	w.addRobot(r.URL)
	var opened api.Acceptance
	w.Send("POST", "/v1/asp/sessions", w.Tokens[cron], fmt.Sprintf(`{"with":[%q],"purpose":"buy cups","terms":{"invitationTimeoutMs":600000}}`, robot)).Is(http.StatusCreated, &opened)
	id := string(opened.Session)
	say := func(act string) {
		t.Helper()
		w.Send("POST", testkit.SessionPath(opened.Session)+"/messages", w.Tokens[cron], act).Is(http.StatusOK, nil)
	}
	if acts := w.acts(id, 2); acts[1] != "ACCEPT" {
		t.Fatalf("the invitation is answered with %v", acts)
	}
	r.set(true, false) // the server is down, and the broker restarts
	say(`{"performative":"PROPOSE","body":{"proposalId":"p1","type":"offer","subject":"cups","terms":{"price":5}}}`)
	w.Down()
	w.Up()
	r.set(false, false)
	if acts := w.acts(id, 4); !slices.Equal(acts, []string{"PROPOSE", "ACCEPT", "PROPOSE", "COUNTER"}) {
		t.Errorf("after a restart the acts are %v", acts)
	}
	r.set(false, true)
	say(`{"performative":"QUERY","body":{"queryId":"q","queryType":"question","subject":"how many?"}}`)
	if acts := w.acts(id, 6); acts[5] != "OBSERVE" {
		t.Errorf("auth-required is shown as %v", acts)
	}
	var view api.SessionView
	w.Send("GET", testkit.SessionPath(opened.Session), w.Tokens[cron], "").Is(http.StatusOK, &view)
	counter := view.Proposals[len(view.Proposals)-1]
	if counter.From != robot || string(counter.Terms) != `{"price":6}` {
		t.Errorf("the counter is %+v", counter)
	}
	r.set(false, false)
	say(fmt.Sprintf(`{"performative":"ACCEPT","body":{"referenceId":%q}}`, counter.Proposal))
	r.mu.Lock()
	defer r.mu.Unlock()
	seen := map[string]bool{}
	for _, came := range r.came {
		if seen[came] {
			t.Errorf("message %s came twice", came)
		}
		seen[came] = true
	}
}

// A session in which its server fails keeps it from no other, and is gone on with when the server does not fail any more.
func TestA2ARemoteFailsOnce(t *testing.T) {
	t.Parallel()
	w := world{testkit.NewHosted(t, testkit.Options{PrivateWebhooks: true})}
	r := startRobot(t)
	r.fails = "poison"
	w.addRobot(r.URL)
	opens := func(purpose string) string {
		t.Helper()
		var opened api.Acceptance
		w.Send("POST", "/v1/asp/sessions", w.Tokens[cron], fmt.Sprintf(`{"with":[%q],"purpose":%q}`, robot, purpose)).Is(http.StatusCreated, &opened)
		return string(opened.Session)
	}
	poisoned := opens("buy poison")
	testkit.Must(t, background.Await(w.Ctx, r.asked))
	if acts := w.acts(opens("buy cups"), 2); acts[1] != "ACCEPT" {
		t.Errorf("beside a session in which its server fails the invitation is answered with %v", acts)
	}
	w.Down()
	w.Up()
	if acts := w.acts(opens("buy plates"), 2); acts[1] != "ACCEPT" {
		t.Errorf("after a restart the invitation is answered with %v", acts)
	}
	r.mu.Lock()
	r.fails = ""
	r.mu.Unlock()
	if acts := w.acts(poisoned, 2); acts[1] != "ACCEPT" {
		t.Errorf("once its server does not fail the invitation is answered with %v", acts)
	}
}

// An agent whose card changes is talked to where it is now.
func TestA2ARemoteMoves(t *testing.T) {
	t.Parallel()
	w := world{testkit.NewHosted(t, testkit.Options{PrivateWebhooks: true})}
	old := startRobot(t)
	old.set(true, false)
	w.addRobot(old.URL)
	var opened api.Acceptance
	w.Send("POST", "/v1/asp/sessions", w.Tokens[cron], fmt.Sprintf(`{"with":[%q],"purpose":"buy cups","terms":{"invitationTimeoutMs":600000}}`, robot)).Is(http.StatusCreated, &opened)
	testkit.Must(t, background.Await(w.Ctx, old.asked))
	w.addRobot(startRobot(t).URL)
	if acts := w.acts(string(opened.Session), 2); acts[1] != "ACCEPT" {
		t.Errorf("the invitation is answered with %v", acts)
	}
}

// What an agent elsewhere answers does not crash the broker.
func TestA2ARemoteNulls(t *testing.T) {
	t.Parallel()
	w := world{testkit.NewHosted(t, testkit.Options{PrivateWebhooks: true})}
	r := startRobot(t, func(card map[string]any) {
		card["supportedInterfaces"] = []any{nil, card["supportedInterfaces"].([]any)[0]} //nolint:forcetypeassert // made above
		delete(card, "signatures")
	})
	r.nulls = true
	card := api.Card{Agent: robot}
	card.Registry.A2A, card.Registry.A2AUnsigned = r.URL, true
	_, err := w.OperatorClient().AddHosted(w.Ctx, card)
	testkit.Must(t, err)
	var opened api.Acceptance
	w.Send("POST", "/v1/asp/sessions", w.Tokens[cron], fmt.Sprintf(`{"with":[%q],"purpose":"buy cups"}`, robot)).Is(http.StatusCreated, &opened)
	if acts := w.acts(string(opened.Session), 2); acts[1] != "ACCEPT" {
		t.Errorf("the invitation is answered with %v", acts)
	}
}

// An agent's card has to be signed by a key of the agent's domain, and to name servers there.
func TestA2ARemoteCard(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(map[string]any)
		want   error
	}{
		"forged":   {func(card map[string]any) { card["name"] = "Bank" }, a2agateway.ErrSignature},
		"unsigned": {func(card map[string]any) { delete(card, "signatures") }, a2agateway.ErrUnsigned},
		"another domain": {func(card map[string]any) {
			card["supportedInterfaces"].([]any)[0].(map[string]any)["url"] = "https://evil.example/"
		}, a2agateway.ErrOrigin}, //nolint:forcetypeassert // made above
		"another port": {func(card map[string]any) {
			card["supportedInterfaces"].([]any)[0].(map[string]any)["url"] = "http://127.0.0.1:1/"
		}, a2agateway.ErrOrigin}, //nolint:forcetypeassert // made above
		"unsigned part": {func(card map[string]any) { card["x"] = "y" }, nil},
	} {
		r := startRobot(t, c.change)
		if err := a2agateway.CheckRemote(t.Context(), robot, r.URL, false); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
		if err := a2agateway.CheckRemote(t.Context(), seller, r.URL, true); !errors.Is(err, a2agateway.ErrDomain) {
			t.Errorf("%s: the card of another agent: %v", name, err)
		}
	}
	r := startRobot(t, func(card map[string]any) { delete(card, "signatures") })
	testkit.Must(t, a2agateway.CheckRemote(t.Context(), robot, r.URL, true))
}
