package adversary

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/test/testkit"
)

// cron is hosted: the installation holds its key.
const cron = performatives.Agent("agent://acme.com/cron")

// A hostedWorld has a hosted agent, and a session of it and beta.
type hostedWorld struct {
	*world
	token string // of cron
	path  string // of its session
}

func newHostedWorld(t *testing.T) hostedWorld {
	t.Helper()
	w := hostedWorld{world: newWorld(t)}
	_, err := w.OperatorClient().AddHosted(w.Ctx, api.Card{Agent: cron})
	testkit.Must(t, err)
	w.token = w.gives(api.AddToken{Agent: cron}).Token
	status, body := w.asks(w.token, "POST", "/sessions", fmt.Sprintf(`{"with":[%q],"purpose":"cups"}`, beta))
	var opened api.Acceptance
	testkit.Must(t, json.Unmarshal([]byte(body), &opened))
	if status != http.StatusCreated {
		t.Fatalf("opening a session is answered %d %s", status, body)
	}
	w.path = "/sessions/" + string(opened.Session)
	return w
}

// gives makes a token that has been used: attempts with it record no use.
func (w hostedWorld) gives(q api.AddToken) api.Token {
	w.Helper()
	made, err := w.OperatorClient().AddToken(w.Ctx, q)
	testkit.Must(w, err)
	if status, body := w.asks(made.Token, "GET", "/sessions", ""); status != http.StatusOK {
		w.Fatalf("a token of %s is answered %d %s", q.Agent, status, body)
	}
	bucket, err := w.inside().KeyValue(w.Ctx, api.KeysBucket)
	testkit.Must(w, err)
	use, err := bucket.Watch(w.Ctx, "used."+made.ID)
	testkit.Must(w, err)
	defer use.Stop()
	for {
		select {
		case e := <-use.Updates():
			if e != nil {
				return made
			}
		case <-w.Ctx.Done():
			w.Fatal("the use of a token is not recorded")
		}
	}
}

// asks sends a request with a token, again while the broker is unavailable; a body that is an envelope is sent as one.
func (w hostedWorld) asks(token, method, path, body string) (status int, answer string) {
	w.Helper()
	reply := testkit.Do(w, func() *http.Request {
		r, err := http.NewRequestWithContext(w.Ctx, method, "http://"+w.HTTPAddr+"/v1/asp"+path, strings.NewReader(body))
		testkit.Must(w, err)
		r.Header.Set("Content-Type", "application/json")
		if strings.Contains(body, `"version"`) {
			r.Header.Set("Content-Type", "application/asp+json")
		}
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		return r
	})
	return reply.StatusCode, string(reply.Body)
}

// An attempt is a request of an attacker.
type attempt struct {
	token, method, path, body string
}

// refuses makes the attempts, each of which must be refused so and leave no trace.
func (w hostedWorld) refuses(want int, code session.Code, attempts ...attempt) {
	w.Helper()
	w.harmless(func() {
		for _, a := range attempts {
			status, body := w.asks(a.token, a.method, a.path, a.body)
			if status != want || !strings.Contains(body, fmt.Sprintf(`"code":%q`, code)) {
				w.Errorf("%s %s %.80s is answered %d %s, want %d %s", a.method, a.path, a.body, status, body, want, code)
			}
		}
	})
}

const remark = `{"performative":"OBSERVE","body":{"subject":"x"}}`

func cardOf(a performatives.Agent) string { return "/agents/" + url.PathEscape(string(a)) + "/card" }

// TestStolenToken (GATEWAYS.md G1): a thief is its principal and nobody else, until the token is removed.
func TestStolenToken(t *testing.T) {
	t.Parallel()
	w := newHostedWorld(t)
	stolen := w.gives(api.AddToken{Agent: cron})
	deal, p := "/sessions/"+string(w.deal), w.Principal(beta)
	w.refuses(http.StatusNotFound, session.UnknownSession,
		attempt{stolen.Token, "GET", deal, ""}, attempt{stolen.Token, "GET", deal + "/messages", ""}, attempt{stolen.Token, "GET", deal + "/events", ""},
		attempt{stolen.Token, "POST", deal + "/messages", remark}, attempt{stolen.Token, "DELETE", deal, ""})
	w.refuses(http.StatusForbidden, session.Unauthorized,
		attempt{stolen.Token, "PUT", cardOf(beta), `{"name":"x"}`},
		attempt{stolen.Token, "POST", deal + "/messages", string(p.Envelope(w.deal, testkit.Fact("x")))})
	_, err := w.OperatorClient().RemoveToken(w.Ctx, stolen.ID)
	testkit.Must(t, err)
	w.refuses(http.StatusUnauthorized, session.Unauthorized,
		attempt{stolen.Token, "GET", w.path, ""}, attempt{stolen.Token, "POST", w.path + "/messages", remark}, attempt{stolen.Token, "DELETE", w.path, ""})
	if status, body := w.asks(w.token, "GET", w.path, ""); status != http.StatusOK {
		t.Errorf("the owner's own token is answered %d %s", status, body)
	}
}

// TestTokenOfAnother: a token reaches its principal's sessions only, and its secret fits no other id.
func TestTokenOfAnother(t *testing.T) {
	t.Parallel()
	w := newHostedWorld(t)
	eves := w.gives(api.AddToken{Agent: eve}).Token
	w.refuses(http.StatusNotFound, session.UnknownSession,
		attempt{eves, "GET", w.path, ""}, attempt{eves, "GET", w.path + "/messages", ""}, attempt{eves, "POST", w.path + "/messages", string(w.envelopeOfEve())})
	w.refuses(http.StatusForbidden, session.Unauthorized,
		attempt{eves, "POST", w.path + "/messages", remark}, // nobody signs for eve
		attempt{eves, "PUT", cardOf(cron), `{"name":"x"}`})
	id, secret := strings.Split(w.token, "_"), strings.Split(eves, "_")
	w.refuses(http.StatusUnauthorized, session.Unauthorized,
		attempt{"parley_" + id[1] + "_" + secret[2], "GET", w.path, ""}, attempt{w.token[:len(w.token)-1], "GET", w.path, ""},
		attempt{string(cron), "GET", w.path, ""}, attempt{string(cron) + "#worker", "GET", w.path, ""}, attempt{"", "GET", w.path, ""})
}

func (w hostedWorld) envelopeOfEve() []byte {
	id := performatives.SessionID(strings.TrimPrefix(w.path, "/sessions/"))
	return w.Principal(eve).Envelope(id, testkit.Fact("x"))
}

// TestHostedKeyByReply: the broker's answers to eve, sent to where hosted keys are stored or
// where the hosted agent acts, arrive nowhere; and no call of hers reaches the key.
func TestHostedKeyByReply(t *testing.T) {
	t.Parallel()
	w := newHostedWorld(t)
	p, id := w.Principal(eve), performatives.SessionID(strings.TrimPrefix(w.path, "/sessions/"))
	key := "key." + base64.RawURLEncoding.EncodeToString([]byte(cron))
	w.harmless(func() {
		for _, reply := range []string{
			api.Submit(cron, id), api.Call(cron, api.AgentRegister.Name), api.Inbox(cron, id), "$KV." + api.KeysBucket + "." + key,
			"$JS.API.DIRECT.GET.KV_" + api.KeysBucket + ".$KV." + api.KeysBucket + "." + key, api.OperatorCall(api.TokenAdd.Name),
		} {
			nc, err := p.Dial(p.Login()) // the server closes it for some of these
			testkit.Must(t, err)
			for subject, data := range map[string]string{
				api.Submit(eve, id):                            string(p.Envelope(id, testkit.Fact("x"))),
				api.Call(eve, api.AgentGet.Name):               fmt.Sprintf(`{"agentId":%q}`, cron),
				api.Call(cron, api.SessionGet.Name):            fmt.Sprintf(`{"sessionId":%q}`, id),
				api.Submit(cron, id):                           remark,
				api.OperatorCall(api.TokenAdd.Name):            fmt.Sprintf(`{"agentId":%q}`, cron),
				"$JS.API.STREAM.MSG.GET.KV_" + api.KeysBucket:  fmt.Sprintf(`{"last_by_subj":"$KV.%s.%s"}`, api.KeysBucket, key),
				"$JS.API.CONSUMER.CREATE.KV_" + api.KeysBucket: "{}",
			} {
				testkit.Must(t, nc.PublishRequest(subject, reply, []byte(data)))
			}
			nc.Flush() //nolint:errcheck // it may be closed
			nc.Close()
		}
		want(t, "an outsider", p.Call(api.SessionGet.Name, fmt.Sprintf(`{"sessionId":%q}`, id)), session.UnknownSession) // answered behind them
	}, eve)
}

// TestTokenInURL: a token in a URL is refused, also beside a good one in the header.
func TestTokenInURL(t *testing.T) {
	t.Parallel()
	w := newHostedWorld(t)
	for _, name := range []string{"access_token", "token", "cursor"} {
		query := "?" + name + "=" + w.token
		w.refuses(http.StatusUnauthorized, session.Unauthorized,
			attempt{"", "GET", w.path + query, ""}, attempt{w.token, "GET", w.path + query, ""}, attempt{"", "GET", w.path + "/events" + query, ""},
			attempt{"", "GET", w.path + "/ws" + query, ""}, attempt{w.token, "POST", w.path + "/messages" + query, remark})
	}
}

// TestReplayedProof: a proof makes one token, and one that is changed makes none.
func TestReplayedProof(t *testing.T) {
	t.Parallel()
	w := newHostedWorld(t)
	proof := api.ProveToken{Agent: alpha, Timestamp: time.Now().UTC().Format(time.RFC3339Nano), Audience: w.Server.Broker.Command.Key()}
	signed, err := proof.SigningBytes()
	testkit.Must(t, err)
	proof.Signature, err = performatives.SignBytes(w.Principal(alpha).Signer, signed)
	testkit.Must(t, err)
	text := func(change func(*api.ProveToken)) string {
		other := proof
		change(&other)
		data, err := json.Marshal(other)
		testkit.Must(t, err)
		return string(data)
	}
	same := text(func(*api.ProveToken) {})
	if status, body := w.asks("", "POST", "/token", same); status != http.StatusCreated {
		t.Fatalf("a proof is answered %d %s", status, body)
	}
	w.refuses(http.StatusForbidden, session.Unauthorized, attempt{"", "POST", "/token", same})
	w.refuses(http.StatusUnauthorized, session.SignatureInvalid,
		attempt{"", "POST", "/token", text(func(p *api.ProveToken) { p.Agent = beta })},
		attempt{"", "POST", "/token", text(func(p *api.ProveToken) { p.Agent = cron })},
		attempt{"", "POST", "/token", text(func(p *api.ProveToken) { p.Timestamp = time.Now().UTC().Format(time.RFC3339Nano) })},
		attempt{"", "POST", "/token", text(func(p *api.ProveToken) { p.Audience = w.Principal(beta).Signer.Key() })})
}

// TestReadOnlyToken: it reads what its principal reads, and changes nothing.
func TestReadOnlyToken(t *testing.T) {
	t.Parallel()
	w := newHostedWorld(t)
	token := w.gives(api.AddToken{Agent: cron, ReadOnly: true}).Token
	if status, body := w.asks(token, "GET", w.path, ""); status != http.StatusOK {
		t.Errorf("it reads %d %s", status, body)
	}
	w.refuses(http.StatusForbidden, session.Unauthorized,
		attempt{token, "POST", "/sessions", fmt.Sprintf(`{"with":[%q],"purpose":"x"}`, beta)}, attempt{token, "POST", w.path + "/messages", remark},
		attempt{token, "DELETE", w.path, ""}, attempt{token, "PUT", cardOf(cron), `{"name":"x"}`},
		attempt{token, "POST", "/escalations/" + string(w.deal) + "/claim", ""})
}
