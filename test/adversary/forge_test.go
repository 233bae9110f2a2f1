package adversary

import (
	"encoding/json"
	"testing"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"

	"github.com/parley-asp/parley/login"
	"github.com/parley-asp/parley/performatives"
)

// inIntegrity is a remark with something of the broker's in its integrity, and signed as it is.
func inIntegrity(p *person, id performatives.SessionID, member string) string {
	p.Helper()
	integrity := map[string]any{}
	bent := bend(p.TB, p.envelope(id, fact("x")), func(e map[string]any) {
		must(p.TB, json.Unmarshal([]byte("{"+member+"}"), &integrity))
		e["integrity"] = integrity
	})
	signature, err := performatives.SignBytes(p.signer, bent)
	must(p.TB, err)
	return string(bend(p.TB, bent, func(e map[string]any) {
		integrity["signature"] = signature
		e["integrity"] = integrity
	}))
}

// bend changes what is in an envelope or an entry and leaves its spelling canonical.
func bend(t testing.TB, data []byte, change func(map[string]any)) []byte {
	t.Helper()
	var e map[string]any
	must(t, json.Unmarshal(data, &e))
	change(e)
	bent, err := json.Marshal(e)
	must(t, err)
	canonical, err := performatives.Canonical(bent)
	must(t, err)
	return canonical
}

// forgedUser is a login with alpha's rights, signed by an account of the attacker's own.
func forgedUser(t testing.TB, user, account nkeys.KeyPair) string {
	t.Helper()
	key, err := user.PublicKey()
	must(t, err)
	claims := jwt.NewUserClaims(key)
	claims.Name, claims.Audience = alpha.Token(), login.PrincipalsAccount
	claims.Permissions, err = login.Permissions(login.Identity{Name: alpha.Token(), Role: login.Principal})
	must(t, err)
	signed, err := claims.Encode(account)
	must(t, err)
	return signed
}

func seed(t testing.TB, key nkeys.KeyPair) string {
	t.Helper()
	text, err := key.Seed()
	must(t, err)
	return string(text)
}
