package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-asp/parley/schemas"
)

// TestNoDrift checks that the embedded files are what the generator writes from
// the current types (PROTOCOL.md §4).
func TestNoDrift(t *testing.T) {
	files, err := generate("github.com/parley-asp/parley/schemas/gen", "../../performatives")
	if err != nil {
		t.Fatal(err)
	}
	embedded := map[string]bool{}
	for _, name := range schemas.Names() {
		text, _ := schemas.Get(name)
		embedded[string(text)] = true
	}
	if len(files) != len(embedded) {
		t.Errorf("%d files generated, %d embedded", len(files), len(embedded))
	}
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join("..", name))
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
