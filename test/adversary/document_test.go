package adversary

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/parley-asp/parley/test/testkit"
)

var (
	named    = regexp.MustCompile("`((?:Test|Benchmark)[A-Za-z]+)`")
	declared = regexp.MustCompile(`(?m)^func ((?:Test|Benchmark)[A-Za-z]+)\(`)
)

// TestDocument: the tests that docs/SECURITY.md names are there, and it names all of these.
func TestDocument(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/SECURITY.md")
	testkit.Must(t, err)
	there := map[string]string{}
	testkit.Must(t, filepath.WalkDir("../..", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		for _, name := range declared.FindAllSubmatch(source, -1) {
			there[string(name[1])] = path
		}
		return err
	}))
	names := map[string]bool{"TestDocument": true}
	for _, name := range named.FindAllSubmatch(text, -1) {
		names[string(name[1])] = true
		if there[string(name[1])] == "" {
			t.Errorf("docs/SECURITY.md names %s, which is not there", name[1])
		}
	}
	ours, err := filepath.Glob("*_test.go")
	testkit.Must(t, err)
	for _, file := range ours {
		source, err := os.ReadFile(file)
		testkit.Must(t, err)
		for _, name := range declared.FindAllSubmatch(source, -1) {
			if !names[string(name[1])] {
				t.Errorf("docs/SECURITY.md does not name %s of %s", name[1], file)
			}
		}
	}
}
