package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/schemas"
)

// TestNoDrift checks that the embedded files are what the generator writes from
// the current types (PROTOCOL.md §4).
func TestNoDrift(t *testing.T) {
	files, err := generate("github.com/parley-asp/parley/cmd/schemagen", "../../performatives")
	if err != nil {
		t.Fatal(err)
	}
	embedded := map[string]bool{}
	for _, name := range slices.Concat(schemas.Names(), schemas.Contracts()) {
		text, _ := schemas.Get(name)
		embedded[string(text)] = true
	}
	embedded[string(schemas.Components())] = true
	if len(files) != len(embedded) {
		t.Errorf("%d files generated, %d embedded", len(files), len(embedded))
	}
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join("..", "..", "schemas", name))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("%s: run go generate ./schemas (-want +got):\n%s", name, diff)
		}
		if !embedded[string(want)] {
			t.Errorf("%s is not what is embedded", name)
		}
	}
}

// TestAsyncAPI checks that docs/asyncapi.yaml is what the generator writes, and that it
// has every verb once.
func TestAsyncAPI(t *testing.T) {
	want, err := asyncAPI("github.com/parley-asp/parley/cmd/schemagen", "../../performatives")
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join("..", "..", "docs", "asyncapi.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("run go generate ./schemas (-want +got):\n%s", diff)
	}
	var d document
	if err := yaml.Unmarshal(got, &d); err != nil {
		t.Fatal(err)
	}
	for _, v := range api.Verbs() {
		for _, id := range []string{v.Name, v.Name + ".answer"} {
			if d.Channels[id] == nil {
				t.Errorf("no channel %s", id)
			}
		}
		if d.Operations[v.Name] == nil {
			t.Errorf("no operation %s", v.Name)
		}
	}
	for name, schema := range d.Components.Schemas {
		members, _ := schema["properties"].(object)
		for member, of := range members { // GATEWAYS.md G9: nothing is a bare object
			if is := of.(object); is["$ref"] == nil && is["enum"] == nil && is["const"] == nil && is["anyOf"] == nil && (is["type"] == nil || is["type"] == "object" && is["properties"] == nil && is["additionalProperties"] == nil) {
				t.Errorf("%s.%s is any value", name, member)
			}
		}
	}
	for _, act := range performatives.All() {
		if d.Components.Messages[act.String()] == nil {
			t.Errorf("no message %s", act)
		}
	}
}
