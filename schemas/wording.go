package schemas

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

const (
	maxMessage = 400 // bytes
	maxName    = 120 // bytes
	maxListed  = 20  // values of an enum
)

// name writes a JSON pointer for people, such as questions[0].field.
func name(path string) string {
	if path == "" {
		return "the body"
	}
	var b strings.Builder
	first := true
	for token := range jsontext.Pointer(path).Tokens() {
		switch {
		case first:
			b.WriteString(token)
		case token != "" && strings.Trim(token, "0123456789") == "":
			b.WriteString("[" + token + "]")
		default:
			b.WriteString("." + token)
		}
		first = false
	}
	return clip(b.String(), maxName)
}

// says words what a keyword with this value requires of a field.
func says(keyword string, value any) string {
	switch keyword {
	case "type":
		return "must be " + listed(value, " or ", typeName)
	case "enum":
		if list, ok := value.([]any); ok && len(list) == 1 {
			return "must be " + literal(list[0])
		}
		return "must be one of " + listed(value, ", ", literal)
	case "const":
		return "must be " + literal(value)
	case "format":
		return formatSays(value)
	case "pattern":
		return "must match the pattern " + literal(value)
	case "minLength":
		if literal(value) == "1" {
			return "must not be empty"
		}
		return "must have at least " + count(keyword, value)
	case "minItems", "minProperties":
		return "must have at least " + count(keyword, value)
	case "maxLength", "maxItems", "maxProperties":
		return "must have at most " + count(keyword, value)
	case "minimum":
		return "must be at least " + literal(value)
	case "maximum":
		return "must be at most " + literal(value)
	case "exclusiveMinimum":
		return "must be more than " + literal(value)
	case "exclusiveMaximum":
		return "must be less than " + literal(value)
	case "multipleOf":
		return "must be a multiple of " + literal(value)
	case "uniqueItems":
		return "must not have the same item twice"
	case "contains", "minContains":
		return "must have more of the items that its schema asks for"
	case "maxContains":
		return "must have fewer of the items that its schema bounds"
	case "oneOf":
		return "must have exactly one of the forms that its schema allows, and has several"
	case "not":
		return "has the form that its schema excludes"
	default:
		return "does not meet " + clip(keyword, maxName) + " of its schema"
	}
}

func typeName(v any) string {
	switch v {
	case "object":
		return "an object"
	case "array":
		return "a list"
	case "string":
		return "a string"
	case "number":
		return "a number"
	case "integer":
		return "a whole number"
	case "boolean":
		return "true or false"
	default:
		return literal(v)
	}
}

func formatSays(format any) string {
	switch format {
	case "asp-id":
		return "must have 1 to 128 bytes"
	case "asp-principal":
		return "must be the URI of a principal, such as agent://acme.com/procurement/alpha"
	case "date-time":
		return "must be an RFC 3339 time, such as 2026-03-07T14:30:00Z"
	default:
		return "must be a valid " + literal(format)
	}
}

var units = map[string][2]string{
	"Length":     {"character", "characters"},
	"Items":      {"item", "items"},
	"Properties": {"field", "fields"},
}

func count(keyword string, value any) string {
	unit, n := units[keyword[3:]], literal(value)
	if n == "1" {
		return "one " + unit[0]
	}
	return n + " " + unit[1]
}

func listed(value any, separator string, word func(any) string) string {
	list, ok := value.([]any)
	if !ok {
		return word(value)
	}
	words := make([]string, 0, min(len(list), maxListed))
	for _, v := range list {
		if len(words) == maxListed {
			return fmt.Sprintf("%s and %d more", strings.Join(words, separator), len(list)-maxListed)
		}
		words = append(words, word(v))
	}
	return strings.Join(words, separator)
}

// literal returns a value as it is in the schema, a string without quotes.
func literal(v any) string {
	if s, ok := v.(string); ok {
		return clip(s, maxName)
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return "another value"
	}
	return clip(string(raw), maxName)
}

// clip shortens a text to at most so many bytes without splitting a character.
func clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	most -= len("…")
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most] + "…"
}
