package oapgateway

import (
	"bytes"
	"os"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/santhosh-tekuri/jsonschema/v5"
)

// TestManifest holds the manifest to OAP's schemas, whose rules testdata has in our words.
func TestManifest(t *testing.T) {
	t.Parallel()
	const id = "https://openagentprotocol.eu/schemas/v1.0/oap-"
	c := jsonschema.NewCompiler()
	c.Draft, c.AssertFormat = jsonschema.Draft2020, true
	for _, name := range []string{"action", "manifest"} {
		data, err := os.ReadFile("testdata/" + name + ".schema.json")
		if err == nil {
			err = c.AddResource(id+name+".schema.json", bytes.NewReader(data))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	schema, err := c.Compile(id + "manifest.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(manifest("https://acme.com", "acme.com", "did:key:z6MkTest"))
	if err != nil {
		t.Fatal(err)
	}
	var document map[string]any
	if err := json.Unmarshal(data, &document); err != nil {
		t.Fatal(err)
	}
	if err := schema.Validate(document); err != nil {
		t.Error(err)
	}
	if negotiation, _ := document["negotiation"].(map[string]any); negotiation["supported"] != true {
		t.Error("the manifest does not declare negotiation")
	}
	delete(document, "governance")
	if schema.Validate(document) == nil {
		t.Error("the schema takes a manifest without governance")
	}
}
