package inbox_test

import (
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/test/testkit"
)

// Only the browser's key opens sealed parts to an arbiter, and only those that it signs for.
func TestUnsealIsSigned(t *testing.T) {
	t.Parallel()
	b, v := serve(t, testkit.Options{})
	b.Register(alice)
	enrol := v.proof(v.root)
	enrol["code"] = code(t, b, alice)
	if status, body := v.posts("/inbox/enrol", enrol); status != http.StatusOK {
		t.Fatal(body)
	}
	const id = "019478a3-7b2c-7def-8a12-3456789abcde"
	purpose := "parley inbox: unseal " + id + " " + string(alpha)
	for what, c := range map[string]struct {
		proof   map[string]any
		sealers []performatives.Agent
		want    int
	}{
		"no proof":                       {map[string]any{}, []performatives.Agent{alpha}, http.StatusUnauthorized},
		"a proof that signs in":          {v.proof(v.root), []performatives.Agent{alpha}, http.StatusUnauthorized},
		"a proof of another origin":      {v.proofFor("https://evil.example", purpose), []performatives.Agent{alpha}, http.StatusUnauthorized},
		"a proof for fewer":              {v.proofFor(v.root, purpose), []performatives.Agent{alpha, alice}, http.StatusUnauthorized},
		"nothing chosen":                 {v.proofFor(v.root, strings.TrimSuffix(purpose, " "+string(alpha))), nil, http.StatusUnprocessableEntity},
		"an escalation that is not hers": {v.proofFor(v.root, purpose), []performatives.Agent{alpha}, http.StatusNotFound},
	} {
		request := map[string]any{"escalationId": id, "sealers": c.sealers}
		maps.Copy(request, c.proof)
		if status, body := v.posts("/inbox/unseal", request); status != c.want {
			t.Errorf("%s is answered %d %s, want %d", what, status, body, c.want)
		}
	}
}
