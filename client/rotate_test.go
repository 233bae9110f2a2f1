package client_test

import (
	"errors"
	"testing"

	"github.com/nats-io/nkeys"

	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/test/testbroker"
)

// A principal changes its key again and again; each time it is answered on the
// connection that is then closed, and goes on with the new key.
func TestRotateKey(t *testing.T) {
	w := start(t, testbroker.Options{})
	w.as(beta)
	seed := w.seed(alpha)
	for range 20 {
		c := must(client.Connect(w.ctx, w.URL, alpha, client.Seed(seed)))(t)
		pair := must(nkeys.CreateUser())(t)
		signer := must(performatives.NewSigner(pair))(t)
		if card := must(c.RotateKey(w.ctx, signer))(t); card.Key != signer.Key() {
			t.Errorf("the card has %s, want %s", card.Key, signer.Key())
		}
		c.Close()
		seed = string(must(pair.Seed())(t))
	}
	w.seeds[alpha] = seed
	must(w.as(alpha).Invite(w.ctx, client.Invitation{With: []performatives.Agent{beta}}))(t)
}

// An operator changes anybody's key but to one that is taken.
func TestOperatorRotatesKey(t *testing.T) {
	w := start(t, testbroker.Options{})
	o := must(client.ConnectOperator(w.ctx, w.URL, client.Seed(string(must(w.Operator().Seed())(t)))))(t)
	defer o.Close()
	b := w.as(beta)
	w.seed(alpha)
	if _, err := o.RotateKey(w.ctx, alpha, b.Key()); !errors.Is(err, client.Refused(session.Duplicate)) {
		t.Errorf("to the key of another: %v", err)
	}
	pair := must(nkeys.CreateUser())(t)
	must(o.RotateKey(w.ctx, alpha, performatives.Key(must(pair.PublicKey())(t))))(t)
	w.seeds[alpha] = string(must(pair.Seed())(t))
	w.as(alpha)
}
