package inbox_test

import (
	"compress/gzip"
	"context"
	"crypto/ed25519"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nkeys"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker/limits"
	"github.com/parley-asp/parley/inbox"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/test/testkit"
)

const alice = performatives.Agent("human://acme.example/alice")

// A visitor is a browser without a screen.
type visitor struct {
	testing.TB
	root   string
	client *http.Client
	public ed25519.PublicKey
	key    ed25519.PrivateKey
}

func serve(t *testing.T, o testkit.Options) (*testkit.Broker, *visitor) {
	t.Helper()
	o.HTTP = "127.0.0.1:0"
	b := testkit.StartBroker(t, o)
	return b, visits(t, b)
}

func visits(t testing.TB, b *testkit.Broker) *visitor {
	t.Helper()
	jar, err := cookiejar.New(nil)
	testkit.Must(t, err)
	public, key, err := ed25519.GenerateKey(nil)
	testkit.Must(t, err)
	client := &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return &visitor{t, "http://" + b.HTTPAddr, client, public, key}
}

// An answer is a response.
type answer struct {
	status int
	header http.Header
	body   string
}

// sends makes a request, with changes.
func (v *visitor) sends(method, path, body string, change ...func(*http.Request)) answer {
	v.Helper()
	r, err := http.NewRequestWithContext(context.Background(), method, v.root+path, strings.NewReader(body))
	testkit.Must(v, err)
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Parley-Inbox", "1")
		r.Header.Set("Sec-Fetch-Site", "same-origin")
		r.Header.Set("Origin", v.root)
	}
	for _, c := range change {
		c(r)
	}
	got, err := v.client.Do(r)
	testkit.Must(v, err)
	defer got.Body.Close()
	data, err := io.ReadAll(got.Body)
	testkit.Must(v, err)
	return answer{got.StatusCode, got.Header, string(data)}
}

// proof proves that the visitor has a key, to sign in.
func (v *visitor) proof(origin string) map[string]any {
	v.Helper()
	return v.proofFor(origin, "parley inbox sign-in")
}

// nkey is the visitor's key as the registry has it.
func (v *visitor) nkey() string {
	v.Helper()
	key, err := nkeys.Encode(nkeys.PrefixByteUser, v.public)
	testkit.Must(v, err)
	return string(key)
}

func (v *visitor) proofFor(origin, purpose string) map[string]any {
	v.Helper()
	data := v.sends("POST", "/inbox/challenge", "{}").body
	var c struct {
		Challenge string `json:"challenge"`
	}
	testkit.Must(v, json.Unmarshal([]byte(data), &c))
	signed := `{"challenge":"` + c.Challenge + `","origin":"` + origin + `","purpose":"` + purpose + `"}`
	return map[string]any{
		"challenge": c.Challenge, "key": hex.EncodeToString(v.public),
		"signature": "ed25519:" + hex.EncodeToString(ed25519.Sign(v.key, []byte(signed))),
	}
}

func (v *visitor) posts(path string, body map[string]any, change ...func(*http.Request)) (int, string) {
	v.Helper()
	data, err := json.Marshal(body)
	testkit.Must(v, err)
	got := v.sends("POST", path, string(data), change...)
	return got.status, got.body
}

func code(t *testing.T, b *testkit.Broker, a performatives.Agent) string {
	t.Helper()
	reply, err := b.Broker.Options.Conn.RequestWithContext(t.Context(), api.OperatorCall(api.HumanEnrol.Name), []byte(`{"agentId":"`+string(a)+`"}`))
	testkit.Must(t, err)
	var e api.Enrolment
	if err := json.Unmarshal(reply.Data, &e); err != nil || e.Code == "" {
		t.Fatalf("no code: %s", reply.Data)
	}
	return e.Code
}

// TestSigningIn enrols a key, signs in with it again, and tries what must fail.
func TestSigningIn(t *testing.T) {
	t.Parallel()
	b, v := serve(t, testkit.Options{})
	b.Register(alice)
	c := code(t, b, alice)

	enrol := v.proof(v.root)
	enrol["code"], enrol["name"] = c, "test"
	wrong := v.proof(v.root)
	wrong["code"] = "AAAA-BBBB-CCCC-DDDD"
	if status, body := v.posts("/inbox/enrol", wrong); status != http.StatusForbidden {
		t.Errorf("a code that nobody made is answered %d %s", status, body)
	}
	if status, body := v.posts("/inbox/enrol", enrol); status != http.StatusOK {
		t.Fatalf("enrol: %d %s", status, body)
	}
	if status, _ := v.posts("/inbox/enrol", enrol); status != http.StatusUnauthorized {
		t.Errorf("the same challenge again is answered %d", status)
	}
	if got := v.sends("GET", "/inbox/", ""); got.status != http.StatusOK || !strings.Contains(got.body, "acme.example") {
		t.Errorf("signed in, the queue is %d", got.status)
	}

	login := v.proof(v.root)
	login["agentId"] = alice
	if status, body := v.posts("/inbox/login", login); status != http.StatusOK {
		t.Errorf("login: %d %s", status, body)
	}
	elsewhere := v.proof("https://evil.example")
	elsewhere["agentId"] = alice
	if status, _ := v.posts("/inbox/login", elsewhere); status != http.StatusUnauthorized {
		t.Errorf("a proof for another origin is answered %d", status)
	}
	misspelt := v.proof(v.root)
	misspelt["agentId"] = "alice"
	if status, body := v.posts("/inbox/login", misspelt); status != http.StatusBadRequest || !strings.Contains(body, "want agent://org-domain/path or human://org-domain/name") {
		t.Errorf("what is no URI is answered %d %s", status, body)
	}
	other := visits(t, b)
	unenrolled := other.proof(other.root)
	unenrolled["agentId"] = alice
	if status, _ := other.posts("/inbox/login", unenrolled); status != http.StatusForbidden {
		t.Errorf("a key that nobody enrolled is answered %d", status)
	}
	unproven := v.proof(v.root)
	unproven["agentId"], unproven["signature"] = alice, login["signature"]
	if status, _ := v.posts("/inbox/login", unproven); status != http.StatusUnauthorized {
		t.Errorf("the signature of another challenge is answered %d", status)
	}
}

// TestGoneOn: navigating away during a request does not sign out.
func TestGoneOn(t *testing.T) {
	t.Parallel()
	b, v := serve(t, testkit.Options{Dev: true})
	v.posts("/inbox/login", map[string]any{"agentId": alice})
	pages := inbox.New(inbox.Options{Service: b.Broker.Service, Redeem: b.Broker.Parts.Registry.Redeem, NameOf: b.Broker.Parts.Registry.NameOf, Dev: true, Meet: func(context.Context, performatives.Agent) error { return nil }})
	asks := func(ctx context.Context, method, path, body, cookie string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(ctx, method, "http://localhost"+path, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Parley-Inbox", "1")
		r.Header.Set("Sec-Fetch-Site", "same-origin")
		r.Header.Set("Cookie", cookie)
		w := httptest.NewRecorder()
		pages.ServeHTTP(w, r)
		return w
	}
	cookie, _, _ := strings.Cut(asks(t.Context(), "POST", "/login", `{"agentId":"`+string(alice)+`"}`, "").Header().Get("Set-Cookie"), ";")
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	asks(gone, "GET", "/part/queue", "", cookie)
	if got := asks(t.Context(), "GET", "/part/queue", "", cookie); got.Code != http.StatusOK {
		t.Errorf("then the queue is answered %d %s", got.Code, got.Body)
	}
}

// TestOwing: a human over a limit is told to wait, on pages, their parts and calls, and stays signed in.
func TestOwing(t *testing.T) {
	t.Parallel()
	_, v := serve(t, testkit.Options{Dev: true, Limits: limits.Limits{Rate: 1e-6, Burst: 40}})
	if status, body := v.posts("/inbox/login", map[string]any{"agentId": alice}); status != http.StatusOK {
		t.Fatalf("%d %s", status, body)
	}
	var got answer
	for range 100 {
		if got = v.sends("GET", "/inbox/settings", ""); got.status != http.StatusOK {
			break
		}
	}
	if got.status != http.StatusTooManyRequests || !strings.Contains(got.body, "Not available") || got.header.Get("Location") != "" {
		t.Errorf("the page is answered %d %s", got.status, got.body)
	}
	if got := v.sends("GET", "/inbox/part/queue", ""); got.status != http.StatusTooManyRequests {
		t.Errorf("the queue is answered %d", got.status)
	}
	if status, body := v.posts("/inbox/call/escalation.list", map[string]any{}); status != http.StatusTooManyRequests || !strings.Contains(body, `"code":"rate_limited"`) {
		t.Errorf("a call is answered %d %s", status, body)
	}
}

// TestKeyTakenAway: revoking a key signs its browser out at once.
func TestKeyTakenAway(t *testing.T) {
	t.Parallel()
	b, v := serve(t, testkit.Options{})
	b.Register(alice)
	enrol := v.proof(v.root)
	enrol["code"] = code(t, b, alice)
	_, body := v.posts("/inbox/enrol", enrol)
	var who struct {
		Key performatives.Key `json:"key"`
	}
	testkit.Must(t, json.Unmarshal([]byte(body), &who))
	ref, err := json.Marshal(api.DeviceRef{Agent: alice, Key: who.Key})
	testkit.Must(t, err)
	if _, err := b.Broker.Options.Conn.RequestWithContext(t.Context(), api.OperatorCall(api.HumanUnenrol.Name), ref); err != nil {
		t.Fatal(err)
	}
	if got := v.sends("GET", "/inbox/", ""); got.status != http.StatusSeeOther || got.header.Get("Location") != "login" {
		t.Errorf("without the key the queue is %d, to %q", got.status, got.header.Get("Location"))
	}
	if status, _ := v.posts("/inbox/call/escalation.claim", map[string]any{}); status != http.StatusUnauthorized {
		t.Errorf("without the key a call is answered %d", status)
	}
}

// TestOwnKeys: a human revokes the keys of their browsers, with the key of the browser
// that asks. The cookie alone is not enough, and neither is a proof that signs in.
func TestOwnKeys(t *testing.T) {
	t.Parallel()
	b, laptop := serve(t, testkit.Options{})
	phone := visits(t, b)
	b.Register(alice)
	for name, v := range map[string]*visitor{"laptop": laptop, "phone": phone} {
		enrol := v.proof(v.root)
		enrol["code"], enrol["name"] = code(t, b, alice), name
		if status, body := v.posts("/inbox/enrol", enrol); status != http.StatusOK {
			t.Fatal(body)
		}
	}
	page := laptop.sends("GET", "/inbox/settings", "").body
	for _, want := range []string{laptop.nkey(), phone.nkey(), "this browser"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not have %q", want)
		}
	}
	revoke := func(v *visitor, p map[string]any, key string) int {
		p["revoke"] = key
		status, _ := v.posts("/inbox/unenrol", p)
		return status
	}
	purpose := "parley inbox: revoke "
	for what, p := range map[string]map[string]any{
		"no proof":                      {},
		"a proof that signs in":         laptop.proof(laptop.root),
		"a proof for another key":       laptop.proofFor(laptop.root, purpose+laptop.nkey()),
		"a proof by another own key":    phone.proofFor(phone.root, purpose+phone.nkey()),
		"a proof for another origin":    laptop.proofFor("https://evil.example", purpose+phone.nkey()),
		"a proof without the challenge": {"key": laptop.proof(laptop.root)["key"]},
	} {
		if status := revoke(laptop, p, phone.nkey()); status != http.StatusUnauthorized {
			t.Errorf("%s is answered %d", what, status)
		}
	}
	if status := revoke(laptop, laptop.proofFor(laptop.root, purpose+phone.nkey()), phone.nkey()); status != http.StatusOK {
		t.Errorf("the phone's key is revoked with %d", status)
	}
	if got := phone.sends("GET", "/inbox/", ""); got.status != http.StatusSeeOther {
		t.Errorf("without its key, the phone is answered %d", got.status)
	}
	if got := laptop.sends("GET", "/inbox/", ""); got.status != http.StatusOK {
		t.Errorf("with its key, the laptop is answered %d", got.status)
	}
	if status := revoke(laptop, laptop.proofFor(laptop.root, purpose+laptop.nkey()), laptop.nkey()); status != http.StatusOK {
		t.Errorf("its own key is revoked with %d", status)
	}
	if got := laptop.sends("GET", "/inbox/", ""); got.status != http.StatusSeeOther {
		t.Errorf("without its key, the laptop is answered %d", got.status)
	}
}

// TestMisspeltName: under --dev, too, a name that cannot be read is refused with what one looks like.
func TestMisspeltName(t *testing.T) {
	t.Parallel()
	_, v := serve(t, testkit.Options{Dev: true})
	for _, name := range []string{"alice", "human://acme.example", "human://ACME.example/alice", "agent://acme.example/a b", ""} {
		if status, body := v.posts("/inbox/login", map[string]any{"agentId": name}); status != http.StatusBadRequest || !strings.Contains(body, "human://org-domain/name") {
			t.Errorf("%q is answered %d %s", name, status, body)
		}
	}
	if status, body := v.posts("/inbox/login", map[string]any{"agentId": "agent://acme.example/a"}); status != http.StatusForbidden || !strings.Contains(body, "only humans can sign in") {
		t.Errorf("an agent is answered %d %s", status, body)
	}
}

// TestForgedRequests refuses requests that a page of another origin can cause.
func TestForgedRequests(t *testing.T) {
	t.Parallel()
	_, v := serve(t, testkit.Options{Dev: true})
	if status, body := v.posts("/inbox/login", map[string]any{"agentId": alice}); status != http.StatusOK {
		t.Fatalf("%d %s", status, body)
	}
	for name, spoil := range map[string]func(*http.Request){
		"from another site":        func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") },
		"from a sister site":       func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-site") },
		"by an old browser":        func(r *http.Request) { r.Header.Del("Sec-Fetch-Site"); r.Header.Set("Origin", "https://evil.example") },
		"without our header":       func(r *http.Request) { r.Header.Del("Parley-Inbox") },
		"as a form would":          func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") },
		"to a name that is theirs": func(r *http.Request) { r.Host = "evil.example" },
	} {
		for _, path := range []string{"/inbox/call/escalation.claim", "/inbox/submit", "/inbox/login", "/inbox/logout"} {
			if status, _ := v.posts(path, map[string]any{"agentId": alice}, spoil); status != http.StatusForbidden {
				t.Errorf("%s, POST %s is answered %d", name, path, status)
			}
		}
	}
	of := func(a performatives.Agent) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set("Parley-Inbox", string(a)) }
	}
	for path, method := range map[string]string{"/inbox/call/escalation.claim": "POST", "/inbox/part/queue": "GET"} {
		if got := v.sends(method, path, "{}", of("human://acme.com/bob")); got.status != http.StatusForbidden || !strings.Contains(got.body, "reload the page") {
			t.Errorf("a page of somebody else is answered %d %s", got.status, got.body)
		}
		if got := v.sends(method, path, "{}", of(alice)); strings.Contains(got.body, "reload the page") {
			t.Errorf("one's own page is answered %d %s", got.status, got.body)
		}
	}
	if got := v.sends("GET", "/inbox/", "", func(r *http.Request) { r.Host = "evil.example" }); got.status != http.StatusForbidden {
		t.Errorf("under --dev, a name that points here is answered %d", got.status)
	}
}

// TestLargeRequests are refused as such, whoever sends them.
func TestLargeRequests(t *testing.T) {
	t.Parallel()
	_, v := serve(t, testkit.Options{Dev: true})
	v.posts("/inbox/login", map[string]any{"agentId": alice})
	large := map[string]any{"agentId": strings.Repeat("a", 600<<10)}
	for _, path := range []string{"/inbox/login", "/inbox/enrol", "/inbox/submit", "/inbox/call/escalation.claim"} {
		if status, body := v.posts(path, large); status != http.StatusRequestEntityTooLarge || !strings.Contains(body, "too_large") {
			t.Errorf("POST %s of 600 KiB is answered %d %s", path, status, body)
		}
	}
}

// TestNoGetChanges: no GET changes anything, so that a link in a mail is harmless.
func TestNoGetChanges(t *testing.T) {
	t.Parallel()
	_, v := serve(t, testkit.Options{Dev: true})
	v.posts("/inbox/login", map[string]any{"agentId": alice})
	for _, path := range []string{"submit", "call/escalation.claim", "logout", "enrol", "challenge"} {
		if got := v.sends("GET", "/inbox/"+path, ""); got.status != http.StatusMethodNotAllowed {
			t.Errorf("GET %s is answered %d", path, got.status)
		}
	}
	if status, _ := v.posts("/inbox/call/agent.rotate", map[string]any{}); status != http.StatusNotFound {
		t.Errorf("a verb that is none of the page's is answered %d", status)
	}
}

// TestWays: redirects to the inbox are relative, because a reverse proxy may add a
// prefix, and the login returns to the requested page.
func TestWays(t *testing.T) {
	t.Parallel()
	_, v := serve(t, testkit.Options{Dev: true})
	for from, to := range map[string]string{
		"/": "inbox/", "/inbox": "inbox/", "/inbox/": "login", "/inbox/?status=all": "login?next=%3Fstatus%3Dall",
		"/inbox/items/x?urgency=high": "../login?next=items%2Fx%3Furgency%3Dhigh",
	} {
		if got := v.sends("GET", from, ""); got.status != http.StatusSeeOther || got.header.Get("Location") != to {
			t.Errorf("%s leads to %d %q, want %q", from, got.status, got.header.Get("Location"), to)
		}
	}
	if got := v.sends("GET", "/inbox/part/queue", "", func(r *http.Request) { r.Header.Set("Parley-Inbox", "1") }); got.status != http.StatusUnauthorized {
		t.Errorf("a part for nobody is answered %d", got.status)
	}
}

// TestHeaders asserts the security headers of every page, and the cookie.
func TestHeaders(t *testing.T) {
	t.Parallel()
	_, v := serve(t, testkit.Options{Dev: true})
	got := v.sends("POST", "/inbox/login", `{"agentId":"human://acme.example/alice"}`, func(r *http.Request) { r.Header.Set("X-Forwarded-Proto", "https") })
	cookie := got.header.Get("Set-Cookie")
	for _, want := range []string{"HttpOnly", "SameSite=Strict", "Secure"} {
		if !strings.Contains(cookie, want) {
			t.Errorf("the cookie is %q, without %s", cookie, want)
		}
	}
	if strings.Contains(cookie, "Path=") {
		t.Errorf("the cookie is %q: its path is the browser's to say, behind a proxy", cookie)
	}
	v.posts("/inbox/login", map[string]any{"agentId": alice})
	for _, path := range []string{"/inbox/", "/inbox/login", "/inbox/sessions", "/inbox/insights", "/inbox/items/none", "/inbox/nowhere"} {
		got := v.sends("GET", path, "")
		policy := got.header.Get("Content-Security-Policy")
		if !strings.Contains(policy, "default-src 'none'") || !strings.Contains(policy, "frame-ancestors 'none'") || strings.Contains(policy, "unsafe") {
			t.Errorf("%s has the policy %q", path, policy)
		}
		if got.header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s may be sniffed", path)
		}
		for _, inline := range []string{"<style", " style=", "onclick=", "javascript:"} {
			if strings.Contains(got.body, inline) {
				t.Errorf("%s has %s in it", path, inline)
			}
		}
		for _, link := range []string{`href="/`, `src="/`, `action="/`} {
			if strings.Contains(got.body, link) {
				t.Errorf("%s has a link that is not relative", path)
			}
		}
	}
}

// Pages and assets are compressed for browsers that take it.
func TestGzip(t *testing.T) {
	t.Parallel()
	_, v := serve(t, testkit.Options{})
	style := regexp.MustCompile(`static/\w+/inbox\.css`).FindString(v.sends("GET", "/inbox/login", "").body)
	for encoding, want := range map[string]string{"gzip, br": "gzip", "br, gzip;q=0": "", "identity": ""} {
		got := v.sends("GET", "/inbox/"+style, "", func(r *http.Request) { r.Header.Set("Accept-Encoding", encoding) })
		if got.header.Get("Content-Encoding") != want || got.header.Get("Vary") != "Accept-Encoding" {
			t.Errorf("%q is answered in %q", encoding, got.header.Get("Content-Encoding"))
		}
		if want == "gzip" {
			z, err := gzip.NewReader(strings.NewReader(got.body))
			testkit.Must(t, err)
			text, err := io.ReadAll(z)
			testkit.Must(t, err)
			if !strings.Contains(string(text), ":root") || len(got.body) > len(text)/2 {
				t.Errorf("%d bytes hold %d", len(got.body), len(text))
			}
		}
	}
}
