package schemas_test

import (
	"fmt"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/schemas"
)

// list writes n items, with commas.
func list(n int, item func(i int) string) string {
	items := make([]string, n)
	for i := range items {
		items[i] = item(i)
	}
	return strings.Join(items, ",")
}

func same(s string) func(int) string { return func(int) string { return s } }

// twelves refers to twelve definitions that each refer to twelve.
var twelves = `{` + twelve + `, "allOf": [` + list(12, same(`{"$ref": "#/$defs/b"}`)) + `]}`

var twelve = `"$defs": {"c": {"minItems": 1}, "b": {"allOf": [` + list(12, same(`{"$ref": "#/$defs/c"}`)) + `]}}`

// A schema's complexity is bounded when it is registered, and the refusal says which
// bound it exceeds (PROTOCOL.md §4).
func TestComplexityIsBounded(t *testing.T) {
	var doubling strings.Builder
	for i := range 50 {
		fmt.Fprintf(&doubling, `"d%d": {"anyOf": [{"$ref": "#/$defs/d%d"}, {"$ref": "#/$defs/d%d"}]},`, i, i+1, i+1)
	}
	for _, c := range []struct{ name, schema, want string }{
		{"references to references", `{"$ref": "#/$defs/d0", "$defs": {` + doubling.String() + `"d50": {}}}`, "subschemas for one value, with its references and branches expanded"},
		{"a chain", `{"$defs": {` + list(100, func(i int) string { return fmt.Sprintf(`"d%d": {"$ref": "#/$defs/d%d"}`, i, i+1) }) + `, "d100": {}}, "$ref": "#/$defs/d0"}`, "it has 65 references and branches inside each other for one value, and may have at most 64"},
		{"repetitions", `{"pattern": "` + strings.Repeat(`x{1000}`, 1000) + `"}`, "steps in its patterns, with their repetitions written out, and may have at most 4096"},
		{"nested repetitions", `{"patternProperties": {"((x{10}){10}){10}y{900}[a-z]{900}(z{400}|u{400}){2}": {}}}`, "steps in its patterns"},
		{"long patterns", `{"pattern": "` + strings.Repeat(`\\pL`, 3000) + `"}`, "it has 9000 bytes of patterns, and may have at most 8192"},
		{"patterns where no schema is", `{"$ref": "#/x", "x": {"pattern": "` + strings.Repeat(`x{1000}`, 100) + `"}}`, "steps in its patterns"},
		{"a long name", `{"properties": {"` + strings.Repeat("x", 5000) + `": true}}`, "it has 5010 bytes of names above one value, and may have at most 4096"},
		{"a loop", `{"properties": {"x": {"$ref": "#/$defs/b"}}, "dependentSchemas": {"y": {"$ref": "#/$defs/b"}}, "$defs": {"b": {"$ref": "#"}}}`, "without end"},
		{"what is known only later", `{"$defs": {"a": {"$dynamicAnchor": "x", "items": {"$dynamicRef": "#x"}}}, "$ref": "#/$defs/a"}`, "$dynamicRef"},
		{"the same in 2019-09", `{"$schema": "https://json-schema.org/draft/2019-09/schema", "items": {"$recursiveRef": "#"}}`, "$recursiveRef"},
	} {
		start := time.Now()
		_, err := schemas.CompileTerms("a-v1", jsontext.Value(c.schema))
		if err == nil || !strings.Contains(err.Error(), c.want) || len(err.Error()) > 1000 {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
		if took := time.Since(start); took > 10*time.Second {
			t.Errorf("%s: refused after %v", c.name, took)
		}
	}
}

// The budget ends what no bound on the schema alone can: the terms multiply it.
func TestBudget(t *testing.T) {
	fives := `[` + strings.Repeat(`5,`, 120_000) + `5]`
	for _, c := range []struct{ name, schema, terms string }{
		{"twelve times twelve references to a long list", twelves, fives},
		{"two hundred references to a long list", `{"$defs": {"c": {"minItems": 1}}, "allOf": [` + list(200, same(`{"$ref": "#/$defs/c"}`)) + `]}`, fives},
		{"doubles with each level", `{"properties": {"a": {"allOf": [{"$ref": "#"}, {"$ref": "#"}]}}}`, strings.Repeat(`{"a":`, 60) + `5` + strings.Repeat(`}`, 60)},
		{"patterns on a long text", `{"properties": {"x": {"allOf": [` + list(20, same(`{"pattern": "(x+y?){0,20}z"}`)) + `]}}}`, `{"x": "` + strings.Repeat("x", 200_000) + `"}`},
		{"many forms of many items", `{"items": {"anyOf": [` + list(900, same(`{"type": "string"}`)) + `]}}`, fives},
		{"an enum that every item repeats", `{"items": {"enum": ["` + strings.Repeat("x", 50_000) + `"]}}`, fives},
		{"a long name above many items", `{"additionalProperties": {"items": {"type": "string"}}}`, `{"` + strings.Repeat("x", 100_000) + `": [` + strings.Repeat(`5,`, 50_000) + `5]}`},
		{"lists whose hashes are equal", `{"uniqueItems": true}`, `[` + list(5000, func(i int) string {
			parts := "x"
			for bit := range 13 {
				parts += map[bool]string{true: `","`, false: `\u0003`}[i>>bit&1 == 1] + "x"
			}
			return `["` + parts + `"]`
		}) + `]`},
	} {
		schema := compile(t, c.schema)
		faults := schema.Validate(jsontext.Value(c.terms))
		if len(faults) != 1 || faults[0].Path != "/terms" || faults[0].Rule != "budget" || !strings.Contains(faults[0].Message, "more than 131072 steps") {
			t.Errorf("%s: %+v", c.name, faults)
		}
	}
}

// What large offers cost is within the budget.
func TestLargeOffers(t *testing.T) {
	for _, c := range []struct{ name, schema, terms string }{
		{"items", `{"items": {"type": "object", "required": ["sku"], "properties": {"sku": {"type": "string"}, "amount": {"type": "integer", "minimum": 1}}}}`, `[` + strings.Repeat(`{"sku":"a","amount":5},`, 10_000) + `{"sku":"b"}]`},
		{"numbers", `{"items": {"type": "number"}}`, `[` + strings.Repeat(`5,`, 100_000) + `5]`},
		{"a text", `{"properties": {"x": {"type": "string", "pattern": "^[a-z ]*$"}}}`, `{"x": "` + strings.Repeat("some text ", 24_000) + `"}`},
		{"unique items", `{"uniqueItems": true, "items": {"type": "object"}}`, `[` + list(2000, func(i int) string { return fmt.Sprintf(`{"sku":"a%d"}`, i) }) + `]`},
		{"codes and prices", `{"items": {"properties": {"currency": {"enum": [` + list(180, func(i int) string { return fmt.Sprintf(`"C%d"`, i) }) + `]}, "price": {"type": "number", "exclusiveMinimum": 0, "multipleOf": 0.01}}}}`, `[` + strings.Repeat(`{"currency":"C9","price":12.5},`, 7_000) + `{}]`},
	} {
		if faults := compile(t, c.schema).Validate(jsontext.Value(c.terms)); faults != nil {
			t.Errorf("%s: %+v", c.name, faults)
		}
	}
}

// worst are schemas and terms that cost the most of one kind; n is as much of it as
// the budget or an envelope accepts.
var worst = []struct {
	name   string
	n      int
	schema string
	terms  func(n int) string
}{
	{"in place on a list", 3343, twelves, func(n int) string { return `[` + list(n, same("5")) + `]` }},
	{"in place on an object", 3343, twelves, func(n int) string {
		return `{` + list(n, func(i int) string { return fmt.Sprintf(`"%d":5`, i) }) + `}`
	}},
	{"in place on every item", 418, `{` + twelve + `, "items": {"allOf": [` + list(12, same(`{"$ref": "#/$defs/b"}`)) + `]}}`, func(n int) string { return `[` + list(n, same("[]")) + `]` }},
	{"errors of forms", 145, `{"items": {"anyOf": [` + list(900, same(`{"type": "string"}`)) + `]}}`, func(n int) string { return `[` + list(n, same("5")) + `]` }},
	{"errors of many forms", 543, `{"items": {"oneOf": [` + list(60, func(i int) string { return fmt.Sprintf(`{"required":["a","b"],"properties":{"k":{"const":"%d"}}}`, i) }) + `]}}`, func(n int) string { return `[` + list(n, same(`{"k":1}`)) + `]` }},
	{"an enum of texts", 1148, `{"items": {"enum": [` + list(5000, func(i int) string { return fmt.Sprintf(`"%d"`, i) }) + `]}}`, func(n int) string { return `[` + list(n, same(`"x"`)) + `]` }},
	{"an enum of numbers", 14, `{"items": {"enum": [` + list(9000, func(i int) string { return fmt.Sprint(i) }) + `]}}`, func(n int) string { return `[` + list(n, same("-5")) + `]` }},
	{"an enum of lists", 131061, `{"enum": [` + list(500, same(`[1,[2,[3,[4,5]]]]`)) + `]}`, func(n int) string { return `[` + list(n, same("1")) + `]` }},
	{"multiples", 21835, `{"items": {"multipleOf": 0.01, "minimum": 0.5, "maximum": 0.6}}`, func(n int) string { return `[` + list(n, same("0.123456789")) + `]` }},
	{"large exponents", 453, `{"items": {"multipleOf": 1e-300, "type": "integer"}}`, func(n int) string { return `[` + list(n, same("1.5e300")) + `]` }},
	{"patterns", 4, `{"items": {"allOf": [` + list(30, same(`{"pattern": "^(x+x+)+y[a-z]{50}"}`)) + `]}}`, func(n int) string { return `[` + list(n, same(`"`+strings.Repeat("x", 2000)+`"`)) + `]` }},
	{"a pattern on a text", 9310, `{"items": {"pattern": "(x+y?){0,400}z"}}`, func(n int) string { return `["` + strings.Repeat("x", n) + `"]` }},
	{"patterns of names", 931, `{"patternProperties": {` + list(100, func(i int) string { return fmt.Sprintf(`"^(x|y)*%d$":{}`, i) }) + `}, "additionalProperties": false}`, func(n int) string {
		return `{` + list(n, func(i int) string { return fmt.Sprintf(`"xxxxxxxx%d":5`, i) }) + `}`
	}},
	{"long names", 832, `{"additionalProperties": {"items": {"type": "string"}}}`, func(n int) string {
		return `{"` + strings.Repeat("x", 20_000) + `":[` + list(n, same("5")) + `]}`
	}},
	{"long keywords", 2700, `{"properties": {"` + strings.Repeat("x", 4_000) + `": {"items": {"type": "string"}}}}`, func(n int) string {
		return `{"` + strings.Repeat("x", 4_000) + `":[` + list(n, same("5")) + `]}`
	}},
	{"deep", 2, `{"items": {"$ref": "#"}, "properties": {"a": {"allOf": [{"$ref": "#"}]}}, "minItems": 1}`, func(n int) string {
		return `[` + list(n, same(strings.Repeat(`{"a":`, 60)+`[]`+strings.Repeat(`}`, 60))) + `]`
	}},
	{"missing fields", 244, `{"items": {"required": [` + list(500, func(i int) string { return fmt.Sprintf(`"field-%d"`, i) }) + `]}}`, func(n int) string { return `[` + list(n, same("{}")) + `]` }},
	{"unexpected fields", 13100, `{"items": {"additionalProperties": false}}`, func(n int) string { return `[` + list(n, same(`{"a":1,"b":2,"c":3}`)) + `]` }},
	{"items with equal hashes", 1987, `{"uniqueItems": true}`, func(n int) string {
		return `[` + list(n, func(i int) string {
			parts := "x"
			for bit := range 13 {
				parts += map[bool]string{true: `","`, false: `\u0003`}[i>>bit&1 == 1] + "x"
			}
			return `["` + parts + `"]`
		}) + `]`
	}},
	{"expressions as values", 18700, `{"items": {"format": "regex"}}`, func(n int) string { return `[` + list(n, same(`"(x{100}){9}"`)) + `]` }},
	{"content", 23800, `{"$schema": "http://json-schema.org/draft-07/schema#", "items": {"contentMediaType": "application/json", "contentEncoding": "base64"}}`, func(n int) string { return `[` + list(n, same(`"WzEsMl0="`)) + `]` }},
	{"not evaluated", 5792, `{"allOf": [` + list(20, same(`{"unevaluatedProperties": {"type": "string"}}`)) + `]}`, func(n int) string {
		return `{` + list(n, func(i int) string { return fmt.Sprintf(`"%d":5`, i) }) + `}`
	}},
}

// TestWorstAccepted reports what the most expensive checks cost that are still accepted.
// Run it with -v to see the figures.
func TestWorstAccepted(t *testing.T) {
	for _, c := range worst {
		terms := c.terms(c.n)
		v := compile(t, c.schema).Begin(jsontext.Value(terms))
		if v.Work() == 0 || len(terms) > performatives.MaxEnvelope {
			t.Errorf("%s: %d are not accepted", c.name, c.n)
			continue
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		start := cpu(t)
		faults := v.Faults()
		took := cpu(t) - start
		runtime.ReadMemStats(&after)
		allocated := (after.TotalAlloc - before.TotalAlloc) >> 20
		t.Logf("%-24s %6d units, %5v, %4d MiB allocated, %2d faults", c.name, v.Work(), took.Round(time.Millisecond), allocated, len(faults))
		if took > 10*time.Second || allocated > 1<<10 {
			t.Errorf("%s: %v and %d MiB are accepted", c.name, took, allocated)
		}
	}
}

// TestWorstCompiled does the same for schemas that are accepted.
func TestWorstCompiled(t *testing.T) {
	for _, c := range []struct{ name, schema string }{
		{"subschemas", `{"properties": {` + list(1020, func(i int) string { return fmt.Sprintf(`"p%d": {}`, i) }) + `}}`},
		{"anchors", `{"$defs": {"a": {"$anchor": "z"}}, "allOf": [` + list(500, same(`{"$ref": "#z"}`)) + `]}`},
		{"nested", strings.Repeat(`{"items": `, 58) + `{"allOf": [` + list(480, same(`{"not": {}}`)) + `]}` + strings.Repeat(`}`, 58)},
		{"a long name above many", `{"properties": {"` + strings.Repeat("x", 4_000) + `": {"anyOf": [` + list(1000, same(`{"minimum": 1}`)) + `]}}}`},
		{"patterns", `{"anyOf": [` + list(13, same(`{"pattern": "^(?i)[\\pL]{10}(x{20}|y)*$"}`)) + `]}`},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		start := cpu(t)
		compile(t, c.schema)
		took := cpu(t) - start
		runtime.ReadMemStats(&after)
		allocated := (after.TotalAlloc - before.TotalAlloc) >> 20
		t.Logf("%-24s %5d bytes, %5v, %4d MiB allocated", c.name, len(c.schema), took.Round(time.Millisecond), allocated)
		if took > 10*time.Second || allocated > 512 {
			t.Errorf("%s: %v and %d MiB are accepted", c.name, took, allocated)
		}
	}
}

// cpu is the processor time that the test has used, which a busy machine does not change.
func cpu(t *testing.T) time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		t.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
