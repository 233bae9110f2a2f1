//go:build !race

package adversary

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/test/testkit"
)

// An innocent client does on every face what clients do, in turn, and notes how long each answer took.
type innocent struct {
	*world
	token string
	took  []time.Duration
	heap  uint64 // the most that was in use
}

func (w *world) innocent() *innocent {
	return &innocent{world: w, token: w.Token(api.AddToken{Agent: alpha})}
}

// visits every face so many times, and returns what took longest.
func (c *innocent) visits(times int) (slowest string, worst time.Duration) {
	c.Helper()
	for range times {
		if face, took := c.visit(); took > worst {
			slowest, worst = face, took
		}
	}
	return slowest, worst
}

func (c *innocent) visit() (slowest string, worst time.Duration) {
	c.Helper()
	for _, on := range []struct {
		face string
		do   func()
	}{
		{"an act over NATS", func() { c.Principal(alpha).Say(c.deal, testkit.Fact(fmt.Sprint("still here ", len(c.took)))) }},
		{"a read over NATS", func() {
			want(c, "a read", c.Principal(beta).Call(api.SessionGet.Name, fmt.Sprintf(`{"sessionId":%q}`, c.deal)), "")
		}},
		{"a read over HTTP", func() { c.Send("GET", testkit.SessionPath(c.deal), c.token, "").Is(http.StatusOK, nil) }},
		{"a tool of MCP", func() {
			c.CallTool(c.token, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"get_negotiation","arguments":{"negotiationId":"`+string(c.deal)+`"}}}`).Is(http.StatusOK, nil)
		}},
		{"the catalogue", func() { c.Send("GET", "/.well-known/ai-catalog.json", "", "").Is(http.StatusOK, nil) }},
		{"an assessment", func() {
			c.Send("POST", "/bindu/"+alpha.Token()+"/agent/negotiation", "", `{"task_summary":"pdf"}`).Is(http.StatusOK, nil)
		}},
		{"the public log", func() { c.Send("GET", "/log/checkpoint", "", "").Is(http.StatusOK, nil) }},
	} {
		begun := time.Now()
		on.do()
		took := time.Since(begun)
		if c.took = append(c.took, took); took > worst {
			slowest, worst = on.face, took
		}
	}
	var now runtime.MemStats
	runtime.ReadMemStats(&now)
	c.heap = max(c.heap, now.HeapInuse)
	return slowest, worst
}

// An attack is what somebody does again and again to be expensive, from several places at once. It is
// prepared once. Whatever it is answered is an answer.
type attack struct {
	name    string
	prepare func(w attacker) (again func(ctx context.Context) (answered bool))
}

// attackers is how many do an attack at once.
const attackers = 8

// elsewhere is a client at another address of this machine than the innocent client's.
var elsewhere = &http.Client{Transport: &http.Transport{
	DialContext:         (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}).DialContext,
	MaxIdleConnsPerHost: attackers,
}}

// posts sends a request from elsewhere, and reads whatever it is answered.
func (w attacker) posts(ctx context.Context, path, token, body string) (answered bool) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, w.root+path, strings.NewReader(body))
	if err != nil {
		return false
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := elsewhere.Do(r)
	if err != nil {
		return false
	}
	defer answer.Body.Close()
	_, err = io.Copy(io.Discard, answer.Body)
	return err == nil
}

// attacker is what attacks come from.
type attacker struct {
	*world
	nc   *nats.Conn // eve's, which comes again when the broker does
	root string     // of URLs; the broker comes again at the same address
}

// asks sends a request over NATS, and takes whatever it is answered.
func (w attacker) asks(ctx context.Context, subject string, data []byte) (answered bool) {
	_, err := w.nc.RequestWithContext(ctx, subject, data)
	return err == nil
}

// batch is a batch of MCP.
func batch(n int) string {
	return "[" + strings.TrimSuffix(strings.Repeat(`{"jsonrpc":"2.0","id":1,"method":"tools/list"},`, n), ",") + "]"
}

var attacks = []attack{
	{"reads of a large session", func(w attacker) func(context.Context) bool {
		p, mate := w.Principal(eve), w.Principal("agent://evil.example/mate")
		id := w.Open(p, mate)
		for n := range 30 {
			p.Say(id, testkit.Fact(fmt.Sprint(n, strings.Repeat("x", 250_000))))
		}
		request := fmt.Appendf(nil, `{"sessionId":%q}`, id)
		return func(ctx context.Context) bool { return w.asks(ctx, api.Call(eve, api.SessionMessages.Name), request) }
	}},
	{"bytes of every bad kind", func(w attacker) func(context.Context) bool {
		floods := slices.Collect(maps.Values(w.floods(w.Principal(eve))))
		return func(ctx context.Context) bool {
			answered := false
			for _, data := range floods {
				answered = w.asks(ctx, api.Submit(eve, w.deal), data) || answered
			}
			return answered
		}
	}},
	{"acts that are refused", func(w attacker) func(context.Context) bool {
		forged := w.Principal(eve).Envelope(w.deal, testkit.Fact(strings.Repeat("x", 100_000)))
		return func(ctx context.Context) bool { return w.asks(ctx, api.Submit(eve, w.deal), forged) }
	}},
	{"invitations", func(w attacker) func(context.Context) bool {
		p := w.Principal(eve)
		var signing sync.Mutex
		return func(ctx context.Context) bool {
			id := testkit.NewSession()
			signing.Lock()
			invitation := p.Envelope(id, testkit.Invitation(beta))
			signing.Unlock()
			return w.asks(ctx, api.Submit(eve, id), invitation)
		}
	}},
	{"searches", func(w attacker) func(context.Context) bool {
		return func(ctx context.Context) bool {
			return w.asks(ctx, api.Call(eve, api.AgentSearch.Name), []byte(`{"query":"a e i o u"}`))
		}
	}},
	{"calls for proposals", func(w attacker) func(context.Context) bool {
		return func(ctx context.Context) bool {
			return w.asks(ctx, api.Call(eve, api.DiscoveryCall.Name), []byte(`{"task_summary":"pdf","waitMs":1}`))
		}
	}},
	{"batches of MCP", func(w attacker) func(context.Context) bool {
		token := w.Token(api.AddToken{Agent: eve, ReadOnly: true})
		return func(ctx context.Context) bool { return w.posts(ctx, "/mcp", token, batch(20)) }
	}},
	{"requests of many members", func(w attacker) func(context.Context) bool {
		token, many := w.Token(api.AddToken{Agent: eve}), make([]string, 4_000)
		for i := range many {
			many[i] = fmt.Sprintf(`"%d":0`, i)
		}
		terms, n := "{"+strings.Join(many, ",")+"}", new(atomic.Int64)
		return func(ctx context.Context) bool {
			if n.Add(1)%2 == 0 {
				return w.posts(ctx, "/v1/asp/sessions", token, `{"with":["`+string(beta)+`"],"purpose":"x","terms":`+terms+`}`)
			}
			return w.posts(ctx, "/mcp", token, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_negotiations","arguments":`+terms+`}}`)
		}
	}},
	{"a batch of thousands", func(w attacker) func(context.Context) bool {
		token := w.Token(api.AddToken{Agent: eve, ReadOnly: true})
		return func(ctx context.Context) bool { return w.posts(ctx, "/mcp", token, batch(5500)) }
	}},
	{"streams", func(w attacker) func(context.Context) bool {
		token, id := w.Token(api.AddToken{Agent: eve}), w.opens(eve, beta)
		return func(ctx context.Context) bool {
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, w.root+testkit.SessionPath(id)+"/events", nil)
			if err != nil {
				return false
			}
			r.Header.Set("Authorization", "Bearer "+token)
			answer, err := elsewhere.Do(r)
			if err != nil {
				return false // an address has only so many connections
			}
			context.AfterFunc(ctx, func() { answer.Body.Close() })
			return answer.StatusCode == http.StatusOK
		}
	}},
	{"webhooks to a silent sink", func(w attacker) func(context.Context) bool {
		called, over := make(chan struct{}, 1), make(chan struct{})
		sink := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			select {
			case called <- struct{}{}:
			default:
			}
			<-over
		}))
		w.Cleanup(sink.Close)
		w.Cleanup(func() { close(over) })
		const tasks, hooks = 10, 10
		tokens, at := map[performatives.Agent]string{}, "/a2a/"+testkit.Seller.Token()+"/"
		for _, a := range []performatives.Agent{testkit.Cron, testkit.Seller} {
			_, err := w.OperatorClient().AddHosted(w.Ctx, api.Card{Agent: a, A2A: true})
			testkit.Must(w, err)
			tokens[a] = w.Token(api.AddToken{Agent: a})
		}
		paths := make([]string, tasks)
		for n := range paths {
			var reply struct {
				Result struct {
					Task struct {
						ID performatives.SessionID `json:"id"`
					} `json:"task"`
				} `json:"result"`
			}
			w.Send("POST", at, tokens[testkit.Cron], fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"%d","role":"ROLE_USER","parts":[{"text":"hello"}]},"configuration":{"returnImmediately":true}}}`, n)).Is(http.StatusOK, &reply)
			id := reply.Result.Task.ID
			for range hooks {
				w.Send("POST", at, tokens[testkit.Cron], fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"CreateTaskPushNotificationConfig","params":{"taskId":%q,"url":%q}}`, id, sink.URL)).Is(http.StatusOK, nil)
			}
			paths[n] = testkit.SessionPath(id) + "/messages"
			w.Send("POST", paths[n], tokens[testkit.Seller], `{"performative":"ACCEPT","body":{"referenceId":"invitation"}}`).Is(http.StatusOK, nil)
		}
		<-called
		var n atomic.Int64
		return func(ctx context.Context) bool {
			return w.posts(ctx, paths[n.Add(1)%tasks], tokens[testkit.Seller], `{"performative":"INFORM","body":{"type":"fact","data":1}}`)
		}
	}},
	{"assessments", func(w attacker) func(context.Context) bool {
		body := fmt.Sprintf(`{"task_summary":"pdf","task_details":%q}`, strings.Repeat("pdf word image table ", 2000))
		return func(ctx context.Context) bool {
			return w.posts(ctx, "/bindu/"+beta.Token()+"/agent/negotiation", "", body)
		}
	}},
	{"tokens that are none", func(w attacker) func(context.Context) bool {
		return func(ctx context.Context) bool {
			return w.posts(ctx, "/mcp", "parley_"+strings.Repeat("x", 64), batch(1))
		}
	}},
	{"logins", func(w attacker) func(context.Context) bool {
		p := w.Principal(eve)
		stolen := nats.Nkey(string(testkit.LoginKeys(w, w.Principal(alpha).Key)[0]), p.Key.Sign)
		return func(context.Context) bool {
			nc, err := p.Dial(stolen)
			if err == nil {
				nc.Close()
				w.Error("a stolen name is let in")
			}
			return true
		}
	}},
}

// begin lets the attackers attack until end.
func (w *world) begin(a attack) (end func()) {
	ctx, cancel := context.WithCancel(w.Ctx)
	nc, err := w.Principal(eve).Dial(w.Principal(eve).Login(), nats.MaxReconnects(-1), nats.ReconnectWait(time.Millisecond), func(o *nats.Options) error {
		o.AllowReconnect = true
		return nil
	})
	testkit.Must(w, err)
	again := a.prepare(attacker{w, nc, "http://" + w.HTTPAddr})
	var all sync.WaitGroup
	var answered atomic.Int64
	for range attackers {
		all.Go(func() {
			for ctx.Err() == nil {
				if again(ctx) {
					answered.Add(1)
				}
			}
		})
	}
	end = sync.OnceFunc(func() {
		cancel()
		all.Wait()
		if w.Logf("%d times", answered.Load()); answered.Load() == 0 {
			w.Error("the attack was not answered once")
		}
	})
	w.Cleanup(end)
	return end
}

// callsOut lets a broker call webhooks on this machine.
func callsOut(o *testkit.Options) { o.PrivateWebhooks = true }

// TestInnocent: beside each attack an innocent client is refused nothing on any face, and waits for
// nothing longer than bound. When the broker is killed in the middle of it, what was accepted is there.
// It needs the whole machine: nothing runs beside it, and it is not built for the race detector.
func TestInnocent(t *testing.T) {
	const alone, visits = 2, 4
	for _, a := range attacks {
		t.Run(a.name, func(t *testing.T) {
			w := newWorld(t, callsOut)
			c := w.innocent()
			_, undisturbed := c.visits(alone)
			end := w.begin(a)
			if slowest, worst := c.visits(visits); worst > bound(undisturbed) {
				t.Errorf("%s took %s, alone %s", slowest, worst, undisturbed)
			}
			if a.name == "logins" { // nats-server 2.15 panics when it shuts down while it looks at one
				end()
			}
			w.Crash()
			w.Up()
			c.visits(1)
			end()
			const before = 4 // entries of the deal
			if entries := w.messages(w.Principal(beta).Conn(), beta, w.deal); entries != before+alone+visits+1 {
				t.Errorf("the deal has %d entries, want %d", entries, before+alone+visits+1)
			}
		})
	}
}

// BenchmarkInnocent is how long the innocent client waits, at the 99th percentile of all faces, alone
// and beside each attack, and the most memory that the process had in use, the attackers' included.
func BenchmarkInnocent(b *testing.B) {
	for _, a := range append([]attack{{name: "nothing"}}, attacks...) {
		b.Run(a.name, func(b *testing.B) {
			w := newWorld(b, callsOut)
			c := w.innocent()
			if a.prepare != nil {
				defer w.begin(a)()
			}
			for b.Loop() {
				c.visit()
			}
			all := slices.Sorted(slices.Values(c.took))
			b.ReportMetric(float64(all[len(all)/2].Microseconds())/1000, "ms/p50")
			b.ReportMetric(float64(all[len(all)*99/100].Microseconds())/1000, "ms/p99")
			b.ReportMetric(float64(c.heap>>20), "MiB")
		})
	}
}
