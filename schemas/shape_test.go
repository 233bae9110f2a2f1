package schemas

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/internal/ijson"
	"github.com/parley-asp/parley/performatives"
)

// FuzzShape compares shapes with the library. What a shape accepts is valid, and what
// is valid is accepted if it is plainly canonical, has no escape, and has no ruling's
// authority, whose schema says more than a shape can.
func FuzzShape(f *testing.F) {
	acts := performatives.All()
	for i, act := range acts {
		for _, body := range bodies(f, act) {
			f.Add(uint8(i), []byte(body))
		}
	}
	f.Add(uint8(0), []byte(`{"proposalId":"p","subject":"s","terms":{"maxDuration":1.5},"type":"session-invitation"}`))
	f.Add(uint8(4), []byte(`{"data":{"decision":"a"},"type":"resolution"}`))
	f.Add(uint8(4), []byte(`{"data":"\n","informType":"resolution","type":"fact"}`))
	f.Add(uint8(8), []byte(`{"authority":"full","maxDepth":3.000001,"scope":"é","targetAgent":"agent://a.b/c"}`))
	f.Fuzz(func(t *testing.T, i uint8, body []byte) {
		act := acts[int(i)%len(acts)]
		taken, faults := fits(act, body), byLibrary(act, body)
		if taken && faults != nil {
			t.Fatalf("%s %s is taken; the library says %+v", act, body, faults)
		}
		if !taken && faults == nil && ijson.PlainlyCanonical(body) && !strings.Contains(string(body), `\`) && !strings.Contains(string(body), `"authority"`) {
			t.Fatalf("%s %s is not taken, and the library finds no fault", act, body)
		}
	})
}

// bodies are the valid and invalid bodies of the fixtures in canonical form.
func bodies(t testing.TB, act performatives.Performative) (all []jsontext.Value) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("testdata", strings.ToLower(act.String()), "*.json"))
	if err != nil || len(paths) < 4 {
		t.Fatal(act, paths, err)
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(filepath.Base(path), "invalid") {
			var fixture struct{ Body json.RawMessage }
			if err := json.Unmarshal(data, &fixture); err != nil {
				t.Fatal(err)
			}
			data = fixture.Body
		}
		if canonical, err := performatives.Canonical(data); err == nil {
			all = append(all, canonical)
		}
	}
	return all
}

// Shape and library agree on the fixtures, and shapes accept most of the valid ones.
func TestShapes(t *testing.T) {
	t.Parallel()
	for _, act := range performatives.All() {
		taken, good := 0, 0
		for _, body := range bodies(t, act) {
			fit, faults := fits(act, body), byLibrary(act, body)
			if fit && faults != nil {
				t.Errorf("%s %s: %+v", act, body, faults)
			}
			if fit {
				taken++
			}
			if faults == nil {
				good++
			}
		}
		if taken == 0 || 2*taken < good {
			t.Errorf("%s: of %d good bodies %d are taken", act, good, taken)
		}
	}
}

// A schema with an unknown keyword has no shape.
func TestShapesAreModest(t *testing.T) {
	t.Parallel()
	for _, schema := range []string{
		`false`, `{"not":{}}`, `{"type":["string","null"]}`, `{"type":"null"}`, `{"enum":[1]}`, `{"const":"\""}`, `{"format":"uri"}`,
		`{"minimum":0.1234567890123456}`, `{"maxItems":1}`, `{"items":false}`, `{"anyOf":[{"not":{}}]}`, `{"minLength":1.5}`, `[]`,
	} {
		text, err := decode(jsontext.Value(schema))
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := shapeOf(text); ok {
			t.Errorf("%s is taken for something else", schema)
		}
	}
	for _, act := range []performatives.Performative{performatives.Unknown, performatives.Acts, performatives.Acts + 1} {
		if fits(act, jsontext.Value(`{}`)) {
			t.Errorf("%d is no act", act)
		}
	}
}
