package performatives

import (
	"encoding/hex"
	"math"
	"os"
	"strconv"
	"testing"

	"github.com/go-json-experiment/json"
)

// testdata/numbers.json has doubles (IEEE 754, big endian) with their RFC 8785 form, which any
// library of RFC 8785 writes too, and a JSON text of each that is accepted; and numbers that
// do not survive a double (PROTOCOL.md §3).
func TestNumberVectors(t *testing.T) {
	data, err := os.ReadFile("testdata/numbers.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors struct {
		Canonical []struct{ JSON, Double, Canonical string } `json:"canonical"`
		Refused   []string                                   `json:"refused"`
	}
	if err := json.Unmarshal(data, &vectors, json.MatchCaseInsensitiveNames(true)); err != nil {
		t.Fatal(err)
	}
	if len(vectors.Canonical) < 20 || len(vectors.Refused) < 5 {
		t.Fatalf("%d and %d vectors", len(vectors.Canonical), len(vectors.Refused))
	}
	for _, v := range vectors.Canonical {
		bits, err := hex.DecodeString(v.Double)
		if err != nil || len(bits) != 8 {
			t.Fatalf("%s: %v", v.Double, err)
		}
		var n uint64
		for _, b := range bits {
			n = n<<8 | uint64(b)
		}
		if f, err := strconv.ParseFloat(v.JSON, 64); err != nil || math.Float64bits(f) != n {
			t.Errorf("%s is %v, not the double %s", v.JSON, f, v.Double)
		}
		for _, text := range []string{v.JSON, v.Canonical} {
			if got, err := Canonical([]byte(text)); err != nil || string(got) != v.Canonical {
				t.Errorf("%s: %s, %v, want %s", text, got, err, v.Canonical)
			}
		}
	}
	for _, text := range vectors.Refused {
		if got, err := Canonical([]byte(text)); err == nil {
			t.Errorf("%s is accepted as %s", text, got)
		}
	}
}
