package schemas_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/schemas"
)

// FuzzValidate checks that no body makes Validate panic, and that every body
// without faults decodes into its Go type. Its seeds are the fixtures and
// testdata/fuzz.
func FuzzValidate(f *testing.F) {
	acts := performatives.All()
	for i, act := range acts {
		for _, body := range fixtures(f, act, "valid") {
			f.Add(uint8(i), body)
		}
		for path, data := range fixtures(f, act, "invalid") {
			var fixture invalidFixture
			if err := json.Unmarshal(data, &fixture); err != nil {
				f.Fatalf("%s: %v", path, err)
			}
			f.Add(uint8(i), []byte(fixture.Body))
		}
	}
	f.Fuzz(func(t *testing.T, i uint8, body []byte) {
		act := acts[int(i)%len(acts)]
		readable(t, schemas.Validate(act, body))
		canonical, err := performatives.Canonical(body)
		if err != nil {
			return // the envelope would have been refused
		}
		faults := schemas.Validate(act, canonical)
		readable(t, faults)
		if faults == nil {
			decodes(t, act, canonical)
		}
	})
}

// FuzzTerms checks that no terms schema and no terms cause a panic.
func FuzzTerms(f *testing.F) {
	f.Add([]byte(serviceAgreement), []byte(`{"pricePerMonth": 40, "currency": "EUR", "support": {"plan": "gold"}}`))
	f.Add([]byte(`{"$defs": {"a": {"$dynamicAnchor": "x", "items": {"$dynamicRef": "#x"}}}, "$ref": "#/$defs/a"}`), []byte(`[[[]]]`))
	f.Add([]byte(`{"unevaluatedProperties": false, "patternProperties": {"^a": {"format": "duration"}}}`), []byte(`{"ab": "P1D", "b": 1}`))
	f.Fuzz(func(t *testing.T, schema, terms []byte) {
		compiled, err := schemas.CompileTerms("fuzz-v1", schema)
		if err != nil {
			return
		}
		readable(t, compiled.Validate(terms))
		if !schemas.SameSchema(schema, compiled.Schema()) {
			t.Errorf("%s is not %s", schema, compiled.Schema())
		}
	})
}

// readable fails the test for a fault that is not usable by a person or program.
func readable(t *testing.T, faults []schemas.Fault) {
	t.Helper()
	for _, f := range faults {
		if f.Rule == "" || f.Message == "" || !utf8.ValidString(f.Path+f.Rule+f.Message) ||
			(f.Path != "" && !strings.HasPrefix(f.Path, "/")) || !jsontext.Pointer(f.Path).IsValid() {
			t.Errorf("%+q", f)
		}
	}
}
