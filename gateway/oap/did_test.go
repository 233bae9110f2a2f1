package oapgateway_test

import (
	"bytes"
	"net/http"
	"strings"
	"testing"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session/agreement"
	"github.com/parley-asp/parley/test/testkit"
)

// GATEWAYS.md G4: an operator registers another DID of an agent with its key; agreements name it.
func TestForeignDID(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	own := w.signers[alpha].Key()
	for did, why := range map[agreement.DID]string{
		agreement.DIDKeyOf(w.signers[beta].Key()): "is not of the card's key",
		"did:web:other.example":                   "--did-hosts",
		"did:ion:x":                               "did is a did:key",
		"did:web:a/b":                             "did is a did:key",
		"did:key:z6Mk":                            "did is a did:key",
	} {
		_, err := w.OperatorClient().AddHosted(w.Ctx, api.Card{Agent: alpha, Key: own, Registry: api.Registry{DID: string(did)}})
		if err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s is registered: %v", did, err)
		}
	}
	did := agreement.DIDKeyOf(own)
	_, err := w.OperatorClient().AddHosted(w.Ctx, api.Card{Agent: alpha, Key: own, Registry: api.Registry{DID: string(did)}})
	testkit.Must(t, err)

	var opened, s oapState
	w.oap("POST", "open", beta, members{"to": did}).Is(http.StatusCreated, &opened)
	p := w.proposal(opened.ID, "prp_1", nil, 1, alpha, func(p members) { p["from"] = did })
	delete(p, "agreement_signature")
	w.oap("POST", opened.ID+"/propose", alpha, w.signs(p, alpha)).Is(http.StatusOK, &s)
	w.oap("POST", opened.ID+"/accept", beta, w.acceptance("prp_1", s.Hash, beta)).Is(http.StatusOK, nil)
	agreed := w.later(opened.ID, alpha, s.Hash)
	agreed.Is(http.StatusOK, nil)
	data, err := performatives.Canonical(agreed.Body)
	testkit.Must(t, err)
	r := agreement.Verify(data, agreement.Trust{Broker: w.Server.Broker.Command.Key()})
	if len(r.Faults) > 0 || len(r.Signed) != 2 || r.Document.Parties[0] != did || r.Document.Parties[1] != agreement.DIDOf(beta) {
		t.Errorf("the agreement has the faults %v, signed by %v", r.Faults, r.Signed)
	}
	forged := bytes.ReplaceAll(data, []byte(did), []byte(agreement.DIDKeyOf(w.signers[beta].Key())))
	if r := agreement.Verify(forged, agreement.Trust{}); len(r.Faults) == 0 {
		t.Error("an agreement of another DID is verified")
	}
	w.replays(performatives.SessionID(strings.TrimPrefix(opened.ID, "neg_")), 2)
}
