package interop

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestReceipts: scitt-cose accepts the COSE Receipts of a bundle of evidence, and none with a byte
// changed, of another leaf, or by another key.
func TestReceipts(t *testing.T) {
	if *python == "" {
		t.Fatal("no -python: .ci/interop installs it")
	}
	b := serve(t)
	for n := range 9 {
		id := b.deal(n)
		file := filepath.Join(t.TempDir(), "evidence.json")
		b.parley("evidence", "export", id, "-o", file, "--as", "agent://acme.com/buyer-0")
		out, err := exec.CommandContext(t.Context(), *python, "receipts.py", file).CombinedOutput()
		if err != nil || !strings.HasPrefix(string(out), "2 receipts") {
			t.Fatalf("deal %d: %v: %s", n, err, out)
		}
	}
}
