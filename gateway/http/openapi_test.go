package httpgateway

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/go-json-experiment/json"
)

// Every schema of the OpenAPI description says what it is: none is empty, and an object without members
// says that it is open (GATEWAYS.md G9).
func TestDescriptionIsTyped(t *testing.T) {
	t.Parallel()
	var d object
	if err := json.Unmarshal(description(), &d); err != nil {
		t.Fatal(err)
	}
	seen := 0
	find(map[string]any(d), "", func(path string, schema map[string]any) {
		seen++
		if why := bare(schema); why != "" {
			t.Errorf("%s %s: %v", path, why, schema)
		}
	})
	if seen < 1_000 {
		t.Errorf("only %d schemas were found", seen)
	}
	for what, schema := range map[string]map[string]any{
		"empty": {}, "described, and no more": {"description": "x"}, "an object": {"type": "object"}, "an object that is described": {"type": "object", "description": "x"},
		"an array of anything": {"type": "array"},
	} {
		if bare(schema) == "" {
			t.Errorf("a schema that is %s is taken for typed", what)
		}
	}
	components := d["components"].(map[string]any)["schemas"].(map[string]any)
	for _, union := range []string{"Entry", "Envelope", "HistoryEntry", "Move", "Act", "Answer"} {
		schema, _ := components[union].(map[string]any)
		discriminator, _ := schema["discriminator"].(map[string]any)
		mapping, _ := discriminator["mapping"].(map[string]any)
		if discriminator["propertyName"] != "performative" || len(mapping) != 13 {
			t.Errorf("%s is no union of thirteen by performative: %v", union, schema)
		}
		for act, to := range mapping {
			if components[to.(string)[len("#/components/schemas/"):]] == nil {
				t.Errorf("%s: there is no %v of %s", union, to, act)
			}
		}
	}
}

// bare says why a schema says too little; "" if it does not.
func bare(schema map[string]any) string {
	for _, keyword := range []string{"$ref", "oneOf", "anyOf", "allOf", "enum", "const"} {
		if schema[keyword] != nil {
			return ""
		}
	}
	_, has := schema["properties"]
	switch schema["type"] {
	case nil:
		if schema["title"] == "AnyValue" && schema["description"] != "" { // the one schema of any value
			return ""
		}
		return "has no type"
	case "object":
		if open, said := schema["additionalProperties"]; !has && (!said || open == true && schema["description"] == nil) {
			return "has no members, and does not say that it is open"
		}
	case "array":
		if schema["items"] == nil {
			return "has no items"
		}
	}
	return ""
}

// find visits all schemas of a description.
func find(value any, path string, visit func(path string, schema map[string]any)) {
	switch value := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			at, inner := path+"/"+key, value[key]
			switch key {
			case "schema":
				walk(inner, at, visit)
			case "schemas":
				for name, schema := range inner.(map[string]any) {
					walk(schema, at+"/"+name, visit)
				}
			default:
				find(inner, at, visit)
			}
		}
	case []any:
		for i, inner := range value {
			find(inner, fmt.Sprintf("%s/%d", path, i), visit)
		}
	}
}

// walk visits a schema and all in it.
func walk(value any, path string, visit func(path string, schema map[string]any)) {
	schema, is := value.(map[string]any)
	if !is {
		visit(path, map[string]any{})
		return
	}
	visit(path, schema)
	properties, _ := schema["properties"].(map[string]any)
	for name, inner := range properties {
		walk(inner, path+"/"+name, visit)
	}
	for _, keyword := range []string{"items", "additionalProperties"} {
		if _, is := schema[keyword].(map[string]any); is {
			walk(schema[keyword], path+"/"+keyword, visit)
		}
	}
	for _, keyword := range []string{"oneOf", "anyOf", "allOf"} {
		list, _ := schema[keyword].([]any)
		for i, inner := range list {
			walk(inner, fmt.Sprintf("%s/%s/%d", path, keyword, i), visit)
		}
	}
}
