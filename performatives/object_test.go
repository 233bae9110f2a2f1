package performatives

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"

	"github.com/parley-asp/parley/internal/ijson"
)

// TestDepth is PROTOCOL.md §3: nesting at most 64. The envelope itself is two of them.
func TestDepth(t *testing.T) {
	t.Parallel()
	body := func(n int) string {
		return strings.Replace(bare, `"s"}`, `"s","data":`+strings.Repeat("[", n)+strings.Repeat("]", n)+`}`, 1)
	}
	if _, err := Read([]byte(body(ijson.MaxDepth - 3))); err != nil {
		t.Error(err)
	}
	if _, err := Read([]byte(body(ijson.MaxDepth - 2))); err == nil {
		t.Error("65 levels were read")
	}
}

// TestSize is PROTOCOL.md §3: at most 256 KiB, of what is sent as well as of
// its canonical form, which is what is kept and delivered.
func TestSize(t *testing.T) {
	t.Parallel()
	pad := func(n int) []byte { return []byte(strings.Replace(bare, `"s"}`, `"`+strings.Repeat("s", n)+`"}`, 1)) }
	room := MaxEnvelope - len(pad(0))
	if _, err := Read(pad(room)); err != nil {
		t.Errorf("%d bytes: %v", len(pad(room)), err)
	}
	if _, err := Read(pad(room + 1)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("%d bytes: %v", MaxEnvelope+1, err)
	}
	if _, err := Read([]byte(bare + strings.Repeat(" ", MaxEnvelope))); !errors.Is(err, ErrTooLarge) {
		t.Errorf("white space counts: %v", err)
	}
	// 1e20 is four bytes, and 21 in RFC 8785.
	grows := strings.Replace(bare, `"s"}`, `"s","data":[1e20`+strings.Repeat(",1e20", 40000)+`]}`, 1)
	if _, err := Read([]byte(grows)); len(grows) > MaxEnvelope || !errors.Is(err, ErrTooLarge) {
		t.Errorf("%d bytes that grow: %v", len(grows), err)
	}
	if _, err := Sign(pad(room), testKey(t, "alpha")); !errors.Is(err, ErrTooLarge) {
		t.Errorf("what is too large once it is signed: %v", err)
	}
}

// TestErrorsAreShort: what a sender wrote comes back cut.
func TestErrorsAreShort(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 5000)
	for _, in := range []string{
		`{"` + long + `":{"a":1,"a":2}}`,
		strings.Replace(envelope, `"ACCEPT"`, `"`+long+`"`, 1),
	} {
		if _, err := Read([]byte(in)); err == nil || len(err.Error()) > 600 {
			t.Errorf("%d bytes of error", len(err.Error()))
		}
	}
}

func utf16Compare(a, b member) int {
	name := func(m member) []uint16 { return utf16.Encode([]rune(text(jsontext.Value(m.text[:m.name])))) }
	return slices.Compare(name(a), name(b))
}

// TestDocuments: an object that members were put into and taken out of is what
// it would be if it were made canonical as a whole.
func TestDocuments(t *testing.T) {
	t.Parallel()
	names := rapid.OneOf(
		rapid.StringMatching(`[a-z]{0,3}`), rapid.SampledFrom([]string{"", "\ufb33", "😀", "\r", "€", "hash", "hash\u0000", "hasi", "joined", "\"", "\u007f"}), rapid.String())
	rapid.Check(t, func(t *rapid.T) {
		members := rapid.MapOf(names, rapid.Int32()).Draw(t, "members")
		raw, err := json.Marshal(members)
		if err != nil {
			t.Fatal(err)
		}
		object, err := Canonical(raw)
		if err != nil {
			t.Fatal(err)
		}
		doc, err := split(nil, object)
		if err != nil {
			t.Fatal(err)
		}
		if !Equal(doc.bytes(), object) {
			t.Fatalf("%s came together as %s", object, doc.bytes())
		}
		if !slices.IsSortedFunc(doc, utf16Compare) {
			t.Fatalf("out of order: %s", object)
		}
		for _, name := range []string{"hash", "receipt", "joined", "a", "zz"} {
			members[name] = 7
			if raw, err = json.Marshal(members); err != nil {
				t.Fatal(err)
			}
			if object, err = Canonical(raw); err != nil {
				t.Fatal(err)
			}
			with := merge{doc.without(name), document{new(texts).field(name, jsontext.Value("7"))}}.appendTo(nil)
			if doc, err = split(nil, with); err != nil || !Equal(with, object) || string(doc.get(name)) != "7" {
				t.Fatalf("with %s: %s, %v; want %s", name, with, err, object)
			}
		}
		less := doc.without("hash", "receipt")
		if less.get("hash") != nil || len(less) != len(doc)-2 || !Equal(merge{less, document{new(texts).field("hash", []byte("7")), new(texts).field("receipt", []byte("7"))}}.appendTo(nil), object) {
			t.Fatalf("without: %s", less.bytes())
		}
	})
}
