package login_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/parley-asp/parley/server/login"
	"github.com/parley-asp/parley/test/testkit"
)

// withSessionConsumers adds what the fixed names of session consumers allow.
func withSessionConsumers(token string, publish ...string) []string {
	for n := range 32 {
		name := fmt.Sprintf("%s+%d", token, n)
		publish = append(publish, "$JS.API.CONSUMER.INFO.ASP_INBOX."+name, "$JS.API.CONSUMER.MSG.NEXT.ASP_INBOX."+name, "$JS.ACK.ASP_INBOX."+name+".>")
	}
	return publish
}

// Permissions are those of PROTOCOL.md §2. The tests of package embedded check that the server
// enforces them.
func TestPermissions(t *testing.T) {
	for _, c := range []struct {
		id                 login.Identity
		account            string
		publish, subscribe []string
		answers            *jwt.ResponsePermission
	}{
		{
			id:      login.Identity{Name: "@acme_com~al=69ce", Role: login.Principal},
			account: "PRINCIPALS",
			publish: withSessionConsumers("@acme_com~al=69ce",
				"asp.agent.@acme_com~al=69ce.submit.*",
				"asp.agent.@acme_com~al=69ce.api.*.*",
				"$JS.API.CONSUMER.INFO.ASP_INBOX.@acme_com~al=69ce",
				"$JS.API.CONSUMER.MSG.NEXT.ASP_INBOX.@acme_com~al=69ce",
				"$JS.ACK.ASP_INBOX.@acme_com~al=69ce.>",
			),
			subscribe: []string{"_INBOX.@acme_com~al=69ce.>", "asp.discovery.>"},
			answers:   &jwt.ResponsePermission{MaxMsgs: 1, Expires: 10 * time.Second},
		},
		{
			id:        login.Identity{Name: "operator", Role: login.Operator},
			account:   "OPERATORS",
			publish:   append([]string{"asp.operator.api.*.*", "$SRV.>"}, login.Inspections...),
			subscribe: append([]string{"_INBOX.operator.>", "asp.event.>", "asp.escalation.>"}, login.Elections...),
		},
	} {
		got, err := login.Permissions(c.id)
		if err != nil {
			t.Errorf("%v: %v", c.id, err)
		}
		want := jwt.Permissions{Pub: jwt.Permission{Allow: c.publish}, Sub: jwt.Permission{Allow: c.subscribe}, Resp: c.answers}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%v: %s", c.id, diff)
		}
		if got := c.id.Account(); got != c.account {
			t.Errorf("%v is placed in %s, want %s", c.id, got, c.account)
		}
	}
}

// A name with a wildcard or more than one token would match the subjects of others.
func TestNoPermissionsForOtherNames(t *testing.T) {
	for _, id := range []login.Identity{
		{Name: "", Role: login.Principal},
		{Name: "*", Role: login.Principal},
		{Name: ">", Role: login.Principal},
		{Name: "acme_com~*", Role: login.Principal},
		{Name: "acme_com~a.>", Role: login.Principal},
		{Name: "acme.com~a", Role: login.Principal},
		{Name: "acme_com~a b", Role: login.Principal},
		{Name: "acme_com~a\n", Role: login.Principal},
		{Name: "acme_com~{{name()}}", Role: login.Principal},
		{Name: "acme_com~" + strings.Repeat("a", 200), Role: login.Principal},
		{Name: "operator", Role: login.Principal},
		{Name: "acme_com~a", Role: login.Operator},
		{Name: "operator", Role: login.Broker},
		{Name: "acme_com~a", Role: login.Broker},
		{Name: "acme_com~a", Role: "root"},
		{Name: "acme_com~a"},
	} {
		if got, err := login.Permissions(id); err == nil {
			t.Errorf("%+v may %+v", id, got)
		}
	}
}

// callout runs the service on a server where the test can send the server's requests.
type callout struct {
	t      *testing.T
	nc     *nats.Conn
	issuer string
	asking nkeys.KeyPair // the server's key
	user   string        // the user that the server wants signed
	agent  nkeys.KeyPair // registered
	logs   *observer.ObservedLogs
	stop   func()
}

func serve(t *testing.T) *callout {
	t.Helper()
	ns, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoLog: true, NoSigs: true})
	must(t, err)
	ns.Start()
	t.Cleanup(func() { ns.Shutdown(); ns.WaitForShutdown() })
	nc, err := nats.Connect(ns.ClientURL())
	must(t, err)
	t.Cleanup(nc.Close)

	issuer, err := nkeys.CreateAccount()
	must(t, err)
	core, logs := observer.New(zap.DebugLevel)
	c := &callout{t: t, nc: nc, issuer: public(t, issuer), asking: pair(t, nkeys.CreateServer), agent: pair(t, nkeys.CreateUser), logs: logs}
	c.user = public(t, pair(t, nkeys.CreateUser))
	registered := public(t, c.agent)
	c.stop, err = login.Serve(nc, issuer, func(publicKey string) (login.Identity, bool) {
		return login.Identity{Name: "acme_com~a", Role: login.Principal}, publicKey == registered
	}, nil, zap.New(core))
	must(t, err)
	return c
}

// request is a valid login of the registered agent.
func (c *callout) request() *jwt.AuthorizationRequestClaims {
	c.t.Helper()
	req := jwt.NewAuthorizationRequestClaims(c.issuer)
	req.Audience = "nats-authorization-request"
	req.UserNkey = c.user
	req.Server.ID = public(c.t, c.asking)
	req.Expires = time.Now().Add(time.Minute).Unix()
	req.ClientInformation.Nonce = "nonce-of-this-connection"
	req.ConnectOptions.Nkey = public(c.t, c.agent)
	req.ConnectOptions.SignedNonce = c.sign(c.agent, req.ClientInformation.Nonce)
	return req
}

func (c *callout) sign(key nkeys.KeyPair, nonce string) string {
	c.t.Helper()
	sig, err := key.Sign([]byte(nonce))
	must(c.t, err)
	return base64.RawURLEncoding.EncodeToString(sig)
}

// ask sends a request that must be answered.
func (c *callout) ask(req *jwt.AuthorizationRequestClaims) *jwt.AuthorizationResponseClaims {
	c.t.Helper()
	data, err := req.Encode(c.asking)
	must(c.t, err)
	msg, err := c.nc.Request("$SYS.REQ.USER.AUTH", []byte(data), testkit.Patience)
	must(c.t, err)
	res, err := jwt.DecodeAuthorizationResponseClaims(string(msg.Data))
	must(c.t, err)
	if res.Issuer != c.issuer || res.Subject != req.UserNkey || res.Audience != req.Server.ID {
		c.t.Fatalf("the answer is from %s to %s for %s", res.Issuer, res.Audience, res.Subject)
	}
	return res
}

func TestCalloutLetsInWhoSigned(t *testing.T) {
	c := serve(t)
	res := c.ask(c.request())
	if res.Error != "" {
		t.Fatalf("refused: %s", res.Error)
	}
	user, err := jwt.DecodeUserClaims(res.Jwt)
	must(t, err)
	want, err := login.Permissions(login.Identity{Name: "acme_com~a", Role: login.Principal})
	must(t, err)
	if diff := cmp.Diff(want, user.Permissions); diff != "" {
		t.Error(diff)
	}
	if user.Name != "acme_com~a/"+public(t, c.agent) || user.Audience != "PRINCIPALS" || user.Subject != c.user || user.Issuer != c.issuer {
		t.Errorf("became %+v", user)
	}
}

// The server does not check the signature, so the callout must refuse a registered key without
// proof.
func TestCalloutRefuses(t *testing.T) {
	c := serve(t)
	other := pair(t, nkeys.CreateUser)
	account := pair(t, nkeys.CreateAccount)
	for name, spoil := range map[string]func(*jwt.AuthorizationRequestClaims){
		"forged signature": func(r *jwt.AuthorizationRequestClaims) {
			r.ConnectOptions.SignedNonce = c.sign(other, r.ClientInformation.Nonce)
		},
		"signature of before":    func(r *jwt.AuthorizationRequestClaims) { r.ClientInformation.Nonce = "nonce-of-another-connection" },
		"no signature":           func(r *jwt.AuthorizationRequestClaims) { r.ConnectOptions.SignedNonce = "" },
		"signature is no base64": func(r *jwt.AuthorizationRequestClaims) { r.ConnectOptions.SignedNonce = "~" },
		"signature is short":     func(r *jwt.AuthorizationRequestClaims) { r.ConnectOptions.SignedNonce = "AAAA" },
		"signature of an empty nonce": func(r *jwt.AuthorizationRequestClaims) {
			r.ClientInformation.Nonce, r.ConnectOptions.SignedNonce = "", c.sign(c.agent, "")
		},
		"no key":    func(r *jwt.AuthorizationRequestClaims) { r.ConnectOptions.Nkey = "" },
		"not a key": func(r *jwt.AuthorizationRequestClaims) { r.ConnectOptions.Nkey = "acme_com~a" },
		"account key": func(r *jwt.AuthorizationRequestClaims) {
			r.ConnectOptions.Nkey, r.ConnectOptions.SignedNonce = public(t, account), c.sign(account, r.ClientInformation.Nonce)
		},
		"unknown key": func(r *jwt.AuthorizationRequestClaims) {
			r.ConnectOptions.Nkey, r.ConnectOptions.SignedNonce = public(t, other), c.sign(other, r.ClientInformation.Nonce)
		},
		"password": func(r *jwt.AuthorizationRequestClaims) {
			r.ConnectOptions = jwt.ConnectOptions{Username: "acme_com~a", Password: "secret-word"}
		},
		"token": func(r *jwt.AuthorizationRequestClaims) {
			r.ConnectOptions = jwt.ConnectOptions{Token: "secret-word"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			req := c.request()
			spoil(req)
			if res := c.ask(req); res.Error == "" || res.Jwt != "" {
				t.Fatalf("let in with %q", res.Jwt)
			}
		})
	}
	for _, entry := range c.logs.All() {
		for _, secret := range []string{"secret-word", "nonce-of"} {
			for _, field := range entry.Context {
				if strings.Contains(field.String, secret) {
					t.Errorf("%s is logged: %v", secret, entry)
				}
			}
		}
	}
}

// Nothing is signed for requests that do not come from a server.
func TestCalloutIgnoresOthers(t *testing.T) {
	c := serve(t)
	encoded := func(spoil func(*jwt.AuthorizationRequestClaims)) []byte {
		req := c.request()
		spoil(req)
		data, err := req.Encode(c.asking)
		must(t, err)
		return []byte(data)
	}
	for name, data := range map[string][]byte{
		"nothing":        nil,
		"not a token":    []byte("hello"),
		"other audience": encoded(func(r *jwt.AuthorizationRequestClaims) { r.Audience = "other" }),
		"other issuer":   encoded(func(r *jwt.AuthorizationRequestClaims) { r.Subject = public(t, pair(t, nkeys.CreateAccount)) }),
		"other server":   encoded(func(r *jwt.AuthorizationRequestClaims) { r.Server.ID = public(t, pair(t, nkeys.CreateServer)) }),
		"no user":        encoded(func(r *jwt.AuthorizationRequestClaims) { r.UserNkey = "" }),
		"expired":        encoded(func(r *jwt.AuthorizationRequestClaims) { r.Expires = 1 }),
	} {
		t.Run(name, func(t *testing.T) {
			inbox := c.nc.NewRespInbox()
			answers, err := c.nc.SubscribeSync(inbox)
			must(t, err)
			must(t, c.nc.PublishRequest("$SYS.REQ.USER.AUTH", inbox, data))
			c.ask(c.request()) // answered after it
			if msg, err := answers.NextMsg(time.Nanosecond); err == nil {
				t.Fatalf("answered: %s", msg.Data)
			}
		})
	}
}

func TestCalloutStops(t *testing.T) {
	c := serve(t)
	c.stop()
	if _, err := c.nc.Request("$SYS.REQ.USER.AUTH", nil, testkit.Patience); !errors.Is(err, nats.ErrNoResponders) {
		t.Fatalf("got %v, want %v", err, nats.ErrNoResponders)
	}
}

func TestIssuerMustBeAnAccount(t *testing.T) {
	c := serve(t)
	if _, err := login.Serve(c.nc, c.agent, nil, nil, zap.NewNop()); err == nil {
		t.Fatal("a user key signs logins")
	}
}

func pair(t *testing.T, create func() (nkeys.KeyPair, error)) nkeys.KeyPair {
	t.Helper()
	key, err := create()
	must(t, err)
	return key
}

func public(t *testing.T, key nkeys.KeyPair) string {
	t.Helper()
	pub, err := key.PublicKey()
	must(t, err)
	return pub
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
