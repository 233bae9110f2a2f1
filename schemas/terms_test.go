package schemas_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/parley-asp/parley/schemas"
)

const serviceAgreement = `{
	"$schema": "https://json-schema.org/draft/2020-12/schema",
	"$id": "https://example.com/service-agreement",
	"$defs": {"money": {"type": "number", "exclusiveMinimum": 0, "multipleOf": 0.01}},
	"type": "object",
	"required": ["pricePerMonth", "currency"],
	"properties": {
		"pricePerMonth": {"$ref": "#/$defs/money"},
		"setupFee": {"$ref": "#/$defs/money"},
		"currency": {"enum": ["EUR", "USD"]},
		"regions": {"type": "array", "items": {"type": "string"}, "uniqueItems": true, "maxItems": 3, "contains": {"const": "eu"}},
		"support": {"oneOf": [
			{"type": "object", "required": ["plan"], "properties": {"plan": {"const": "gold"}, "hours": {"type": "integer"}}, "additionalProperties": false},
			{"type": "string"}
		]},
		"secret": false
	},
	"dependentRequired": {"setupFee": ["setupDate"]}
}`

func compile(t testing.TB, schema string) *schemas.TermsSchema {
	t.Helper()
	terms, err := schemas.CompileTerms("service-agreement-v1", jsontext.Value(schema))
	if err != nil {
		t.Fatal(err)
	}
	return terms
}

// Terms are validated against the terms schema that they name (PROTOCOL.md §4).
func TestTerms(t *testing.T) {
	schema := compile(t, serviceAgreement)
	if schema.Name() != "service-agreement-v1" || schema.Schema().Kind() != '{' {
		t.Errorf("%s %s", schema.Name(), schema.Schema())
	}
	for terms, want := range map[string][]schemas.Fault{
		`{"pricePerMonth": 40.5, "currency": "EUR", "extra": true}`:                         nil,
		`{"pricePerMonth": 40, "currency": "EUR", "regions": ["eu"], "support": "gold"}`:    nil,
		`{"pricePerMonth": 40, "currency": "EUR", "support": {"plan": "gold", "hours": 5}}`: nil,
		`5`: {{Path: "/terms", Rule: "type", Message: "terms must be an object"}},
		`{`: {{Path: "/terms", Rule: "type", Message: "terms is not JSON"}},
		`{}`: {
			{Path: "/terms/currency", Rule: "required", Message: "terms.currency is required"},
			{Path: "/terms/pricePerMonth", Rule: "required", Message: "terms.pricePerMonth is required"},
		},
		`{"pricePerMonth": 0, "currency": "BTC"}`: {
			{Path: "/terms/currency", Rule: "enum", Message: "terms.currency must be one of EUR, USD"},
			{Path: "/terms/pricePerMonth", Rule: "exclusiveMinimum", Message: "terms.pricePerMonth must be more than 0"},
		},
		`{"pricePerMonth": 0.001, "currency": "EUR", "secret": 1, "setupFee": 5}`: {
			{Path: "/terms/pricePerMonth", Rule: "multipleOf", Message: "terms.pricePerMonth must be a multiple of 0.01"},
			{Path: "/terms/secret", Rule: "schema", Message: "terms.secret is not allowed here"},
			{Path: "/terms/setupDate", Rule: "dependentRequired", Message: "terms.setupDate is required beside setupFee"},
		},
		`{"pricePerMonth": 1, "currency": "EUR", "regions": ["us", "us", 5, "x"]}`: {
			{Path: "/terms/regions", Rule: "maxItems", Message: "terms.regions must have at most 3 items"},
			{Path: "/terms/regions", Rule: "minContains", Message: "terms.regions must have more of the items that its schema asks for"},
			{Path: "/terms/regions", Rule: "uniqueItems", Message: "terms.regions must not have the same item twice"},
			{Path: "/terms/regions/2", Rule: "type", Message: "terms.regions[2] must be a string"},
		},
		`{"pricePerMonth": 1, "currency": "EUR", "support": {"plan": "gold", "a/b~c": 1}}`: {
			{Path: "/terms/support/a~1b~0c", Rule: "additionalProperties", Message: "terms.support.a/b~c is not allowed here"},
		},
		`{"pricePerMonth": 1, "currency": "EUR", "support": 5}`: {
			{Path: "/terms/support", Rule: "oneOf", Message: "terms.support has none of the forms that its schema allows"},
		},
	} {
		if diff := cmp.Diff(want, schema.Validate(jsontext.Value(terms))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", terms, diff)
		}
	}
}

// If a schema has several forms, the faults are those of the closest one.
func TestNearestForm(t *testing.T) {
	schema := compile(t, `{"properties": {"pay": {"anyOf": [
		{"required": ["kind", "iban"], "properties": {"kind": {"const": "bank"}}},
		{"required": ["kind", "card"], "properties": {"kind": {"const": "card"}, "card": {"minLength": 12}}}
	]}, "not": {"not": {"const": 1}}, "one": {"oneOf": [{}, true]}, "any": {"anyOf": [{"required": ["a"]}, {"required": ["b"]}]}}}`)
	for terms, want := range map[string][]schemas.Fault{
		`{"pay": {"kind": "card", "card": "123"}}`: {{Path: "/terms/pay/card", Rule: "minLength", Message: "terms.pay.card must have at least 12 characters"}},
		`{"pay": {}}`: {{Path: "/terms/pay", Rule: "anyOf", Message: "terms.pay has none of the forms that its schema allows"}},
		`{"not": 1}`:  {{Path: "/terms/not", Rule: "not", Message: "terms.not has the form that its schema excludes"}},
		`{"one": 1}`:  {{Path: "/terms/one", Rule: "oneOf", Message: "terms.one must have exactly one of the forms that its schema allows, and has several"}},
		`{"any": {}}`: {{Path: "/terms/any/a", Rule: "required", Message: "terms.any.a or terms.any.b is required"}},
	} {
		if diff := cmp.Diff(want, schema.Validate(jsontext.Value(terms))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", terms, diff)
		}
	}
}

func TestBooleanAndOlderDrafts(t *testing.T) {
	if faults := compile(t, `true`).Validate(jsontext.Value(`[]`)); faults != nil {
		t.Errorf("%+v", faults)
	}
	if faults := compile(t, `false`).Validate(jsontext.Value(`{}`)); len(faults) != 1 || faults[0].Rule != "schema" {
		t.Errorf("%+v", faults)
	}
	old := compile(t, `{"$schema": "http://json-schema.org/draft-07/schema#", "definitions": {"a": {"type": "string"}}, "properties": {"a": {"$ref": "#/definitions/a"}}}`)
	if faults := old.Validate(jsontext.Value(`{"a": 1}`)); len(faults) != 1 || faults[0].Path != "/terms/a" {
		t.Errorf("%+v", faults)
	}
}

func TestRefusedSchemas(t *testing.T) {
	for schema, want := range map[string]string{
		``:                                 "the JSON ends early",
		`{`:                                "the JSON ends early",
		`{} {}`:                            "more than one JSON value",
		`[]`:                               "a JSON Schema is an object, true or false",
		`"x"`:                              "a JSON Schema is an object, true or false",
		`null`:                             "a JSON Schema is an object, true or false",
		`{"a": 1, "a": 2}`:                 "a key stands twice",
		`{"minimum": 1e999}`:               "more digits than a double holds; send it as a string",
		`{"type": "strin"}`:                `at "/type"`,
		`{"required": "a"}`:                `at "/required"`,
		`{"multipleOf": 0}`:                `at "/multipleOf"`,
		`{"pattern": "(?=a)"}`:             "not valid 'regex'",
		`{"patternProperties": {"[": {}}}`: "not valid 'regex'",
		`{"$ref": "#/nowhere"}`:            "not found",
		`{"$ref": "#"}`:                    "infinite loop",
		`{"enum": [1], "$ref": "#/enum"}`:  "it is no JSON Schema",
		`{"$schema": 7}`:                   "$schema",
		`{"$vocabulary": {"https://x.example": true}}`:                           "unsupported vocab",
		`{"$ref": "other.json"}`:                                                 "never fetched",
		`{"$ref": "file:///etc/passwd"}`:                                         "never fetched",
		`{"$ref": "urn:example:a"}`:                                              "never fetched",
		`{"$id": "https://a.example/x/", "$ref": "y"}`:                           "https://a.example/x/y",
		`{"$ref": "https://json-schema.org/draft/2020-12/schema"}`:               "never fetched",
		`{"$id": "https://json-schema.org/draft/2020-12/a", "$ref": "schema"}`:   "never fetched",
		`{"description": "` + strings.Repeat("x", schemas.MaxTermsSchema) + `"}`: "it has 65555 bytes, and may have at most 65536",
		`{"anyOf": [` + strings.Repeat(`{},`, 5000) + `{}]}`:                     "it has 5002 objects and booleans, and may have at most 1024",
		strings.Repeat(`{"not": `, 65) + `{}` + strings.Repeat(`}`, 65):          "nested deeper than 64",
		strings.Repeat(`[`, 30000) + strings.Repeat(`]`, 30000):                  "nested deeper than 64",
	} {
		_, err := schemas.CompileTerms("a-v1", jsontext.Value(schema))
		if err == nil || !strings.Contains(err.Error(), want) || len(err.Error()) > 600 {
			t.Errorf("%.80s: %v, want %q", schema, err, want)
		}
	}
}

// A remote $ref is never fetched (PROTOCOL.md §4).
func TestNothingIsFetched(t *testing.T) {
	var mu sync.Mutex
	var seen []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, r.URL.Path)
		_, _ = w.Write([]byte(`{"type": "string"}`))
	}))
	defer server.Close()
	for _, schema := range []string{
		`{"$ref": "URL/ref"}`,
		`{"$ref": "URL/ref#/$defs/a"}`,
		`{"$dynamicRef": "URL/dynamic#a"}`,
		`{"$schema": "URL/schema"}`,
		`{"$id": "URL/id", "$ref": "other"}`,
		`{"$schema": "https://json-schema.org/draft/2019-09/schema", "$recursiveRef": "URL/recursive"}`,
		`{"properties": {"a": {"items": {"allOf": [{"$ref": "URL/deep"}]}}}}`,
		`{"$defs": {"a": {"$id": "URL/base/", "$ref": "inner"}}, "properties": {"a": {"$ref": "#/$defs/a"}}}`,
		`{"if": {"$ref": "URL/if"}, "then": true}`,
	} {
		_, err := schemas.CompileTerms("remote", jsontext.Value(strings.ReplaceAll(schema, "URL", server.URL)))
		if err == nil || !strings.Contains(err.Error(), "a remote $ref is never fetched") {
			t.Errorf("%s: %v", schema, err)
		}
	}
	// A string that only looks like a reference is a string.
	terms := compile(t, strings.ReplaceAll(`{"description": "URL/a", "properties": {"$ref": {"const": "URL/b"}}, "$id": "URL/c", "$comment": "URL/d"}`, "URL", server.URL))
	if faults := terms.Validate(jsontext.Value(`{"$ref": "` + server.URL + `/b"}`)); faults != nil {
		t.Errorf("%+v", faults)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(seen) > 0 {
		t.Errorf("requests were made: %v", seen)
	}
}

func TestTermsName(t *testing.T) {
	for name, want := range map[string]string{
		"service-agreement-v1":   "service-agreement 1",
		"service-agreement-v12":  "service-agreement 12",
		"service-agreement":      "service-agreement 1",
		"a":                      "a 1",
		"a-v0":                   "a-v0 1",
		"a-v01":                  "a-v01 1",
		"a-v":                    "a-v 1",
		"a-v1-v2":                "a-v1 2",
		"v3":                     "v3 1",
		"Acme.spot_price-v2":     "Acme.spot_price 2",
		strings.Repeat("x", 128): strings.Repeat("x", 128) + " 1",
	} {
		family, version, err := schemas.TermsName(name)
		if got := fmt.Sprint(family, " ", version); err != nil || got != want {
			t.Errorf("%s: %s, %v, want %s", name, got, err, want)
		}
	}
	for _, name := range []string{"", "-a", ".a", "_a", "a b", "a/b", "ä", "a\n", strings.Repeat("x", 129)} {
		if _, _, err := schemas.TermsName(name); err == nil {
			t.Errorf("%q is no name", name)
		}
		if _, err := schemas.CompileTerms(name, jsontext.Value(`{}`)); err == nil {
			t.Errorf("%q is no name", name)
		}
	}
}

// A terms schema is immutable once it is registered (PROTOCOL.md §4).
func TestSameSchema(t *testing.T) {
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{`{"a": 1, "b": 2.0}`, ` { "b":2,"a":1e0 }`, true},
		{`{"a": 1}`, `{"a": 2}`, false},
		{`{"a": [1, 2]}`, `{"a": [2, 1]}`, false},
		{`true`, `true`, true},
		{`true`, `{}`, false},
		{`{`, `{`, false},
	} {
		if got := schemas.SameSchema(jsontext.Value(c.a), jsontext.Value(c.b)); got != c.same {
			t.Errorf("%s and %s: same is %v", c.a, c.b, got)
		}
	}
}

func TestTermsAreValidatedConcurrently(t *testing.T) {
	schema := compile(t, serviceAgreement)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 50 {
				if faults := schema.Validate(jsontext.Value(`{"currency": "EUR"}`)); len(faults) != 1 {
					t.Errorf("%+v", faults)
				}
			}
		})
	}
	group.Wait()
}
