package ijson

import (
	"bytes"
	"strings"
	"testing"
)

// FuzzPlainlyCanonical: what the scan takes, the canonicaliser leaves as it is.
func FuzzPlainlyCanonical(f *testing.F) {
	for _, seed := range []string{
		`{"content":{"body":{"subject":"s"}},"sender":{"agentId":"agent://alpha.com/a"},"version":"1.0"}`, `{"a":{"A":[1,-2.5,0.000001,1e3,"\u001f\n\\\"é"],"b":[]},"b":null}`,
		`[true,false,null,{}]`, `-0`, `0.10`, `1.0`, `{"a":1,"a":2}`, `"\u0000\/"`, `123456789012345`, `[1,]`, `{"a"`, `"`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		want, err := canonicalise(data, MaxDepth)
		if PlainlyCanonical(data) && (err != nil || !bytes.Equal(want, data)) {
			t.Fatalf("%q is taken; the canonicaliser makes it %q, %v", data, want, err)
		}
		if got, gotErr := Canonical(data); !bytes.Equal(got, want) || (gotErr == nil) != (err == nil) {
			t.Fatalf("%q: %q, %v; want %q, %v", data, got, gotErr, want, err)
		}
	})
}

// TestPlainlyCanonical: the scan knows what envelopes are made of, and leaves
// alone whatever the canonicaliser would change or refuse.
func TestPlainlyCanonical(t *testing.T) {
	t.Parallel()
	deep := func(n int) string { return strings.Repeat(`[`, n) + strings.Repeat(`]`, n) }
	for _, in := range []string{
		`{}`, `[]`, `""`, `0`, `-1`, `true`, `false`, `null`, `{"":1}`, `{"A":1,"a":{"b":[{},[],""]}}`, `[{"a":1},{"a":1}]`,
		`10.25`, `-0.5`, `0.000001`, `999999999999999`, `"é 😀 <>&/"`, `"\n\t\b\f\r\"\\\u0000\u001f"`, "\"\u007f\u2028\"", deep(MaxDepth),
	} {
		if !PlainlyCanonical([]byte(in)) {
			t.Errorf("%s is canonical", in)
		}
		if got, err := canonicalise([]byte(in), MaxDepth); err != nil || string(got) != in {
			t.Errorf("%s: %s, %v", in, got, err)
		}
	}
	for _, in := range []string{
		``, ` {}`, `{} `, `{}{}`, `{"b":1,"a":2}`, `{"a":1,"a":2}`, `{"é":1}`, `{"\n":1}`, `{"a":1,}`, `{"a" :1}`, `{"a"}`, `{a:1}`, `{1:1}`, `{"a":1`, `{"a`, `{"`, `{`,
		`[1,]`, `[1`, `[1 ,2]`, `[,]`, `-`, `-0`, `01`, `1.`, `.5`, `1.0`, `0.0`, `0.10`, `1e3`, `1E3`, `+1`, `0.0000001`, `1000000000000000`, `12345678.12345678`,
		`"`, `"a`, `"\`, `"\u00`, `"\u000`, `"\u001F"`, `"\u000a"`, `"\u0041"`, `"\/"`, `"\x"`, "\"\n\"", "\"\xff\"", "\"\xed\xa0\x80\"", "\"\xe2\x82\"", `"\ud83d\ude00"`,
		`tru`, `True`, `nul`, `NaN`, "\ufeff{}", "{}\x00", "\x00", deep(MaxDepth + 1),
	} {
		if PlainlyCanonical([]byte(in)) {
			t.Errorf("%q is taken as it is", in)
		}
	}
}
