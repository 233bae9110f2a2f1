package agreement_test

import (
	"fmt"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/parley-asp/parley/session/agreement"
)

// What DIDDocumentOf writes, ReadDIDDocument reads; a document of others, and a key that
// asserts nothing, count nothing.
func TestReadDIDDocument(t *testing.T) {
	t.Parallel()
	own := signerOf(t, "own").Key()
	if got := agreement.KeyOf(agreement.DIDKeyOf(own)); got != own {
		t.Errorf("the key of its did:key is %q", got)
	}
	data, err := json.Marshal(agreement.DIDDocumentOf(buyer, own, ""))
	if err != nil {
		t.Fatal(err)
	}
	did := agreement.DIDOf(buyer)
	if keys, err := agreement.ReadDIDDocument(data, did); err != nil || len(keys) != 1 || keys[0] != own {
		t.Errorf("the keys are %v, %v", keys, err)
	}
	if _, err := agreement.ReadDIDDocument(data, agreement.DIDOf(seller)); err == nil {
		t.Error("a document of another DID is read")
	}
	silent := fmt.Sprintf(`{"id":%q,"verificationMethod":[{"id":"#k","publicKeyMultibase":%q}]}`, did, string(agreement.DIDKeyOf(own))[len("did:key:"):])
	if keys, err := agreement.ReadDIDDocument([]byte(silent), did); err != nil || len(keys) != 0 {
		t.Errorf("a key that makes no assertions counts: %v, %v", keys, err)
	}
	for did, want := range map[agreement.DID]string{
		"did:web:acme.com": "https://acme.com/.well-known/did.json", "did:web:acme.com:a:b": "https://acme.com/a/b/did.json",
		"did:web:acme.com%3A8443:a": "https://acme.com:8443/a/did.json", "did:key:z": "", "did:web:": "", "did:web:a/b": "", "did:web:u%40a.io": "", "did:web:a.io:x?y": "",
	} {
		if got := agreement.DocumentURL(did); got != want {
			t.Errorf("the document of %s is at %q, want %q", did, got, want)
		}
	}
}
