package mcpgateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"github.com/parley-asp/parley/broker/custody"
	"github.com/parley-asp/parley/gateway"
	mcpgateway "github.com/parley-asp/parley/gateway/mcp"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

const buyer = performatives.Agent("agent://acme.com/buyer")

// A waitingBroker answers nothing until its caller is gone.
type waitingBroker struct {
	entered, left chan struct{}
}

func (b waitingBroker) CallAs(ctx context.Context, _ performatives.Agent, _ string, _ []byte) ([]byte, error) {
	b.entered <- struct{}{}
	<-ctx.Done()
	b.left <- struct{}{}
	return nil, ctx.Err()
}

// handler serves a broker for one token, "good".
func handler(b waitingBroker, expires time.Time, removed <-chan struct{}) http.Handler {
	return mcpgateway.ServeHTTP(options(b, expires, removed))
}

func options(b waitingBroker, expires time.Time, removed <-chan struct{}) mcpgateway.HTTPOptions {
	return mcpgateway.HTTPOptions{
		Origins: []string{"https://acme.com"}, Issuer: "https://login.acme.com",
		Service: &gateway.Service{Log: zap.NewNop(), CallAs: b.CallAs, Tokens: func(_ context.Context, bearer string) (custody.Pass, error) {
			if bearer != "good" {
				return custody.Pass{}, custody.ErrToken
			}
			return custody.Pass{Agent: buyer, Worker: "w", Expires: expires, Removed: removed}, nil
		}},
	}
}

func serves(t *testing.T, b waitingBroker, removed <-chan struct{}) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(handler(b, time.Time{}, removed))
	t.Cleanup(s.Close)
	return s
}

const waits = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wait_for_turn","arguments":{}}}`

// post sends a request with the good token; change alters it first.
func post(ctx context.Context, t *testing.T, url, body string, change ...func(http.Header)) (status int, header http.Header, answer string) {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Error(err)
		return 0, nil, ""
	}
	authorize(r.Header)
	for _, c := range change {
		c(r.Header)
	}
	reply, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, nil, err.Error()
	}
	defer reply.Body.Close()
	data, err := io.ReadAll(reply.Body)
	if err != nil {
		t.Error(err)
	}
	return reply.StatusCode, reply.Header, string(data)
}

// authorize sets the headers of a request of MCP, with the good token.
func authorize(h http.Header) {
	h.Set("Authorization", "Bearer good")
	h.Set("Content-Type", "application/json")
	h.Set("Accept", "application/json, text/event-stream")
}

func set(name, value string) func(http.Header) { return func(h http.Header) { h.Set(name, value) } }

// A client that disconnects in the middle of a wait ends it, in each revision, and so does the
// removal of its token.
func TestEndOfAWait(t *testing.T) {
	t.Parallel()
	for _, revision := range []string{"2025-11-25", "2026-07-28"} {
		b := waitingBroker{make(chan struct{}), make(chan struct{})}
		removed := make(chan struct{})
		s := serves(t, b, removed)
		of := []func(http.Header){set("Mcp-Protocol-Version", revision)}
		call := waits
		if revision == "2026-07-28" {
			of = append(of, set("Mcp-Method", "tools/call"), set("Mcp-Name", "wait_for_turn"))
			call = strings.Replace(waits, `"params":{`, `"params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}},`, 1)
		}
		ctx, disconnect := context.WithCancel(t.Context())
		go post(ctx, t, s.URL+"/mcp", call, of...)
		<-b.entered
		disconnect()
		<-b.left
		answered := make(chan string)
		go func() {
			_, _, answer := post(t.Context(), t, s.URL+"/mcp", call, of...)
			answered <- answer
		}()
		<-b.entered
		close(removed)
		<-b.left
		if answer := <-answered; !strings.Contains(answer, "unauthorized") {
			t.Errorf("%s: when the token is removed the wait is answered %s", revision, answer)
		}
	}
}

// A broker that stops ends a wait as if its time were over.
func TestStopOfAWait(t *testing.T) {
	t.Parallel()
	ending, end := context.WithCancel(t.Context())
	b := waitingBroker{make(chan struct{}, 1), make(chan struct{}, 1)}
	o := options(b, time.Time{}, nil)
	o.Service.Ending = ending
	s := httptest.NewServer(mcpgateway.ServeHTTP(o))
	t.Cleanup(s.Close)
	answered := make(chan string)
	go func() {
		_, _, answer := post(t.Context(), t, s.URL+"/mcp", waits)
		answered <- answer
	}()
	<-b.entered
	end()
	if answer := <-answered; !strings.Contains(answer, `\"status\":\"none\"`) {
		t.Errorf("when the broker stops the wait is answered %s", answer)
	}
}

// A token that expires in the middle of a wait ends it.
func TestExpiryEndsAWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const left = 20 * time.Second
		began := time.Now()
		b := waitingBroker{make(chan struct{}, 1), make(chan struct{}, 1)}
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/mcp", strings.NewReader(waits))
		authorize(r.Header)
		answer := httptest.NewRecorder()
		handler(b, began.Add(left), nil).ServeHTTP(answer, r)
		if waited := time.Since(began); waited != left || !strings.Contains(answer.Body.String(), "unauthorized") {
			t.Errorf("after %s the wait is answered %s", waited, answer.Body)
		}
	})
}

// What comes in from outside is bounded, and refused before it costs anything.
func TestBadRequests(t *testing.T) {
	t.Parallel()
	s := serves(t, waitingBroker{}, nil)
	list := `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	for name, c := range map[string]struct {
		body   string
		change func(http.Header)
		status int
		says   string
	}{
		"no token":       {list, func(h http.Header) { h.Del("Authorization") }, http.StatusUnauthorized, ""},
		"another token":  {list, set("Authorization", "Bearer bad"), http.StatusUnauthorized, ""},
		"10 MB":          {`{"jsonrpc":"2.0","id":1,"method":"` + strings.Repeat("x", 10<<20) + `"}`, set("X", ""), http.StatusRequestEntityTooLarge, ""},
		"other pages":    {list, set("Origin", "https://evil.example"), http.StatusForbidden, ""},
		"a listed page":  {list, set("Origin", "https://acme.com"), http.StatusOK, `"respond_to_negotiation"`},
		"no JSON":        {`{`, set("X", ""), http.StatusBadRequest, ""},
		"no such method": {strings.Replace(list, "tools/list", "tools/eat", 1), set("X", ""), http.StatusOK, `{"error":{"code":-32601,"message":"there is no method \"tools/eat\""},"id":1,"jsonrpc":"2.0"}`},
		"none of it":     {"[" + list + "," + strings.Replace(list, "tools/list", "tools/eat", 1) + "]", set("X", ""), http.StatusBadRequest, `"code":-32601`},
		"no such tool":   {strings.Replace(waits, "wait_for_turn", "eat", 1), set("X", ""), http.StatusOK, "-32602"},
		"no mandate":     {`{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"negotiate"}}`, set("X", ""), http.StatusOK, "the argument mandate is missing"},
		"wrong types":    {strings.Replace(waits, `{}`, `{"sessionId":7}`, 1), set("X", ""), http.StatusOK, "/sessionId: want a string"},
		"members twice":  {strings.Replace(waits, `{}`, `{"since":1,"since":2}`, 1), set("X", ""), http.StatusOK, "since"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			status, header, answer := post(t.Context(), t, s.URL+"/mcp?tools=all", c.body, c.change)
			if status != c.status || !strings.Contains(answer, c.says) {
				t.Errorf("answered %d %.300s", status, answer)
			}
			if challenge := header.Get("WWW-Authenticate"); status == http.StatusUnauthorized && !strings.Contains(challenge, `resource_metadata="`+s.URL+`/.well-known/oauth-protected-resource/mcp"`) {
				t.Errorf("the challenge is %q", challenge)
			}
		})
	}
	reply, err := http.Get(s.URL + "/.well-known/oauth-protected-resource/mcp")
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	var metadata struct {
		Resource string   `json:"resource"`
		Servers  []string `json:"authorization_servers"`
	}
	if err := json.NewDecoder(reply.Body).Decode(&metadata); err != nil || metadata.Resource != s.URL+"/mcp" || len(metadata.Servers) != 1 {
		t.Errorf("the metadata is %+v, %v", metadata, err)
	}
}

// An argument outside of its schema's range is refused by name, on each side of the range; the
// schema that clients read says the range.
func TestArgumentsOutOfRange(t *testing.T) {
	t.Parallel()
	s := serves(t, waitingBroker{}, nil)
	for _, c := range []struct{ tool, arguments, says string }{
		{"wait_for_turn", `{"seconds":51}`, "/seconds: is from 0 to 50"},
		{"wait_for_turn", `{"seconds":-1}`, "/seconds: is from 0 to 50"},
		{"wait_for_turn", `{"seconds":1.5}`, "/seconds: is a whole number"},
		{"get_transcript", `{"sessionId":"s","limit":0}`, "/limit: is from 1 to 200"},
		{"get_transcript", `{"sessionId":"s","limit":201}`, "/limit: is from 1 to 200"},
		{"get_transcript", `{"sessionId":"s","since":-1}`, "/since: is from 0 to 9007199254740991"},
		{"find_agents", `{"limit":101}`, "/limit: is from 1 to 100"},
		{"find_agents", `{"minTrust":100.5}`, "/minTrust: is from 0 to 100"},
		{"list_negotiations", `{"limit":1e9}`, "/limit: is from 1 to 100"},
		{"list_negotiations", `{"status":"open"}`, "status is one of active, waiting_for_agent, completed, all"},
	} {
		call := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + c.tool + `","arguments":` + c.arguments + `}}`
		if status, _, answer := post(t.Context(), t, s.URL+"/mcp?tools=all", call); status != http.StatusOK || !strings.Contains(answer, c.says) {
			t.Errorf("%s %s is answered %d %.300s", c.tool, c.arguments, status, answer)
		}
	}
}

// A page of another site whose name was made to lead here (DNS rebinding) is refused by its
// Host, whatever its Origin; names that the operator configured, and the machine's own, are not.
func TestForeignHosts(t *testing.T) {
	t.Parallel()
	const list = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	loopback, lan := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8080}, &net.TCPAddr{IP: net.IPv4(10, 0, 0, 7), Port: 8080}
	for _, c := range []struct {
		at           *net.TCPAddr
		url          string // configured
		host, origin string
		status       int
	}{
		{loopback, "", "127.0.0.1:8080", "", http.StatusOK},
		{loopback, "", "localhost:8080", "http://localhost:8080", http.StatusOK},
		{loopback, "", "[::1]:8080", "", http.StatusOK},
		{loopback, "", "evil.example", "", http.StatusForbidden},
		{loopback, "", "evil.example:8080", "http://evil.example:8080", http.StatusForbidden},
		{loopback, "", "localhost.evil.example", "", http.StatusForbidden},
		{loopback, "", "0.0.0.0:8080", "", http.StatusForbidden},
		{loopback, "", "127.0.0.1:8080", "http://evil.example", http.StatusForbidden},
		{loopback, "", "127.0.0.1:8080", "null", http.StatusForbidden},
		{loopback, "https://parley.acme.com", "parley.acme.com", "", http.StatusOK}, // a proxy on this machine
		{loopback, "https://parley.acme.com", "evil.example", "", http.StatusForbidden},
		{lan, "", "10.0.0.7:8080", "", http.StatusOK},
		{lan, "", "parley:8080", "", http.StatusOK}, // a program that uses a name which nobody configured
		{lan, "", "evil.example", "http://evil.example", http.StatusForbidden},
		{lan, "https://parley.acme.com", "parley.acme.com", "https://parley.acme.com", http.StatusOK},
		{lan, "https://parley.acme.com", "evil.example", "", http.StatusForbidden},
	} {
		o := options(waitingBroker{}, time.Time{}, nil)
		o.URL = c.url
		for path, body := range map[string]string{"/mcp": list, "/.well-known/oauth-protected-resource": ""} {
			method := http.MethodPost
			if body == "" {
				method = http.MethodGet
			}
			r := httptest.NewRequestWithContext(context.WithValue(t.Context(), http.LocalAddrContextKey, c.at), method, path, strings.NewReader(body))
			authorize(r.Header)
			r.Host = c.host
			if c.origin != "" {
				r.Header.Set("Origin", c.origin)
			}
			answer := httptest.NewRecorder()
			mcpgateway.ServeHTTP(o).ServeHTTP(answer, r)
			crossOnly := c.origin != "" && c.host == "127.0.0.1:8080" // metadata is public to any page
			if want := c.status; answer.Code != want && (!crossOnly || body != "") {
				t.Errorf("%s at %s with Host %q and Origin %q is answered %d, want %d", path, c.at, c.host, c.origin, answer.Code, want)
			}
		}
	}
}

// Without an issuer the metadata names the installation, which answers a token by that token.
func TestOwnIssuer(t *testing.T) {
	t.Parallel()
	o := options(waitingBroker{}, time.Now().Add(time.Hour), nil)
	o.Issuer = ""
	s := httptest.NewServer(mcpgateway.ServeHTTP(o))
	t.Cleanup(s.Close)
	get := func(path string, into any) {
		t.Helper()
		reply, err := http.Get(s.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		defer reply.Body.Close()
		if err := json.NewDecoder(reply.Body).Decode(into); err != nil || reply.StatusCode != http.StatusOK {
			t.Errorf("%s is answered %d, %v", path, reply.StatusCode, err)
		}
	}
	var resource struct {
		Resource string   `json:"resource"`
		Servers  []string `json:"authorization_servers"`
		Methods  []string `json:"bearer_methods_supported"`
	}
	get("/.well-known/oauth-protected-resource/mcp", &resource)
	if resource.Resource != s.URL+"/mcp" || !slices.Equal(resource.Servers, []string{s.URL}) || !slices.Equal(resource.Methods, []string{"header"}) {
		t.Errorf("the metadata is %+v", resource)
	}
	var issuer struct {
		Issuer string   `json:"issuer"`
		Token  string   `json:"token_endpoint"`
		Grants []string `json:"grant_types_supported"`
	}
	get("/.well-known/oauth-authorization-server", &issuer)
	if issuer.Issuer != s.URL || issuer.Token != s.URL+"/oauth/token" || !slices.Equal(issuer.Grants, []string{"client_credentials"}) {
		t.Errorf("the issuer is %+v", issuer)
	}
	for form, want := range map[string]string{
		"grant_type=client_credentials&client_id=w&client_secret=good":     `"access_token":"good","expires_in":3`,
		"grant_type=client_credentials&client_id=other&client_secret=good": "invalid_client",
		"grant_type=client_credentials&client_id=w&client_secret=bad":      "invalid_client",
		"grant_type=client_credentials":                                    "invalid_client",
		"grant_type=password&username=w&password=good":                     "unsupported_grant_type",
		"grant_type=" + strings.Repeat("x", 10_000):                        "invalid_request",
	} {
		reply, err := http.Post(issuer.Token, "application/x-www-form-urlencoded", strings.NewReader(form))
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(reply.Body)
		reply.Body.Close()
		if err != nil || !strings.Contains(string(data), want) {
			t.Errorf("%.80s is answered %d %s, %v", form, reply.StatusCode, data, err)
		}
	}
}

// A batch has few calls, of which none is run if there are more, and each is charged.
func TestBatch(t *testing.T) {
	t.Parallel()
	batch := func(n int, call string) string {
		return "[" + strings.TrimSuffix(strings.Repeat(call+",", n), ",") + "]"
	}
	var charged, left atomic.Int64
	left.Store(20)
	called := make(chan struct{}, 100)
	s := httptest.NewServer(mcpgateway.ServeHTTP(mcpgateway.HTTPOptions{Service: &gateway.Service{
		Log: zap.NewNop(),
		Tokens: func(context.Context, string) (custody.Pass, error) {
			return custody.Pass{Agent: buyer}, nil
		},
		CallAs: func(context.Context, performatives.Agent, string, []byte) ([]byte, error) {
			called <- struct{}{}
			return nil, session.NoSuchSession()
		},
		Charge: func(_ performatives.Agent, requests int) error {
			charged.Add(int64(requests))
			if left.Add(int64(-requests)) < 0 {
				return session.Refuse(session.RateLimited, "later")
			}
			return nil
		},
	}}))
	t.Cleanup(s.Close)
	const list = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	for _, body := range []string{batch(21, waits), batch(5500, list), " \n" + batch(21, list), batch(21, `{"a":1,"a":2}`), batch(21, "1")} {
		status, _, answer := post(t.Context(), t, s.URL+"/mcp", body)
		if status != http.StatusBadRequest || !strings.Contains(answer, `"code":-32600`) || !strings.Contains(answer, "at most 20 calls") {
			t.Errorf("%.40s is answered %d %.300s", body, status, answer)
		}
	}
	if status, _, answer := post(t.Context(), t, s.URL+"/mcp", "["+list); status != http.StatusBadRequest || !strings.Contains(answer, `"code":-32700`) {
		t.Errorf("half a batch is answered %d %.300s", status, answer)
	}
	if len(called) != 0 || charged.Load() != 0 {
		t.Errorf("of what was refused %d calls were run and %d charged", len(called), charged.Load())
	}
	var each []string
	for id := range 20 {
		each = append(each, strings.Replace(list, `"id":1`, fmt.Sprintf(`"id":%d`, id+1), 1))
	}
	status, _, answer := post(t.Context(), t, s.URL+"/mcp", "["+strings.Join(each, ",")+"]")
	if n := strings.Count(answer, `"respond_to_negotiation"`); status != http.StatusOK || n < 20 || charged.Load() != 20 {
		t.Errorf("20 calls, %d of them charged, are answered %d with %d lists: %.300s", charged.Load(), status, n, answer)
	}
	t.Logf("20 lists have %d bytes", len(answer))
	status, header, answer := post(t.Context(), t, s.URL+"/mcp", waits)
	if status != http.StatusTooManyRequests || header.Get("Retry-After") == "" || !strings.Contains(answer, "rate_limited: later") || len(called) != 0 {
		t.Errorf("a call beyond the limit is answered %d %s", status, answer)
	}
}

// A thousand clients that wait cost less than 100 MB, and nothing once they have hung up.
func TestAThousandWait(t *testing.T) {
	const clients, most = 1000, 100 << 20
	b := waitingBroker{make(chan struct{}), make(chan struct{}, clients)}
	s := serves(t, b, nil)
	request := fmt.Sprintf("POST /mcp HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer good\r\nContent-Type: application/json\r\n"+
		"Accept: application/json, text/event-stream\r\nContent-Length: %d\r\n\r\n%s", s.Listener.Addr(), len(waits), waits)
	before := inUse()
	var open []net.Conn
	for range clients {
		c, err := net.Dial("tcp", s.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		if _, err := io.WriteString(c, request); err != nil {
			t.Fatal(err)
		}
		open = append(open, c)
		<-b.entered
	}
	if grown := inUse() - before; grown > most {
		t.Errorf("%d clients that wait take %d bytes", clients, grown)
	} else {
		t.Logf("%d clients that wait take %d KiB", clients, grown>>10)
	}
	for _, c := range open {
		c.Close()
	}
	for range clients {
		<-b.left
	}
}

func inUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse + m.StackInuse
}
