package mcpgateway

import (
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/schemas"
)

// An object is a part of a JSON Schema.
type object = map[string]any

// properties make the schema of an object; a name that ends in "?" is not required.
func properties(of object) object {
	members, required := object{}, []string{}
	for _, name := range slices.Sorted(maps.Keys(of)) {
		plain, optional := strings.CutSuffix(name, "?")
		members[plain] = of[name]
		if !optional {
			required = append(required, plain)
		}
	}
	schema := object{"type": "object", "properties": members}
	if len(required) > 0 {
		schema["required"] = required
	}
	return schema
}

// closed is properties of an input, which takes no others.
func closed(of object) object {
	schema := properties(of)
	schema["additionalProperties"] = false
	return schema
}

func text(doc string, more ...object) object {
	schema := object{"type": "string"}
	if doc != "" {
		schema["description"] = doc
	}
	for _, m := range more {
		maps.Copy(schema, m)
	}
	return schema
}

func number(doc string, least, most int) object {
	return object{"type": "integer", "minimum": least, "maximum": most, "description": doc}
}

func enum(doc string, values ...string) object {
	return text(doc, object{"enum": values})
}

func list(of object) object { return object{"type": "array", "items": of} }

// published is a schema that the broker publishes, as MCP's clients read it: without what it is
// called elsewhere, without formats of ours, and with no choice at the top, which some models
// do not take.
func published(name string) object {
	data, _ := schemas.Get(name)
	var schema object
	if err := json.Unmarshal(data, &schema); err != nil {
		panic(err) // a test has read every schema
	}
	for _, keyword := range []string{"$id", "$schema", "title", "description", "anyOf", "oneOf", "allOf", "if", "then", "else"} {
		delete(schema, keyword)
	}
	plain(schema)
	return schema
}

// plain drops formats of ours, and writes {} for the schema true.
func plain(schema object) {
	if format, is := schema["format"].(string); is && strings.HasPrefix(format, "asp-") {
		delete(schema, "format")
	}
	for keyword, value := range schema {
		switch value := value.(type) {
		case bool:
			if value && keyword != "additionalProperties" && keyword != "uniqueItems" && keyword != "const" && keyword != "default" {
				schema[keyword] = object{}
			}
		case object:
			plain(value)
		case []any:
			for _, v := range value {
				if inner, is := v.(object); is {
					plain(inner)
				}
			}
		}
	}
}

// ofBodies are the members of acts' bodies; those with "?" need not be given.
func ofBodies(optional []string, acts ...performatives.Performative) object {
	all := object{}
	for _, p := range acts {
		schema := published(p.String())
		var required []any
		if given, is := schema["required"].([]any); is && len(acts) == 1 {
			required = given
		}
		members, _ := schema["properties"].(object)
		for name, of := range members {
			if !slices.Contains(required, any(name)) || slices.Contains(optional, name) {
				name += "?"
			}
			all[name] = of
		}
	}
	return all
}

// acceptance is the schema of what was accepted.
func acceptance(more object) object {
	schema := published("acceptance")
	members, _ := schema["properties"].(object)
	maps.Copy(members, object{
		"referenceId": text("what later acts call this one"),
		"next":        properties(object{"tool": text(""), "arguments": object{"type": "object"}, "why?": text("")}),
	})
	maps.Copy(members, more)
	return schema
}
