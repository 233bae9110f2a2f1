package inbox_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var imported = regexp.MustCompile(`(?m)^(?:import|export) .*from '\./([a-z]+)\.js';`)

// TestModules: no modules of the pages import each other, by whatever detour. Where they do, what one
// begins with is not there yet for the other.
func TestModules(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("static/*.js")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	imports := map[string][]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range imported.FindAllStringSubmatch(string(text), -1) {
			name := strings.TrimSuffix(filepath.Base(file), ".js")
			imports[name] = append(imports[name], found[1])
		}
	}
	if !slices.Contains(imports["forms"], "panes") {
		t.Error("the imports of forms.js are not found")
	}
	var visit func(path []string)
	visit = func(path []string) {
		for _, next := range imports[path[len(path)-1]] {
			if slices.Contains(path, next) {
				t.Errorf("%s imports itself: %s", next, strings.Join(append(path, next), ", "))
				continue
			}
			visit(append(slices.Clip(path), next))
		}
	}
	for name := range imports {
		visit([]string{name})
	}
}
