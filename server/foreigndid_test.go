package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/server"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/session/agreement"
	"github.com/parley-asp/parley/test/testkit"
)

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
	b, _ := s.OpenBroker(func(o *server.BrokerOptions) {
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
	if !errors.Is(err, client.Refused(session.SchemaInvalid)) {
		t.Errorf("a card with another DID: %v", err)
	}
	if card, err := owner.Card(t.Context(), alpha); err != nil || card.Registry.DID != did || len(wasFetched()) > 0 {
		t.Errorf("the agent changed its DID to %q, and %q were read: %v", card.Registry.DID, wasFetched(), err)
	}
}
