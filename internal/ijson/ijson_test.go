package ijson

import (
	"encoding/binary"
	"errors"
	"math"
	"strconv"
	"strings"
	"testing"

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
		m, is := errors.AsType[*Malformed](err)
		if !is || !strings.Contains(m.Why, tt.why) || tt.path != "" && m.Path != tt.path {
			t.Errorf("%s: %v; want %q at %q", name, err, tt.why, tt.path)
		}
	}
}

// TestPlace: a syntax error says in which line and at which character of it. What is well-formed has
// no such place.
func TestPlace(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`{"a" 1}`:                     "not I-JSON: not well-formed JSON, at line 1, column 6",
		"{\"a\": 1,\n \"é\": x}":      "not I-JSON: not well-formed JSON, at line 2, column 7",
		"{\r\n\"a\": 1,\r\n\"a\": 2}": "not I-JSON: a key stands twice, at line 3, column 1",
		"{\n\"a\":":                   "not I-JSON: the JSON ends early, at line 2, column 5",
		"[\n\n\"\xff\"]":              "not I-JSON: the text is not valid UTF-8, at line 3, column 2",
		"{\n\"a\": 1e400}":            "the number is larger or has more digits than a double holds; send it as a string",
	} {
		_, err := Canonical([]byte(in))
		if m, is := errors.AsType[*Malformed](err); !is || m.Why != want {
			t.Errorf("%q: %v; want %s", in, err, want)
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
