package client_test

import (
	"errors"
	"testing"

	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/test/testkit"
)

// A principal changes its key again and again; each time it is answered on the
// connection that is then closed, and goes on with the new key.
func TestRotateKey(t *testing.T) {
	t.Parallel()
	w := start(t, testkit.Options{})
	w.Client(beta)
	for range 20 {
		c, pair := w.Client(alpha), testkit.NewKey(t)
		signer := testkit.Signer(t, pair)
		if card := must(c.RotateKey(w.Ctx, signer, testkit.LoginKeys(t, pair)...))(t); card.Key != signer.Key() {
			t.Errorf("the card has %s, want %s", card.Key, signer.Key())
		}
		c.Close()
		w.Principal(alpha).SetKey(pair)
	}
	must(w.Client(alpha).Invite(w.Ctx, client.Invitation{With: []performatives.Agent{beta}}))(t)
}

// An operator changes anybody's key but to one that is taken.
func TestOperatorRotatesKey(t *testing.T) {
	t.Parallel()
	w := start(t, testkit.Options{})
	o := w.OperatorClient()
	b := w.Client(beta)
	w.Principal(alpha)
	if _, err := o.RotateKey(w.Ctx, alpha, b.Key()); !errors.Is(err, client.Refused(session.Duplicate)) {
		t.Errorf("to the key of another: %v", err)
	}
	pair := testkit.NewKey(t)
	must(o.RotateKey(w.Ctx, alpha, performatives.Key(testkit.Public(t, pair)), testkit.LoginKeys(t, pair)...))(t)
	w.Principal(alpha).SetKey(pair)
	w.Client(alpha)
}
