package performatives

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"
)

// TestIJSON is PROTOCOL.md §3: I-JSON, no duplicate keys, valid UTF-8, numbers
// that survive a double. An accepted value stands with its canonical form.
func TestIJSON(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`{}`: `{}`, `"a"`: `"a"`, `true`: `true`, `null`: `null`,
		`{"b":1,"a":2}`: `{"a":2,"b":1}`, `{"a":1,"A":2}`: `{"A":2,"a":1}`,
		`[{"a":1},{"a":1}]`: `[{"a":1},{"a":1}]`,

		`0.1`: `0.1`, `1.0`: `1`, `1e3`: `1000`, `-0`: `0`, `-0.0`: `0`, `0e400`: `0`, `1E+2`: `100`, `1.50`: `1.5`,
		`9007199254740992`: `9007199254740992`, `9007199254740991`: `9007199254740991`, `-9007199254740991`: `-9007199254740991`,
		`1e21`: `1e+21`, `1e20`: `100000000000000000000`, `100000000000000000000`: `100000000000000000000`,
		`0.000001`: `0.000001`, `0.0000001`: `1e-7`, `1e-7`: `1e-7`, `5e-324`: `5e-324`,
		`1.7976931348623157e308`: `1.7976931348623157e+308`, `333333333.3333333`: `333333333.3333333`,

		`"\u0041\/\u20ac"`: `"A/€"`, `"\ud83d\ude00"`: `"😀"`, `"\u000a\u0008\u001f\u007f"`: "\"\\n\\b\\u001f\u007f\"",
		`"<>&"`: `"<>&"`, "\"\u2028\"": "\"\u2028\"", `"\u0000"`: `"\u0000"`,
	} {
		got, err := Canonical([]byte(in))
		if err != nil || string(got) != want {
			t.Errorf("%s: %s, %v; want %s", in, got, err, want)
		}
	}
	for name, tt := range map[string]struct{ in, path, why string }{
		"nothing":            {"", "", "ends early"},
		"only space":         {" \n", "", "ends early"},
		"BOM":                {"\ufeff{}", "", "well-formed"},
		"ends early":         {`{"a":`, "", "ends early"},
		"in a string":        {`{"a":"b`, "", ""},
		"two values":         {`{}{}`, "", "more than one"},
		"trailing text":      {`{} x`, "", "more than one"},
		"trailing comma":     {`[1,]`, "", ""},
		"trailing NUL":       {"{}\x00", "", "more than one"},
		"comment":            {`{/**/}`, "", ""},
		"single quotes":      {`{'a':1}`, "", ""},
		"bare name":          {`{a:1}`, "", ""},
		"leading zero":       {`01`, "", ""},
		"plus":               {`+1`, "", ""},
		"no fraction":        {`1.`, "", ""},
		"NaN":                {`NaN`, "", ""},
		"control in string":  {"\"\n\"", "", ""},
		"bad escape":         {`"\x"`, "", ""},
		"key twice":          {`{"a":1,"a":1}`, "/a", "twice"},
		"key twice, escaped": {`{"a":1,"\u0061":2}`, "/a", "twice"},
		"key twice, deep":    {`{"x":[0,{"y":{"k":1,"z":2,"k":3}}]}`, "/x/1/y/k", "twice"},
		"empty key twice":    {`{"":1,"":1}`, "/", "twice"},
		"lone high":          {`{"a":"\ud800"}`, "/a", "UTF-8"},
		"lone low":           {`{"a":"\udc00"}`, "/a", "UTF-8"},
		"pair the wrong way": {`"\udc00\ud800"`, "", "UTF-8"},
		"lone in a key":      {`{"\ud800":1}`, "", "UTF-8"},
		"invalid UTF-8":      {"\"\xff\"", "", "UTF-8"},
		"overlong UTF-8":     {"\"\xc0\xaf\"", "", "UTF-8"},
		"surrogate in UTF-8": {"\"\xed\xa0\x80\"", "", "UTF-8"},
		"2^53+1":             {`{"a":[9007199254740993]}`, "/a/0", "double"},
		"too large":          {`1e400`, "", "double"},
		"too large, minus":   {`-1e400`, "", "double"},
		"too small":          {`1e-400`, "", "double"},
		"too many digits":    {`0.1234567890123456789`, "", "double"},
		"2^60 in full":       {`1152921504606846976`, "", "double"}, // other programs write ...847000
		"uint64":             {`18446744073709551615`, "", "double"},
		"huge exponent":      {`1e99999999999999999999`, "", "double"},
	} {
		_, err := Canonical([]byte(tt.in))
		if name == "2^53+1" || tt.path != "" {
			wantMalformed(t, err, tt.path)
		}
		var m *Malformed
		if !errors.As(err, &m) || !strings.Contains(m.Why, tt.why) {
			t.Errorf("%s: %v; want %q", name, err, tt.why)
		}
	}
}

// TestDepth is PROTOCOL.md §3: nesting at most 64.
func TestDepth(t *testing.T) {
	t.Parallel()
	for _, pair := range [][3]string{{"[", "", "]"}, {`{"a":`, "1", "}"}} {
		nest := func(n int) []byte {
			return []byte(strings.Repeat(pair[0], n) + pair[1] + strings.Repeat(pair[2], n))
		}
		if _, err := Canonical(nest(MaxDepth)); err != nil {
			t.Errorf("64 of %s: %v", pair[0], err)
		}
		for _, n := range []int{MaxDepth + 1, 20000} {
			if _, err := Canonical(nest(n)); err == nil || !strings.Contains(err.Error(), "deeper than 64") {
				t.Errorf("%d of %s: %v", n, pair[0], err)
			}
		}
	}
	// The envelope itself is two of them.
	body := func(n int) string {
		return strings.Replace(bare, `"s"}`, `"s","data":`+strings.Repeat("[", n)+strings.Repeat("]", n)+`}`, 1)
	}
	if _, err := Read([]byte(body(MaxDepth - 3))); err != nil {
		t.Error(err)
	}
	if _, err := Read([]byte(body(MaxDepth - 2))); err == nil {
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

// TestRFC8785Numbers are the samples of RFC 8785, appendix B: a double's bits
// and how it is written.
func TestRFC8785Numbers(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		bits uint64
		want string
	}{
		{0x0000000000000000, "0"},
		{0x8000000000000000, "0"},
		{0x0000000000000001, "5e-324"},
		{0x8000000000000001, "-5e-324"},
		{0x7fefffffffffffff, "1.7976931348623157e+308"},
		{0xffefffffffffffff, "-1.7976931348623157e+308"},
		{0x4340000000000000, "9007199254740992"},
		{0xc340000000000000, "-9007199254740992"},
		{0x4430000000000000, "295147905179352830000"},
		{0x44b52d02c7e14af5, "9.999999999999997e+22"},
		{0x44b52d02c7e14af6, "1e+23"},
		{0x44b52d02c7e14af7, "1.0000000000000001e+23"},
		{0x444b1ae4d6e2ef4e, "999999999999999700000"},
		{0x444b1ae4d6e2ef4f, "999999999999999900000"},
		{0x444b1ae4d6e2ef50, "1e+21"},
		{0x3eb0c6f7a0b5ed8c, "9.999999999999997e-7"},
		{0x3eb0c6f7a0b5ed8d, "0.000001"},
		{0x41b3de4355555553, "333333333.3333332"},
		{0x41b3de4355555554, "333333333.33333325"},
		{0x41b3de4355555555, "333333333.3333333"},
		{0x41b3de4355555556, "333333333.3333334"},
		{0x41b3de4355555557, "333333333.33333343"},
		{0xbecbf647612f3696, "-0.0000033333333333333333"},
		{0x43143ff3c1cb0959, "1424953923781206.2"},
	} {
		f := math.Float64frombits(tt.bits)
		for _, spelled := range []string{strconv.FormatFloat(f, 'e', -1, 64), strconv.FormatFloat(f, 'E', -1, 64), tt.want} {
			got, err := Canonical([]byte(spelled))
			if err != nil || string(got) != tt.want {
				t.Errorf("%016x as %s: %s, %v; want %s", tt.bits, spelled, got, err, tt.want)
			}
		}
	}
}

// ecmascript writes a double as ECMA-262's Number::toString does, by its own
// steps: digits d of n places, and where the point falls.
func ecmascript(f float64) string {
	if f == 0 {
		return "0"
	}
	sign := ""
	if f < 0 {
		sign, f = "-", -f
	}
	mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(f, 'e', -1, 64), "e")
	digits := strings.Replace(mantissa, ".", "", 1)
	e, err := strconv.Atoi(exponent)
	if err != nil {
		panic(err)
	}
	k, n := len(digits), e+1
	switch {
	case k <= n && n <= 21:
		return sign + digits + strings.Repeat("0", n-k)
	case 0 < n && n <= 21:
		return sign + digits[:n] + "." + digits[n:]
	case -6 < n && n <= 0:
		return sign + "0." + strings.Repeat("0", -n) + digits
	}
	exp := strconv.Itoa(n - 1)
	if n > 0 {
		exp = "+" + exp
	}
	if k == 1 {
		return sign + digits + "e" + exp
	}
	return sign + digits[:1] + "." + digits[1:] + "e" + exp
}

// TestNumbersAsECMAScript: each double, however spelled, has the one form of
// RFC 8785 §3.2.2.3, and that form survives.
func TestNumbersAsECMAScript(t *testing.T) {
	t.Parallel()
	anyDouble := rapid.Custom(func(t *rapid.T) float64 {
		raw := rapid.SliceOfN(rapid.Byte(), 8, 8).Draw(t, "bits")
		if f := math.Float64frombits(binary.LittleEndian.Uint64(raw)); !math.IsNaN(f) && !math.IsInf(f, 0) {
			return f
		}
		return 0
	})
	whole := rapid.Map(rapid.Int64(), func(i int64) float64 { return float64(i) })
	small := rapid.Map(rapid.IntRange(-100000, 100000), func(i int) float64 { return float64(i) / 1000 })
	rapid.Check(t, func(t *rapid.T) {
		f := rapid.OneOf(anyDouble, whole, small).Draw(t, "double")
		want := ecmascript(f)
		for _, spelled := range []string{strconv.FormatFloat(f, 'e', -1, 64), strconv.FormatFloat(f, 'f', -1, 64), want} {
			got, err := Canonical([]byte(spelled))
			if err != nil || string(got) != want {
				t.Fatalf("%s: %s, %v; want %s", spelled, got, err, want)
			}
		}
	})
}

// TestKeyOrder is RFC 8785 §3.2.3: keys stand in the order of their UTF-16
// units, in which a character outside the BMP comes before U+FB33.
func TestKeyOrder(t *testing.T) {
	t.Parallel()
	got, err := Canonical([]byte(`{
		"\u20ac": "Euro Sign", "\r": "Carriage Return", "\ufb33": "Hebrew Letter Dalet With Dagesh", "1": "One",
		"\ud83d\ude00": "Emoji: Grinning Face", "\u0080": "Control", "\u00f6": "Latin Small Letter O With Diaeresis"}`))
	want := "{\"\\r\":\"Carriage Return\",\"1\":\"One\",\"\u0080\":\"Control\",\"ö\":\"Latin Small Letter O With Diaeresis\"," +
		"\"€\":\"Euro Sign\",\"😀\":\"Emoji: Grinning Face\",\"\ufb33\":\"Hebrew Letter Dalet With Dagesh\"}"
	if err != nil || string(got) != want {
		t.Errorf("%s, %v\nwant %s", got, err, want)
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
