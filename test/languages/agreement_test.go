//go:build languages

package languages

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestAgreementVectors: a program in Python accepts the vectors of session/agreement/, and none that was changed.
func TestAgreementVectors(t *testing.T) {
	t.Parallel()
	check := func(file string) ([]byte, error) {
		return exec.CommandContext(t.Context(), filepath.Join(*installed, "python", "bin", "python"), "agreement.py", file).CombinedOutput()
	}
	vectors, err := filepath.Glob(filepath.Join("..", "..", "session", "agreement", "testdata", "*.json"))
	if err != nil || len(vectors) < 2 {
		t.Fatalf("%d vectors, %v", len(vectors), err)
	}
	for _, vector := range vectors {
		if out, err := check(vector); err != nil {
			t.Errorf("%s: %v: %s", vector, err, out)
		}
		data, err := os.ReadFile(vector)
		if err != nil {
			t.Fatal(err)
		}
		for _, change := range [][2]string{{`"0.0040"`, `"0.0041"`}, {`"category":"pricing","effective_from"`, `"category":"pricinG","effective_from"`}, {`"signatures":{"did:web:acme.com:procurement:alpha":"o`, `"signatures":{"did:web:acme.com:procurement:alpha":"p`}} {
			changed := bytes.Replace(data, []byte(change[0]), []byte(change[1]), 1)
			file := filepath.Join(t.TempDir(), "changed.json")
			if err := os.WriteFile(file, changed, 0o600); err != nil {
				t.Fatal(err)
			}
			if out, err := check(file); err == nil || bytes.Equal(changed, data) {
				t.Errorf("%s with %s: %s", vector, change[1], out)
			}
		}
	}
}
