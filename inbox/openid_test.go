package inbox_test

import (
	"crypto/rand"
	"crypto/rsa"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/nats-io/nkeys"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/parley-asp/parley/inbox/openid"
	"github.com/parley-asp/parley/performatives"
	provider "github.com/parley-asp/parley/test/openid"
	"github.com/parley-asp/parley/test/testkit"
)

// signedInAt is a broker whose people sign in at a provider.
type signedInAt struct {
	*testkit.World
	at  *provider.Provider
	url string
}

const verifiedAlice = "humans: {'" + string(alice) + "': alice@acme.example}\n"

func signsInAt(t *testing.T, settings string, now func() time.Time) *signedInAt {
	t.Helper()
	front, behind := provider.Front(t)
	s := &signedInAt{url: front, at: provider.Start(t, front+"/inbox/callback")}
	s.at.Account("u1", "alice@acme.example", true)
	core, logs := observer.New(zap.DebugLevel)
	s.World = testkit.NewWorld(t, testkit.Options{HTTP: "127.0.0.1:0", HTTPURL: front, SignIn: s.config(settings), Log: zap.New(core), Now: now})
	behind(s.HTTPAddr)
	s.Principal(alice)
	t.Cleanup(func() {
		said := fmt.Sprint(logs.All())
		for _, secret := range s.at.Gave() {
			if secret != "" && strings.Contains(said, secret) {
				t.Errorf("the log has the secret %q", secret)
			}
		}
	})
	return s
}

// config is a configuration of the provider with some settings.
func (s *signedInAt) config(settings string) *openid.Config {
	s.at.Helper()
	c, err := openid.Load(s.at.Config(settings))
	testkit.Must(s.at, err)
	return c
}

func (s *signedInAt) browser(t testing.TB) *visitor {
	v := visits(t, s.Broker)
	v.root = s.url
	return v
}

// goes signs in at the provider, and returns what it sends the browser back with.
func (v *visitor) goes(next string) map[string]any {
	v.Helper()
	got := v.sends("GET", "/inbox/openid?next="+url.QueryEscape(next), "")
	if got.status != http.StatusSeeOther {
		v.Fatalf("%d %s", got.status, got.body)
	}
	at := got.header.Get("Location")
	for range 5 {
		if strings.HasPrefix(at, v.root+"/inbox/callback?") {
			back, err := url.Parse(at)
			testkit.Must(v, err)
			page := v.sends("GET", strings.TrimPrefix(at, v.root), "")
			if page.status != http.StatusOK || strings.Contains(page.body, back.Query().Get("code")) || page.header.Get("Referrer-Policy") != "no-referrer" {
				v.Errorf("the callback is %d %s", page.status, page.body)
			}
			return map[string]any{"code": back.Query().Get("code"), "state": back.Query().Get("state")}
		}
		method := http.MethodGet
		if strings.Contains(at, "/login/username") {
			method = http.MethodPost
		}
		r, err := http.NewRequestWithContext(v.Context(), method, at, nil)
		testkit.Must(v, err)
		reply, err := v.client.Do(r)
		testkit.Must(v, err)
		reply.Body.Close()
		to, err := reply.Location()
		if err != nil {
			v.Fatalf("%s answers %d", at, reply.StatusCode)
		}
		at = to.String()
	}
	v.Fatal("the provider sends nobody back")
	return nil
}

// enters signs in at the provider, with a proof of the browser's key if that is wanted.
func (v *visitor) enters(proof map[string]any) (int, string) {
	v.Helper()
	request := v.goes("")
	maps.Copy(request, proof)
	return v.posts("/inbox/callback", request)
}

func (v *visitor) enrols(code string) (int, string) {
	v.Helper()
	enrol := v.proof(v.root)
	enrol["code"] = code
	return v.posts("/inbox/enrol", enrol)
}

func (v *visitor) signer() performatives.Signer {
	v.Helper()
	pair, err := nkeys.FromRawSeed(nkeys.PrefixByteUser, v.key.Seed())
	testkit.Must(v, err)
	signer, err := performatives.NewSigner(pair)
	testkit.Must(v, err)
	return signer
}

// submits denies an item as alice.
func (v *visitor) submits(in performatives.SessionID, item string, by performatives.Signer) (int, string) {
	v.Helper()
	data, err := json.Marshal(performatives.RulingData{EscalationID: item, Decision: performatives.Denied, Comment: "no"})
	testkit.Must(v, err)
	envelope, err := performatives.Draft{
		ID: testkit.NewID(), Session: in, Timestamp: time.Now(), Sender: alice, Body: &performatives.InformBody{Type: performatives.Resolution, Data: data},
	}.Envelope(by)
	testkit.Must(v, err)
	return v.posts("/inbox/submit", map[string]any{"sessionId": in, "envelope": jsontext.Value(envelope)})
}

// A sign-in at the provider lets a human read. To act, the browser also shows that human's key, which signs.
func TestOpenID(t *testing.T) {
	t.Parallel()
	s := signsInAt(t, verifiedAlice, nil)
	s.Principal(alpha)
	in, item := escalates(s.World, beta, "a plan")
	v := s.browser(t)
	if page := v.sends("GET", "/inbox/login?next=items%2F"+item, "").body; !strings.Contains(page, `href="openid?next=items%2f`+item) || !strings.Contains(page, "Sign in at localhost") {
		t.Errorf("the page offers no provider: %s", page)
	}
	request := v.goes("items/" + item)
	status, body := v.posts("/inbox/callback", request)
	if status != http.StatusOK || !strings.Contains(body, `"next":"items/`+item+`"`) || !strings.Contains(body, string(alice)) {
		t.Fatalf("%d %s", status, body)
	}
	testkit.Eventually(t, "the item is there", func() bool { return v.sends("GET", "/inbox/items/"+item, "").status == http.StatusOK })
	if page := v.sends("GET", "/inbox/", "").body; !strings.Contains(page, "You can read here, and not decide") {
		t.Error("the page does not say that this browser cannot decide")
	}
	for path, request := range map[string]map[string]any{
		"call/escalation.claim": {"escalationId": item}, "call/human.away": {}, "feed": {}, "feed/remove": {"id": "x"},
		"unenrol": {"revoke": v.nkey()}, "unseal": {"escalationId": item, "sealers": []performatives.Agent{alpha}},
	} {
		if status, body := v.posts("/inbox/"+path, request); status != http.StatusForbidden || !strings.Contains(body, "this browser can read, and not act") {
			t.Errorf("without a key, %s is answered %d %s", path, status, body)
		}
	}
	for what, by := range map[string]performatives.Signer{"nothing": nil, "a key that is not enrolled": v.signer()} {
		if status, body := v.submits(in, item, by); status != http.StatusForbidden {
			t.Errorf("a decision that %s signs is answered %d %s", what, status, body)
		}
	}

	if status, _ := v.enters(v.proof(v.root)); status != http.StatusOK { // with a key that is nobody's
		t.Errorf("with a key that is not enrolled it is answered %d", status)
	}
	if status, _ := v.submits(in, item, v.signer()); status != http.StatusForbidden {
		t.Errorf("then a decision is answered %d", status)
	}
	forged := v.proof(v.root)
	forged["signature"] = "ed25519:" + strings.Repeat("0", 128)
	if status, _ := v.enters(forged); status != http.StatusUnauthorized {
		t.Errorf("with a forged proof it is answered %d", status)
	}

	if status, body := v.enrols(code(t, s.Broker, alice)); status != http.StatusOK {
		t.Fatal(body)
	}
	if status, body := v.enters(v.proof(v.root)); status != http.StatusOK || !strings.Contains(body, v.nkey()) {
		t.Fatalf("with the key it is answered %d %s", status, body)
	}
	if status, _ := v.submits(in, item, nil); status == http.StatusOK {
		t.Error("a decision without a signature is accepted")
	}
	if status, body := v.submits(in, item, v.signer()); status != http.StatusOK {
		t.Errorf("a signed decision is answered %d %s", status, body)
	}
	if status, _ := v.posts("/inbox/logout", map[string]any{}); status != http.StatusOK {
		t.Errorf("signing out is answered %d", status)
	}
	if got := v.sends("GET", "/inbox/", ""); got.status != http.StatusSeeOther {
		t.Errorf("signed out, the queue is %d", got.status)
	}
	login := v.proof(v.root)
	login["agentId"] = alice
	if status, body := v.posts("/inbox/login", login); status != http.StatusOK {
		t.Errorf("the key alone is answered %d %s", status, body)
	}
}

// What a provider or a browser may not send signs nobody in.
func TestOpenIDRefused(t *testing.T) {
	t.Parallel()
	s := signsInAt(t, verifiedAlice, nil)
	other, err := rsa.GenerateKey(rand.Reader, 2048)
	testkit.Must(t, err)
	lies := func(name string, value any) func() {
		return func() { s.at.Lies(func(claims map[string]any) { claims[name] = value }) }
	}
	s.at.ClaimsInToken()
	for what, lie := range map[string]func(){
		"another nonce":    lies("nonce", "another"),
		"no nonce":         func() { s.at.Lies(func(claims map[string]any) { delete(claims, "nonce") }) },
		"another audience": lies("aud", []string{"another"}),
		"others as well": func() {
			s.at.Lies(func(c map[string]any) { c["aud"], c["azp"] = []string{"parley", "another"}, "another" })
		},
		"another issuer":       lies("iss", "https://evil.example"),
		"expired":              lies("exp", time.Now().Add(-time.Minute).Unix()),
		"another key":          func() { s.at.Forges(func(map[string]any) {}, other) },
		"no algorithm":         s.at.Unsigned,
		"an unverified e-mail": lies("email_verified", false),
		"no verification":      func() { s.at.Lies(func(claims map[string]any) { delete(claims, "email_verified") }) },
		"an unknown e-mail":    lies("email", "mallory@acme.example"),
		"another case":         lies("email", "Alice@acme.example"),
		"several e-mails":      lies("email", []string{"alice@acme.example"}),
	} {
		lie()
		v := s.browser(t)
		if status, body := v.enters(nil); status != http.StatusForbidden || !strings.Contains(body, `"unauthorized"`) {
			t.Errorf("%s is answered %d %s", what, status, body)
		}
		if got := v.sends("GET", "/inbox/", ""); got.status != http.StatusSeeOther {
			t.Errorf("after %s, the queue is %d", what, got.status)
		}
	}
	s.at.Lies(nil)

	v := s.browser(t)
	back := v.goes("")
	if status, body := s.browser(t).posts("/inbox/callback", back); status != http.StatusForbidden || !strings.Contains(body, "did not begin in this browser") {
		t.Errorf("another browser is answered %d %s", status, body)
	}
	victim := s.browser(t)
	victim.goes("") // with a visit of its own
	if status, _ := victim.posts("/inbox/callback", back); status != http.StatusForbidden {
		t.Errorf("another browser with a visit of its own is answered %d", status)
	}
	for what, change := range map[string]map[string]any{"no state": {"state": ""}, "a forged state": {"state": strings.Repeat("A", 75)}} {
		wrong := maps.Clone(back)
		maps.Copy(wrong, change)
		if status, _ := v.posts("/inbox/callback", wrong); status != http.StatusForbidden {
			t.Errorf("%s is answered %d", what, status)
		}
	}
	if status, body := v.posts("/inbox/callback", back); status != http.StatusOK {
		t.Fatalf("the right browser is answered %d %s", status, body)
	}
	if status, _ := v.posts("/inbox/callback", back); status != http.StatusForbidden {
		t.Errorf("the same state again is answered %d", status)
	}
	again := v.goes("")
	again["code"] = back["code"]
	if status, body := v.posts("/inbox/callback", again); status != http.StatusForbidden || !strings.Contains(body, "did not accept the code") {
		t.Errorf("a used code is answered %d %s", status, body)
	}
	denied := v.goes("")
	denied["error"] = "access_denied"
	if status, body := v.posts("/inbox/callback", denied); status != http.StatusForbidden || !strings.Contains(body, "it denied the access") {
		t.Errorf("an error is answered %d %s", status, body)
	}
	hostile := v.goes("")
	hostile["error"] = "<b>call 555-1234</b>"
	if _, body := v.posts("/inbox/callback", hostile); strings.Contains(body, "555-1234") {
		t.Errorf("the page says what a link says: %s", body)
	}
	elsewhere := v.goes("")
	if status, _ := v.posts("/inbox/callback", elsewhere, func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }); status != http.StatusForbidden {
		t.Errorf("another site's request is answered %d", status)
	}
	var last string
	for range 31 {
		_, last = v.posts("/inbox/callback", map[string]any{"state": "x", "code": "y"})
	}
	if !strings.Contains(last, "too many failed sign-ins") {
		t.Errorf("after many failures it is answered %s", last)
	}
}

// A provider that is away, slow or endless stops nothing but the sign-ins there, and they go on when it is back.
func TestOpenIDAway(t *testing.T) {
	t.Parallel()
	t.Run("before", func(t *testing.T) {
		t.Parallel()
		s := signsInAt(t, verifiedAlice, nil)
		v, ways := s.browser(t), waysToFail(t)
		fails := func(what string, how http.HandlerFunc) {
			s.fails("/.well-known/openid-configuration", how)
			if got := v.sends("GET", "/inbox/openid", ""); got.status != http.StatusServiceUnavailable || !strings.Contains(got.body, "is not possible now") || got.header.Get("Set-Cookie") != "" {
				t.Errorf("while discovery is answered with %s, the answer is %d %s", what, got.status, got.body)
			}
		}
		for what, how := range ways {
			fails(what, how)
		}
		fails("an unsafe endpoint", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, err := fmt.Fprintf(w, `{"issuer":%q,"authorization_endpoint":"http://evil.example","token_endpoint":%[1]q,"jwks_uri":%[1]q}`, s.at.URL)
			testkit.Must(t, err)
		})
		if got := v.sends("GET", "/inbox/login", ""); got.status != http.StatusOK || !strings.Contains(got.body, "openid") {
			t.Errorf("meanwhile the page is %d", got.status)
		}
		s.at.Front(nil)
		if status, body := v.enters(nil); status != http.StatusOK {
			t.Errorf("once it is back, it is answered %d %s", status, body)
		}
	})
	t.Run("after", func(t *testing.T) {
		t.Parallel()
		s := signsInAt(t, verifiedAlice, nil)
		v, ways := s.browser(t), waysToFail(t)
		for what, how := range ways {
			back := v.goes("")
			s.fails("/oauth/token", how)
			if status, body := v.posts("/inbox/callback", back); status != http.StatusServiceUnavailable || !strings.Contains(body, "is not possible now") {
				t.Errorf("while a code is answered with %s, the answer is %d %s", what, status, body)
			}
			s.at.Front(nil)
		}
		for _, path := range []string{"/keys", "/userinfo"} {
			back := v.goes("")
			s.fails(path, ways["10 MB"])
			if status, body := v.posts("/inbox/callback", back); status != http.StatusServiceUnavailable || !strings.Contains(body, "is not possible now") {
				t.Errorf("without %s it is answered %d %s", path, status, body)
			}
			s.at.Front(nil)
		}
		if status, body := v.enters(nil); status != http.StatusOK {
			t.Errorf("once it is back, it is answered %d %s", status, body)
		}
	})
}

// waysToFail are ways in which a provider does not answer as it should; "never" lasts until the test ends.
func waysToFail(t *testing.T) map[string]http.HandlerFunc {
	over := make(chan struct{})
	t.Cleanup(func() { close(over) })
	return map[string]http.HandlerFunc{
		"10 MB":    func(w http.ResponseWriter, _ *http.Request) { provider.Huge(w) },
		"an error": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) },
		"a redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		},
		"nothing": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"never": func(_ http.ResponseWriter, r *http.Request) {
			select {
			case <-r.Context().Done():
			case <-over:
			}
		},
	}
}

// fails answers the requests for a path in another way.
func (s *signedInAt) fails(path string, how http.HandlerFunc) {
	s.at.Front(func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == path {
			how(w, r)
		}
		return r.URL.Path == path
	})
}

// A sign-in ends when its row of the table goes, and 12 hours after it began; where the provider is required, a key
// alone signs nobody in, and a code enrols a key all the same.
func TestOpenIDEnds(t *testing.T) {
	t.Parallel()
	var clock testkit.Clock
	s := signsInAt(t, verifiedAlice, clock.Now)
	v := s.browser(t)
	reads := func(want int) {
		t.Helper()
		if got := v.sends("GET", "/inbox/", ""); got.status != want {
			t.Errorf("the queue is %d, want %d", got.status, want)
		}
	}
	reload := func(settings string) {
		t.Helper()
		testkit.Must(t, s.Reload(s.Ctx, testkit.Options{HTTPURL: s.url, SignIn: s.config(settings)}))
	}
	signIn := func() {
		t.Helper()
		if status, body := v.enters(nil); status != http.StatusOK {
			t.Fatalf("%d %s", status, body)
		}
		reads(http.StatusOK)
	}
	signIn()
	reload(verifiedAlice)
	reads(http.StatusOK)
	clock.Advance(8 * time.Hour)
	reads(http.StatusOK)
	clock.Advance(5 * time.Hour)
	reads(http.StatusSeeOther)
	for _, settings := range []string{"humans: {'human://acme.example/bob': alice@acme.example}", "claim: sub\nhumans: {'" + string(alice) + "': alice@acme.example}"} {
		reload(verifiedAlice)
		signIn()
		reload(settings)
		reads(http.StatusSeeOther)
	}
	if status, body := v.enters(nil); status != http.StatusForbidden {
		t.Errorf("whom no row names is answered %d %s", status, body)
	}
	reload("claim: sub\nhumans: {'" + string(alice) + "': u1}")
	signIn()
	testkit.Must(t, s.Reload(s.Ctx, testkit.Options{}))
	reads(http.StatusSeeOther)
	if got := v.sends("GET", "/inbox/openid", ""); got.status != http.StatusNotFound {
		t.Errorf("without a provider, the way there is %d", got.status)
	}

	reload(verifiedAlice)
	if status, body := v.enrols(code(t, s.Broker, alice)); status != http.StatusOK {
		t.Fatal(body)
	}
	reads(http.StatusOK)
	reload("required: true\n" + verifiedAlice)
	reads(http.StatusSeeOther)
	login := v.proof(v.root)
	login["agentId"] = alice
	if status, body := v.posts("/inbox/login", login); status != http.StatusForbidden || !strings.Contains(body, "a key alone signs nobody in here") {
		t.Errorf("the key alone is answered %d %s", status, body)
	}
	phone := s.browser(t)
	if status, body := phone.enrols(code(t, s.Broker, alice)); status != http.StatusOK || !strings.Contains(body, `"openid":true`) {
		t.Errorf("a code is answered %d %s", status, body)
	}
	if got := phone.sends("GET", "/inbox/", ""); got.status != http.StatusSeeOther {
		t.Errorf("a code signs in: %d", got.status)
	}
	if status, body := phone.enters(phone.proof(phone.root)); status != http.StatusOK || !strings.Contains(body, phone.nkey()) {
		t.Errorf("provider and key are answered %d %s", status, body)
	}
}
