package adversary

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/test/testkit"
)

// TestOneAccount: principals read as much as they can, each over one face. Each is refused once it has
// had its minute's bytes, told when to come back, and refused over every other face; then it is let in
// again. An innocent agent is refused nothing, whatever it does meanwhile, and waits for nothing.
func TestOneAccount(t *testing.T) {
	t.Parallel()
	const quota = 2 << 20
	clock := testkit.StoppedClock(time.Now()) // nothing comes back before it is told to
	w := newWorld(t, func(o *testkit.Options) { o.Now, o.Limits.BytesOut, o.Limits.Rate = clock.Now, quota, 1e6 })
	innocent := w.Token(api.AddToken{Agent: alpha})
	worst := time.Duration(0)
	goesOn := func() {
		begun := time.Now()
		w.Principal(alpha).Say(w.deal, testkit.Fact("still here"))
		w.Send("GET", testkit.SessionPath(w.deal), innocent, "").Is(http.StatusOK, nil)
		worst = max(worst, time.Since(begun))
	}

	// An attack is answered with bytes, or refused.
	type attack func(a performatives.Agent, id performatives.SessionID, token string) (got int, refused *api.Limited)
	attacks := map[string]attack{
		"nats": func(a performatives.Agent, id performatives.SessionID, _ string) (int, *api.Limited) {
			m := w.Principal(a).Call(api.SessionMessages.Name, fmt.Sprintf(`{"sessionId":%q}`, id))
			if testkit.Code(t, m) == session.RateLimited {
				return 0, limitedIn(t, m.Data, func(e api.ErrorReply) []byte { return e.Error.Details })
			}
			return len(m.Data), nil
		},
		"http": func(_ performatives.Agent, id performatives.SessionID, token string) (int, *api.Limited) {
			answer := w.Send("GET", testkit.SessionPath(id)+"/messages", token, "")
			if answer.StatusCode == http.StatusTooManyRequests {
				answer.Refused(http.StatusTooManyRequests, session.RateLimited)
				return 0, limitedIn(t, answer.Body, func(p struct{ Details json.RawMessage }) []byte { return p.Details })
			}
			answer.Is(http.StatusOK, nil)
			return len(answer.Body), nil
		},
		"mcp": func(_ performatives.Agent, _ performatives.SessionID, token string) (int, *api.Limited) {
			list := strings.Repeat(`{"jsonrpc":"2.0","id":1,"method":"tools/list"},`, 20)
			answer := w.Send("POST", "/mcp", token, "["+strings.TrimSuffix(list, ",")+"]", func(r *http.Request) {
				r.Header.Set("Accept", "application/json, text/event-stream")
				r.Header.Set("Mcp-Protocol-Version", "2025-03-26") // which has batches
			})
			if answer.StatusCode == http.StatusTooManyRequests {
				return 0, &api.Limited{Limit: "bytesOut", RetryAfter: seconds(t, answer)}
			}
			answer.Is(http.StatusOK, nil)
			return len(answer.Body), nil
		},
	}
	for face, attack := range attacks {
		a := performatives.Agent("agent://" + face + ".example/reader")
		reader, mate := w.Principal(a), w.Principal(performatives.Agent("agent://"+face+".example/mate"))
		token := w.Token(api.AddToken{Agent: a})
		id := w.Open(reader, mate)
		for n := range 3 {
			reader.Say(id, testkit.Fact(fmt.Sprint(n, strings.Repeat("x", 200_000))))
		}
		got, largest, limit := 0, 0, (*api.Limited)(nil)
		for limit == nil && got < 4*quota {
			var n int
			n, limit = attack(a, id, token)
			got, largest = got+n, max(largest, n)
			goesOn()
		}
		if limit == nil || limit.Limit != "bytesOut" || limit.RetryAfter <= 0 || limit.RetryAfter > time.Minute.Milliseconds() {
			t.Errorf("%s: after %d bytes it is refused %+v", face, got, limit)
			continue
		}
		if got < quota-largest || got > quota+largest { // what it got is charged once
			t.Errorf("%s: it had %d bytes, of a quota of %d, in answers of up to %d", face, got, quota, largest)
		}
		for other, attack := range attacks {
			if _, refused := attack(a, id, token); refused == nil {
				t.Errorf("%s: it is let in over %s", face, other)
			}
		}
		clock.Advance(time.Duration(limit.RetryAfter)*time.Millisecond + 10*time.Millisecond)
		if _, refused := attack(a, id, token); refused != nil {
			t.Errorf("%s: it is refused when it was told to come: %+v", face, refused)
		}
	}
	if t.Logf("the slowest turn of an innocent agent took %s", worst); worst > longest {
		t.Errorf("a turn of an innocent agent took %s", worst)
	}
}

// limitedIn reads which limit a refusal is of.
func limitedIn[T any](t *testing.T, refusal []byte, details func(T) []byte) *api.Limited {
	t.Helper()
	var of T
	testkit.Must(t, json.Unmarshal(refusal, &of))
	limited := new(api.Limited)
	testkit.Must(t, json.Unmarshal(details(of), limited))
	return limited
}

// seconds are in how many milliseconds a client is told to ask again.
func seconds(t *testing.T, answer testkit.Answer) int64 {
	t.Helper()
	wait, err := time.ParseDuration(answer.Header.Get("Retry-After") + "s")
	testkit.Must(t, err)
	return wait.Milliseconds()
}
