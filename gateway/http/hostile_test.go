package httpgateway_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker/limits"
	"github.com/parley-asp/parley/server"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/test/testkit"
)

// raw sends bytes on a connection of its own, and reads one answer.
func (w world) raw(conn net.Conn, request string) (a testkit.Answer, err error) {
	if err := conn.SetDeadline(time.Now().Add(testkit.Patience)); err != nil {
		return a, err
	}
	if _, err := io.WriteString(conn, request); err != nil {
		return a, err
	}
	reply, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return a, err
	}
	defer reply.Body.Close()
	body, err := io.ReadAll(reply.Body)
	return testkit.Answer{TB: w.TB, StatusCode: reply.StatusCode, Header: reply.Header, Body: body}, err
}

func (w world) dials() net.Conn {
	w.Helper()
	conn, err := new(net.Dialer).DialContext(w.Ctx, "tcp", w.HTTPAddr)
	testkit.Must(w, err)
	w.Cleanup(func() { conn.Close() })
	return conn
}

// What no client should send is refused, tells nothing, and injects nothing.
func TestHTTPHostile(t *testing.T) {
	t.Parallel()
	w := world{testkit.NewWorld(t, testkit.Options{Dev: true, HTTP: "127.0.0.1:0"})}
	as := "Authorization: Bearer " + string(cron) + "\r\n"
	for what, c := range map[string]struct {
		line, headers, body string
		status              int
		code                session.Code // of the gateway; net/http refuses the others itself
	}{
		"bad percent-encoding":              {"GET /v1/asp/sessions/%zz", as, "", 400, ""},
		"bad percent-encoding in the query": {"GET /v1/asp/sessions?limit=%zz", as, "", 400, session.MalformedEnvelope},
		"a NUL":                             {"GET /v1/asp/sessions/%00", as, "", 404, session.UnknownSession},
		"no UTF-8":                          {"GET /v1/asp/agents/%ff%fe/card", as, "", 404, session.UnknownAgent},
		"a line break in a path":            {"GET /v1/asp/sessions/x%0d%0aX-Injected:%20y", as, "", 404, session.UnknownSession},
		"a wildcard of NATS":                {"GET /v1/asp/sessions/%3e/messages", as, "", 404, session.UnknownSession},
		"a subject of NATS":                 {"GET /v1/asp/escalations/x.y%20z", as, "", 404, session.UnknownSession},
		"a way up":                          {"GET /v1/asp/sessions/..%2f..%2fversion", as, "", 404, session.UnknownSession},
		"a control character in a header":   {"GET /v1/asp/sessions", as + "Idempotency-Key: a\x01b\r\n", "", 400, ""},
		"a folded header":                   {"GET /v1/asp/sessions", as + "X-A: b\r\n X-Injected: y\r\n", "", 200, ""},
		"two tokens":                        {"GET /v1/asp/sessions", as + as, "", 401, session.Unauthorized},
		"no token":                          {"GET /v1/asp/sessions", "Authorization: Bearer\r\n", "", 401, session.Unauthorized},
		"a key that is not ASCII":           {"POST /v1/asp/sessions", as + "Idempotency-Key: a\xe9b\r\nContent-Type: application/json\r\n", `{"with":["agent://w.co/x"],"purpose":"x"}`, 400, session.MalformedEnvelope},
		"two keys":                          {"POST /v1/asp/sessions", as + "Idempotency-Key: a\r\nIdempotency-Key: b\r\nContent-Type: application/json\r\n", `{"with":["agent://w.co/x"],"purpose":"x"}`, 400, session.MalformedEnvelope},
		"two content types":                 {"POST /v1/asp/sessions", as + "Content-Type: application/json\r\nContent-Type: text/plain\r\n", `{"with":["agent://w.co/x"],"purpose":"x"}`, 415, session.MalformedEnvelope},
		"two lengths":                       {"POST /v1/asp/sessions", as + "Content-Length: 9\r\nContent-Type: application/json\r\n", `{"purpose":"x"}`, 400, ""},
		"a large header":                    {"GET /v1/asp/sessions", as + "X-A: " + strings.Repeat("a", 64<<10) + "\r\n", "", 431, ""},
	} {
		length := ""
		if c.body != "" {
			length = fmt.Sprintf("Content-Length: %d\r\n", len(c.body))
		}
		a, err := w.raw(w.dials(), c.line+" HTTP/1.1\r\nHost: localhost\r\n"+c.headers+length+"\r\n"+c.body)
		if a.StatusCode != c.status || a.Header.Get("X-Injected") != "" {
			t.Errorf("%s is answered %d %v %s, %v; want %d", what, a.StatusCode, a.Header, a.Body, err, c.status)
		} else if c.code != "" {
			a.Refused(c.status, c.code)
		}
	}
	w.Send("GET", "/v1/asp/sessions", string(cron), "").Is(http.StatusOK, nil)
}

// Of 1,000 connections that one address opens, those over the bound are refused, and what was
// accepted of the others is there.
func TestThousandConnections(t *testing.T) {
	t.Parallel()
	w := world{testkit.NewWorld(t, testkit.Options{Dev: true, HTTP: "127.0.0.1:0"})}
	body := fmt.Sprintf(`{"with":[%q],"purpose":"x"}`, seller)
	var conns []net.Conn
	// opens has n more connections, each with a request, and counts how they are answered; 0 is not
	// at all. They stay open.
	opens := func(n int) map[int]int {
		statuses := make(chan int, n)
		for i := range n {
			conn := w.dials()
			conns = append(conns, conn)
			go func() {
				a, err := w.raw(conn, fmt.Sprintf("POST /v1/asp/sessions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s-%d\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", cron, i%8, len(body), body))
				if err == nil && a.StatusCode == http.StatusTooManyRequests {
					a.Refused(http.StatusTooManyRequests, session.RateLimited)
				}
				statuses <- a.StatusCode
			}()
		}
		counts := make(map[int]int)
		for range n {
			counts[<-statuses]++
		}
		return counts
	}
	const within = server.DefaultHTTPConnections
	if got := opens(within); got[http.StatusCreated] != within {
		t.Errorf("%d connections are answered %v", within, got)
	}
	// Of those over the bound 256 at a time are refused with an answer, and others are closed.
	if got := opens(1000 - within); got[http.StatusTooManyRequests] == 0 || got[http.StatusTooManyRequests]+got[0] != 1000-within {
		t.Errorf("%d connections over the bound are answered %v", 1000-within, got)
	}
	for _, conn := range conns {
		conn.Close()
	}
	testkit.Must(t, testkit.Serving(w.Ctx, http.DefaultClient, "http://"+w.HTTPAddr+"/version"))
	there := 0
	for i := range 8 {
		var page api.Sessions
		w.Send("GET", "/v1/asp/sessions?limit=200", fmt.Sprintf("%s-%d", cron, i), "").Is(http.StatusOK, &page)
		there += len(page.Sessions)
	}
	if there != within {
		t.Errorf("%d sessions are there, %d were opened", there, within)
	}
}

// An act that the rate limiter refuses leaves no record of its Idempotency-Key.
func TestRefusedKey(t *testing.T) {
	t.Parallel()
	w := testkit.NewHosted(t, testkit.Options{Limits: limits.Limits{Rate: 1e-6, Burst: 2}})
	noted, err := w.Server.Broker.Parts.Store.Bucket(w.Ctx, api.IdempotencyBucket, "", 0)
	testkit.Must(t, err)
	for i, key := range []string{"first", "second", "third"} {
		a := w.Send("POST", "/v1/asp/sessions", w.Tokens[cron], fmt.Sprintf(`{"with":[%q],"purpose":"x"}`, seller), func(r *http.Request) { r.Header.Set("Idempotency-Key", key) })
		records, err := noted.Records(w.Ctx, ">")
		testkit.Must(t, err)
		if accepted := a.StatusCode == http.StatusCreated; accepted != (key != "third") || accepted != (len(records) == i+1) {
			t.Errorf("the %s act is answered %d, and %d keys are noted", key, a.StatusCode, len(records))
		}
	}
}
