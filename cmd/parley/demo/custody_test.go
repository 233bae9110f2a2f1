package demo

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api/render"
	"github.com/parley-asp/parley/session/evidence"
	"github.com/parley-asp/parley/test/testkit"
)

// custody asserts that evidence of a transcript, whole or redacted, says whose keys the broker holds.
func custody(t *testing.T, face, file string) {
	t.Helper()
	data, err := os.ReadFile(file)
	testkit.Must(t, err)
	var lines []jsontext.Value
	for line := range bytes.SplitSeq(bytes.TrimSpace(data), []byte("\n")) {
		lines = append(lines, line)
	}
	whole, err := evidence.Make(lines, nil)
	testkit.Must(t, err)
	redacted, err := whole.Redact("obligations")
	testkit.Must(t, err)
	for _, b := range []evidence.Bundle{whole, redacted} {
		data, err := json.Marshal(b, json.Deterministic(true))
		testkit.Must(t, err)
		r := evidence.Verify(data, evidence.Trust{})
		said := render.Evidence(r, render.Style{})
		if got := strings.Contains(said, "the broker holds the key of agent://"); len(r.Faults) > 0 || got != (face == HTTP) {
			t.Errorf("over %s it says, with faults %v:\n%s", face, r.Faults, said)
		}
	}
}
