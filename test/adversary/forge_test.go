package adversary

import (
	"encoding/json"
	"testing"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"

	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/server/login"
	"github.com/parley-asp/parley/test/testkit"
)

// inIntegrity is a remark with something of the broker's in its integrity, and signed as it is.
func inIntegrity(p *testkit.Principal, id performatives.SessionID, member string) string {
	p.Helper()
	integrity := map[string]any{}
	bent := bend(p, p.Envelope(id, testkit.Fact("x")), func(e map[string]any) {
		testkit.Must(p, json.Unmarshal([]byte("{"+member+"}"), &integrity))
		e["integrity"] = integrity
	})
	signature, err := performatives.SignBytes(p.Signer, bent)
	testkit.Must(p, err)
	return string(bend(p, bent, func(e map[string]any) {
		integrity["signature"] = signature
		e["integrity"] = integrity
	}))
}

// bend changes what is in an envelope or an entry and leaves its spelling canonical.
func bend(t testing.TB, data []byte, change func(map[string]any)) []byte {
	t.Helper()
	var e map[string]any
	testkit.Must(t, json.Unmarshal(data, &e))
	change(e)
	bent, err := json.Marshal(e)
	testkit.Must(t, err)
	canonical, err := performatives.Canonical(bent)
	testkit.Must(t, err)
	return canonical
}

// forgedUser is a login with alpha's rights, signed by an account of the attacker's own.
func forgedUser(t testing.TB, user, account nkeys.KeyPair) string {
	t.Helper()
	key, err := user.PublicKey()
	testkit.Must(t, err)
	claims := jwt.NewUserClaims(key)
	claims.Name, claims.Audience = alpha.Token(), login.PrincipalsAccount
	signed, err := claims.Encode(account)
	testkit.Must(t, err)
	return signed
}

func seed(t testing.TB, key nkeys.KeyPair) string {
	t.Helper()
	text, err := key.Seed()
	testkit.Must(t, err)
	return string(text)
}
