package server_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"testing"

	"github.com/mr-tron/base58"
	"github.com/nats-io/nkeys"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/test/testkit"
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
