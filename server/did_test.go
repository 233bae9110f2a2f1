package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/mr-tron/base58"
	"github.com/nats-io/nkeys"

	"github.com/parley-asp/parley/agreement"
	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker"
	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/internal/testkit"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// GATEWAYS.md G4: the DID document of a principal has its registered key, as a Multikey.
func TestDIDDocument(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t, testkit.Options{HTTP: "127.0.0.1:0"})
	buyer := w.Principal("agent://acme.com/procurement/buyer")
	_, err := w.OperatorClient().AddHosted(w.Ctx, api.Card{Agent: "agent://acme.com/hosted"})
	testkit.Must(t, err)
	get := func(token string) (status int, body []byte) {
		r, err := http.NewRequestWithContext(w.Ctx, http.MethodGet, "http://"+w.HTTPAddr+"/did/"+token+"/did.json", nil)
		testkit.Must(t, err)
		answer, err := http.DefaultClient.Do(r)
		testkit.Must(t, err)
		defer answer.Body.Close()
		body, err = io.ReadAll(answer.Body)
		testkit.Must(t, err)
		return answer.StatusCode, body
	}
	var d struct {
		ID          string                                                      `json:"id"`
		AlsoKnownAs []string                                                    `json:"alsoKnownAs"`
		Keys        []struct{ ID, Type, Controller, PublicKeyMultibase string } `json:"verificationMethod"`
		Assertion   []string                                                    `json:"assertionMethod"`
	}
	status, body := get("acme_com~procurement~buyer")
	if status != http.StatusOK {
		t.Fatalf("%d %s", status, body)
	}
	testkit.Must(t, json.Unmarshal(body, &d))
	raw, err := nkeys.Decode(nkeys.PrefixByteUser, []byte(buyer.Signer.Key()))
	testkit.Must(t, err)
	const did = "did:web:acme.com:procurement:buyer"
	if d.ID != did || len(d.Keys) != 1 || d.Keys[0].Type != "Multikey" || d.Keys[0].Controller != did || d.Assertion[0] != d.Keys[0].ID {
		t.Fatalf("%s", body)
	}
	key, err := base58.Decode(d.Keys[0].PublicKeyMultibase[1:])
	if err != nil || d.Keys[0].PublicKeyMultibase[0] != 'z' || !bytes.Equal(key, append([]byte{0xed, 0x01}, raw...)) {
		t.Errorf("the key is %s, %v", d.Keys[0].PublicKeyMultibase, err)
	}
	if len(d.AlsoKnownAs) != 1 || d.AlsoKnownAs[0] != "did:key:"+d.Keys[0].PublicKeyMultibase {
		t.Errorf("also known as %q", d.AlsoKnownAs)
	}
	status, body = get("acme_com~hosted")
	testkit.Must(t, json.Unmarshal(body, &d))
	if status != http.StatusOK || len(d.Keys) != 1 || d.Keys[0].ID != "did:web:acme.com:hosted#hosted" {
		t.Errorf("%d %s", status, body)
	}
	for _, token := range []string{performatives.Agent("agent://nowhere.net/x").Token(), "acme.com", "..", "%00", "*"} {
		if status, body := get(token); status == http.StatusOK {
			t.Errorf("%s: %s", token, body)
		}
	}
}

// GATEWAYS.md G4: an operator registers another DID of an agent with its key; agreements name it.
func TestForeignDID(t *testing.T) {
	t.Parallel()
	w := newOAPWorld(t)
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
	w.oap("POST", "open", beta, members{"to": did}).is(http.StatusCreated, &opened)
	p := w.proposal(opened.ID, "prp_1", nil, 1, alpha, func(p members) { p["from"] = did })
	p["agreement_signature"] = ""
	_, hash, _ := strings.Cut(string(w.oap("POST", opened.ID+"/propose", alpha, w.signs(p, alpha)).body), "agreement_hash ")
	hash, _, _ = strings.Cut(hash, `"`)
	p["agreement_signature"], err = agreement.Sign(w.signers[alpha], agreement.Digest(hash))
	testkit.Must(t, err)
	w.oap("POST", opened.ID+"/propose", alpha, w.signs(p, alpha)).is(http.StatusOK, &s)
	agreed := w.oap("POST", opened.ID+"/accept", beta, w.acceptance("prp_1", s.Hash, beta))
	agreed.is(http.StatusOK, nil)
	data, err := performatives.Canonical(agreed.body)
	testkit.Must(t, err)
	r := agreement.Verify(data, agreement.Trust{Broker: w.Key()})
	if len(r.Faults) > 0 || len(r.Signed) != 2 || r.Document.Parties[0] != did || r.Document.Parties[1] != agreement.DIDOf(beta) {
		t.Errorf("the agreement has the faults %v, signed by %v", r.Faults, r.Signed)
	}
	forged := bytes.ReplaceAll(data, []byte(did), []byte(agreement.DIDKeyOf(w.signers[beta].Key())))
	if r := agreement.Verify(forged, agreement.Trust{}); len(r.Faults) == 0 {
		t.Error("an agreement of another DID is verified")
	}
	w.replays(performatives.SessionID(strings.TrimPrefix(opened.ID, "neg_")), 2)
}

// GATEWAYS.md G4: a did:web elsewhere is registered if its document has the agent's key. The
// document is read once, for an operator.
func TestForeignDIDWeb(t *testing.T) {
	t.Parallel()
	const did, url = "did:web:id.example:agents:alpha", "https://id.example/agents/alpha/did.json"
	own, another := testkit.Signer(t, testkit.NewKey(t)).Key(), testkit.Signer(t, testkit.NewKey(t)).Key()
	var mu sync.Mutex
	var document any
	var fetched []string
	answers := func(d any) {
		mu.Lock()
		defer mu.Unlock()
		document, fetched = d, nil
	}
	wasFetched := func() []string {
		mu.Lock()
		defer mu.Unlock()
		return fetched
	}
	s := testkit.StartServer(t)
	b, _ := s.OpenBroker(func(o *broker.Options) {
		o.DIDDocument = func(_ context.Context, url string) ([]byte, error) {
			mu.Lock()
			defer mu.Unlock()
			if fetched = append(fetched, url); document == nil {
				return nil, errors.New("its host is silent")
			}
			return json.Marshal(document)
		}
	})
	defer func() { testkit.Must(t, b.Close(t.Context())) }()
	operator, err := client.ConnectOperator(t.Context(), s.URL, client.Unsigned())
	testkit.Must(t, err)
	defer operator.Close()
	registers := func(a performatives.Agent, key performatives.Key) error {
		_, err := operator.AddAgent(t.Context(), api.Card{Agent: a, Key: key, Registry: api.Registry{DID: did}})
		return err
	}
	has := func(id string, key performatives.Key) map[string]any {
		return map[string]any{
			"id": id, "assertionMethod": []string{"#key"}, "verificationMethod": []map[string]any{{
				"id": id + "#key", "type": "Multikey", "controller": id, "publicKeyMultibase": strings.TrimPrefix(string(agreement.DIDKeyOf(key)), "did:key:"),
			}},
		}
	}
	for why, answered := range map[string]any{
		"its host is silent":           nil,
		"does not hold":                has("did:web:id.example", own),
		"does not have the card's key": has(did, another),
	} {
		answers(answered)
		if err := registers(alpha, own); !errors.Is(err, client.Refused(session.SchemaInvalid)) || !strings.Contains(err.Error(), why) {
			t.Errorf("want %s: %v", why, err)
		}
	}
	answers(has(did, own))
	testkit.Must(t, registers(alpha, own))
	if all := wasFetched(); len(all) != 1 || all[0] != url {
		t.Errorf("the documents %q were read", all)
	}
	if err := registers(beta, own); err == nil {
		t.Error("a second agent has the same DID")
	}
	owner, err := client.Connect(t.Context(), s.URL, alpha, client.Unsigned())
	testkit.Must(t, err)
	defer owner.Close()
	card, err := owner.Card(t.Context(), alpha)
	if err != nil || card.Registry.DID != did {
		t.Errorf("the card has %q, %v", card.Registry.DID, err)
	}
	answers(has(did, own))
	_, err = owner.Register(t.Context(), api.Card{Agent: alpha, Key: own, Registry: api.Registry{DID: "did:web:other.example"}})
	testkit.Must(t, err)
	if card, err := owner.Card(t.Context(), alpha); err != nil || card.Registry.DID != did || len(wasFetched()) > 0 {
		t.Errorf("the agent changed its DID to %q, and %q were read: %v", card.Registry.DID, wasFetched(), err)
	}
}
