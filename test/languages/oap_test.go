//go:build languages

package languages

import (
	"context"
	"encoding/hex"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/nats-io/nkeys"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session/agreement"
	"github.com/parley-asp/parley/test/testkit"
)

// TestOAP has a program with nothing but Node's crypto play both parties of a negotiation by
// OAP's paths, and verifies what they signed.
func TestOAP(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	w := testkit.NewWorld(t, testkit.Options{HTTP: "127.0.0.1:0"})
	own := map[performatives.Agent]performatives.Key{}
	environment := append(os.Environ(), "BASE=http://"+w.HTTPAddr)
	for name, a := range map[string]performatives.Agent{"A": buyer, "B": seller} {
		pair := testkit.NewKey(t)
		own[a] = performatives.Key(testkit.Public(t, pair))
		_, err := w.OperatorClient().AddHosted(ctx, api.Card{Agent: a, Key: own[a]})
		testkit.Must(t, err)
		token, err := w.OperatorClient().AddToken(ctx, api.AddToken{Agent: a})
		testkit.Must(t, err)
		seed, err := pair.Seed()
		testkit.Must(t, err)
		_, raw, err := nkeys.DecodeSeed(seed)
		testkit.Must(t, err)
		environment = append(environment, "DID_"+name+"="+string(agreement.DIDOf(a)), "TOKEN_"+name+"="+token.Token, "SEED_"+name+"="+hex.EncodeToString(raw))
	}
	program := exec.CommandContext(ctx, "node", "oap.mjs")
	program.Env = environment
	var faults strings.Builder
	program.Stderr = &faults
	said, err := program.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, faults.String())
	}
	r := agreement.Verify([]byte(strings.TrimSpace(string(said))), agreement.Trust{Keys: own, Broker: w.Server.Broker.Command.Key()})
	if len(r.Faults) > 0 || len(r.Signed) != 2 {
		t.Errorf("the agreement has the faults %v, signed by %v", r.Faults, r.Signed)
	}
}
