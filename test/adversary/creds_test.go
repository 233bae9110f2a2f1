package adversary

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/server/login"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/test/testkit"
)

func newSigner(t testing.TB) performatives.Signer {
	t.Helper()
	pair, err := nkeys.CreateUser()
	testkit.Must(t, err)
	signer, err := performatives.NewSigner(pair)
	testkit.Must(t, err)
	return signer
}

// ownKeys are the public keys of the installation, as an attacker knows them who has seen its
// configuration.
func (w *world) ownKeys() map[string]performatives.Key {
	w.Helper()
	own := map[string]performatives.Key{}
	files, err := filepath.Glob(filepath.Join(w.Data, "*.nk"))
	testkit.Must(w, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		testkit.Must(w, err)
		_, raw, err := nkeys.DecodeSeed([]byte(strings.TrimSpace(string(text))))
		testkit.Must(w, err)
		pair, err := nkeys.FromRawSeed(nkeys.PrefixByteUser, raw) // the issuer's, too, written as a user's
		testkit.Must(w, err)
		public, err := pair.PublicKey()
		testkit.Must(w, err)
		own[filepath.Base(file)] = performatives.Key(public)
	}
	if len(own) < 5 {
		w.Fatalf("the installation has only %v", own)
	}
	return own
}

// userJWT asks for the JWT of a credentials file, which anybody may do for itself.
func userJWT(p *testkit.Principal) string {
	p.Helper()
	var reply api.UserJWT
	testkit.Must(p, json.Unmarshal(p.Call(api.AgentJWT.Name, "").Data, &reply))
	if reply.JWT == "" {
		p.Fatal("no JWT")
	}
	return reply.JWT
}

func presents(token string, sign func([]byte) ([]byte, error)) nats.Option {
	return nats.UserJWT(func() (string, error) { return token, nil }, sign)
}

// TestCredentials: JWTs of .creds files, one's own and others', by which somebody would get in, or
// get more than the key gives. The JWT is no secret, so the attacker has everybody's.
func TestCredentials(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p, victim := w.Principal(eve), w.Principal(alpha)
	mine, alphas := userJWT(p), userJWT(victim)
	issued, err := jwt.DecodeUserClaims(mine)
	testkit.Must(t, err)
	account, err := nkeys.CreateAccount()
	testkit.Must(t, err)
	claims := func(subject performatives.Key, name, issuer string) string {
		c := jwt.NewUserClaims(string(subject))
		c.Name, c.IssuerAccount = name, issuer
		token, err := c.Encode(account)
		testkit.Must(t, err)
		return token
	}
	bent := func(token string, change func(map[string]any)) string {
		parts := strings.Split(token, ".")
		body, err := base64.RawURLEncoding.DecodeString(parts[1])
		testkit.Must(t, err)
		var fields map[string]any
		testkit.Must(t, json.Unmarshal(body, &fields))
		change(fields)
		body, err = json.Marshal(fields)
		testkit.Must(t, err)
		return parts[0] + "." + base64.RawURLEncoding.EncodeToString(body) + "." + parts[2]
	}
	own := testkit.LoginOf(t, p.Key)
	var caught []byte
	_, err = victim.Dial(presents(alphas, func(nonce []byte) ([]byte, error) {
		caught, err = testkit.LoginOf(t, victim.Key).Sign(nonce)
		return caught, err
	}))
	testkit.Must(t, err)
	sentinel := bent(mine, func(f map[string]any) { f["nats"].(map[string]any)["bearer_token"] = true })
	w.harmless(func() {
		var tries sync.WaitGroup
		for name, how := range map[string]nats.Option{
			"alpha's JWT, my signature":        presents(alphas, own.Sign),
			"alpha's JWT, its old signature":   presents(alphas, func([]byte) ([]byte, error) { return caught, nil }),
			"alpha's JWT, no signature":        presents(alphas, func([]byte) ([]byte, error) { return nil, nil }),
			"of an account of mine":            presents(claims(performatives.Key(testkit.Public(t, own)), alpha.Token(), ""), own.Sign),
			"of an account that I say is ours": presents(claims(performatives.Key(testkit.Public(t, own)), alpha.Token(), issued.IssuerAccount), own.Sign),
			"mine, with alpha's key in it":     presents(bent(mine, func(f map[string]any) { f["sub"] = string(testkit.LoginKeys(t, victim.Key)[0]) }), own.Sign),
			"mine, as a bearer's":              presents(sentinel, func([]byte) ([]byte, error) { return nil, nil }),
			"mine, for ever more":              presents(bent(mine, func(f map[string]any) { f["exp"] = time.Now().Add(time.Hour).Unix() }), own.Sign),
		} {
			tries.Go(func() { // where the server itself refuses it says nothing for a while
				if nc, err := p.Dial(how); err == nil {
					nc.Close()
					t.Errorf("%s: let in", name)
				}
			})
		}
		tries.Wait()
		want(t, "alpha's JWT, from the broker", p.Call(api.AgentJWT.Name, `{"agentId":"`+string(alpha)+`"}`), session.Unauthorized)
		want(t, "a JWT for alpha's key", p.Call(api.AgentJWT.Name, `{"key":"`+string(victim.Signer.Key())+`"}`), session.Duplicate)
	})

	// With its own JWT eve is eve, and no more than with the bare key.
	nc, err := p.Dial(presents(mine, own.Sign))
	testkit.Must(t, err)
	w.harmless(func() {
		for _, subject := range []string{
			api.Submit(alpha, w.deal), api.Call(alpha, api.SessionList.Name), api.Session(w.deal), "$JS.API.STREAM.NAMES", "$SYS.REQ.USER.AUTH",
			"$SYS.REQ.CLAIMS.UPDATE", "$SYS.REQ.ACCOUNT." + issued.IssuerAccount + ".CLAIMS.LOOKUP",
		} {
			testkit.Must(t, nc.Publish(subject, []byte("{}")))
			if !testkit.Denied(t, nc, subject) {
				t.Errorf("eve may publish %s", subject)
			}
		}
	}, eve)
	if nc.IsClosed() {
		t.Error("eve was disconnected")
	}
	// Another account's name in the options moves nobody.
	for _, name := range []string{login.BrokerAccount, login.OperatorsAccount, issued.IssuerAccount} {
		other, err := p.Dial(presents(mine, own.Sign), nats.Name(name))
		testkit.Must(t, err)
		testkit.Must(t, other.Publish(api.OperatorCall(api.SessionList.Name), nil))
		if !testkit.Denied(t, other, api.OperatorCall(api.SessionList.Name)) {
			t.Errorf("as %s eve is an operator", name)
		}
	}
}
