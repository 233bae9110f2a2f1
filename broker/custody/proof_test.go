package custody_test

import (
	"testing"
	"time"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker/custody"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/test/natskit"
)

// With a key end the tokens that a proof by it has made, and what was opened with them, however the key is replaced.
func TestProofEndsWithItsKey(t *testing.T) {
	t.Parallel()
	for name, replace := range map[string]func(d keeper, key performatives.Key) error{
		"by its principal": func(d keeper, key performatives.Key) error {
			_, _, err := d.AgentRotate(t.Context(), operator, api.RotateKey{Agent: alpha, Key: key})
			return err
		},
		"by an operator": func(d keeper, key performatives.Key) error {
			_, err := d.AgentAdd(t.Context(), operator, api.AddAgent{Card: &api.Card{Agent: alpha, Key: key}})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := natskit.StartServer(t)
			d := open(t, s)
			prove := func(signer performatives.Signer) custody.Pass {
				t.Helper()
				p := api.ProveToken{Agent: alpha, Timestamp: time.Now().UTC().Format(time.RFC3339Nano), Audience: s.Signer.Key()}
				signed, err := p.SigningBytes()
				natskit.Must(t, err)
				p.Signature, err = performatives.SignBytes(signer, signed)
				natskit.Must(t, err)
				made, err := d.Prove(t.Context(), p)
				natskit.Must(t, err)
				pass, err := d.Admit(t.Context(), made.Token)
				natskit.Must(t, err)
				return pass
			}
			old := prove(d.add(t, alpha))
			given := d.token(t, api.AddToken{Agent: alpha})
			signer := natskit.Signer(t, natskit.NewKey(t))
			natskit.Must(t, replace(d, signer.Key()))
			select {
			case <-old.Removed:
			case <-t.Context().Done():
				t.Error("what the old key's token has opened stays open")
			}
			if valid, err := d.ValidToken(t.Context(), old.Worker); valid || err != nil {
				t.Errorf("the old key's token is valid: %v %v", valid, err)
			}
			if _, err := d.Admit(t.Context(), given.Token); err != nil {
				t.Errorf("a token that an operator gave: %v", err)
			}
			prove(signer)
		})
	}
}
