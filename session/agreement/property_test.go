package agreement_test

import (
	"bytes"
	"maps"
	"slices"
	"testing"

	"github.com/go-json-experiment/json"
	"pgregory.net/rapid"

	"github.com/parley-asp/parley/session/agreement"
)

// anyTerms are terms of all shapes, with names that need escapes.
func anyTerms() *rapid.Generator[map[string]any] {
	name := rapid.StringMatching(`[a-z"/~ä]{1,6}`)
	value := rapid.OneOf(
		rapid.Map(rapid.IntRange(-1<<53+1, 1<<53-1), func(n int) any { return n }),
		rapid.Map(rapid.StringMatching(`[ -~äß😀]{0,12}`), func(s string) any { return s }),
		rapid.Map(rapid.SliceOfN(rapid.Bool(), 0, 3), func(a []bool) any { return a }),
		rapid.Map(rapid.MapOfN(name, rapid.Bool(), 0, 3), func(m map[string]bool) any { return m }),
		rapid.Just[any](nil),
	)
	return rapid.MapOfN(name, value, 1, 8)
}

// TestAnyTerms: whatever the terms, any of them may be taken out and the hash holds, and
// any byte that is changed is found, and its place named.
func TestAnyTerms(t *testing.T) {
	t.Parallel()
	trust := agreement.Trust{Broker: signerOf(t, "broker").Key()}
	rapid.Check(t, func(r *rapid.T) {
		terms := anyTerms().Draw(r, "terms")
		data, err := json.Marshal(terms)
		if err != nil {
			r.Fatal(err)
		}
		d := agreedOn(t, string(data))
		names := slices.Sorted(maps.Keys(terms))
		keep := rapid.SliceOfDistinct(rapid.SampledFrom(names), rapid.ID[string]).Draw(r, "keep")
		for _, kept := range []agreement.Document{d, d.Redact(keep...)} {
			whole := bytesOf(t, kept)
			if report := agreement.Verify(whole, trust); len(report.Faults) > 0 || report.Document.Hash != d.Hash {
				r.Fatalf("%v", report.Faults)
			}
			i := rapid.IntRange(0, len(whole)-1).Draw(r, "byte")
			keys := bytes.Index(whole, []byte(`"keys":{`))
			if kept.Evidence.Offer == nil && i >= keys && i < keys+bytes.IndexByte(whole[keys:], '}') {
				continue // nothing is left that these keys have signed
			}
			changed := bytes.Clone(whole)
			changed[i] ^= rapid.ByteRange(1, 255).Draw(r, "change")
			report := agreement.Verify(changed, trust)
			if len(report.Faults) == 0 {
				r.Fatalf("byte %d can be changed: …%s…", i, changed[max(0, i-20):min(len(changed), i+20)])
			}
			for _, f := range report.Faults {
				if f.Why == "" || f.Member != "" && f.Member[0] != '/' {
					r.Errorf("a fault without a place: %v", f)
				}
			}
		}
	})
}
