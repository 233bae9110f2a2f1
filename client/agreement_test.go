package client_test

import (
	"testing"
	"time"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/session/agreement"
	"github.com/parley-asp/parley/test/testkit"
)

// GATEWAYS.md G4: the SDK makes salts and signatures by itself.
func TestBindAndSign(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t, testkit.Options{})
	buyer, seller := w.Client("agent://acme.com/buyer"), w.Client("agent://widgets.co/seller")
	s, err := buyer.Invite(w.Ctx, client.Invitation{ProposalID: "inv", With: []performatives.Agent{seller.Agent()}, Purpose: "cups", Mode: "binding/1"})
	testkit.Must(t, err)
	theirs := seller.Session(s.ID())
	_, err = theirs.Accept(w.Ctx, "inv")
	testkit.Must(t, err)
	head := func() client.ActOption {
		at, err := s.Head(w.Ctx)
		testkit.Must(t, err)
		return client.LinkTo(at)
	}
	deal := client.Bind(client.Agreement{With: seller.Agent(), From: time.Now(), Until: time.Now().AddDate(1, 0, 0), Category: "pricing"})
	if _, err = s.Propose(w.Ctx, client.Proposal{ID: "p0", Type: "x", Terms: map[string]any{"price": 1}}, head()); err == nil {
		t.Error("an offer without a signature binds")
	}
	_, err = s.Propose(w.Ctx, client.Proposal{ID: "p1", Type: "x", Terms: map[string]any{"price": 5, "note": "ä"}}, head(), deal)
	testkit.Must(t, err)
	var offer *client.Message
	for m, err := range theirs.Messages(w.Ctx) {
		testkit.Must(t, err)
		if m.Act() == performatives.Propose && m.Ref() == "p1" {
			offer = m
			break
		}
		testkit.Must(t, m.Ack())
	}
	if _, err = theirs.Accept(w.Ctx, "p2", head(), client.Sign(offer)); err == nil {
		t.Error("the ACCEPT of another offer is signed")
	}
	if _, err = theirs.Observe(w.Ctx, "x", nil, deal); err == nil {
		t.Error("a remark is bound")
	}
	if _, err = theirs.Accept(w.Ctx, "p1", head()); err == nil {
		t.Error("an acceptance without a signature is accepted")
	}
	accepted, err := theirs.Accept(w.Ctx, "p1", head(), client.Sign(offer))
	testkit.Must(t, err)
	if accepted.State != session.Closed {
		t.Errorf("the session is %s", accepted.State)
	}
	d, err := buyer.Agreement(w.Ctx, api.GetAgreement{Session: s.ID()})
	testkit.Must(t, err)
	data, err := d.Bytes()
	testkit.Must(t, err)
	if r := agreement.Verify(data, agreement.Trust{Broker: w.Server.Broker.Command.Key()}); len(r.Faults) > 0 || len(r.Signed) != 2 || d.Category != "pricing" {
		t.Errorf("%+v", r)
	}
	for row, err := range seller.Agreements(w.Ctx, api.ListAgreements{}) {
		if err != nil || row.Agreement != d.ID {
			t.Errorf("%+v, %v", row, err)
		}
	}
}
