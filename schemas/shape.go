package schemas

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/internal/ijson"
)

// A shape accepts canonical JSON that is valid by a schema, without decoding it. It is
// made from the schema's text. It never refuses: what it does not accept goes to the
// library, which explains the fault, or accepts it after all. A nil shape accepts anything.
type shape struct {
	kind    jsontext.Kind // 0 is any
	integer bool

	fields   map[string]property
	required uint64 // a bit for each

	items    *shape
	minItems int

	texts     []string // enum, const; nil is any
	pattern   *regexp.Regexp
	format    func(string) bool
	minLength int
	maxLength int // -1 is any

	minimum, maximum *float64

	anyOf                 []*shape
	when, then, otherwise *shape

	never bool // for a member whose schema has a keyword that a shape does not know
}

// A property is what a schema says of one member.
type property struct {
	shape *shape
	bit   uint64 // in required; 0 is optional
}

// kinds maps the types of JSON Schema to what the first byte of a value shows.
var kinds = map[string]jsontext.Kind{"object": '{', "array": '[', "string": '"', "number": '0', "integer": '0', "boolean": 't'}

func kindOf(v jsontext.Value) jsontext.Kind {
	if v.Kind() == 'f' {
		return 't'
	}
	return v.Kind()
}

// shapeOf is false for a schema with a keyword that a shape does not know.
func shapeOf(schema any) (s *shape, ok bool) {
	if schema == true {
		return nil, true
	}
	keywords, ok := schema.(map[string]any)
	if !ok {
		return nil, false
	}
	s = &shape{fields: map[string]property{}, maxLength: -1}
	for keyword, v := range keywords {
		if !s.learn(keyword, v) {
			return nil, false
		}
	}
	return s, true
}

func (s *shape) learn(keyword string, v any) (ok bool) {
	text, _ := v.(string)
	switch keyword {
	case "$schema", "$id", "title", "description":
		return true
	case "type":
		s.kind, ok = kinds[text]
		s.integer = text == "integer"
	case "properties":
		return s.learnFields(v)
	case "required":
		return s.learnRequired(v)
	case "items":
		s.items, ok = shapeOf(v)
	case "enum":
		s.texts, ok = plainTexts(v)
	case "const":
		s.texts, ok = plainTexts([]any{v})
	case "pattern":
		re, err := regexp.Compile(text)
		s.pattern, ok = re, err == nil
	case "format":
		s.format, ok = formats[text]
	case "minItems":
		s.minItems, ok = whole(v)
	case "minLength":
		s.minLength, ok = whole(v)
	case "maxLength":
		s.maxLength, ok = whole(v)
	case "minimum":
		s.minimum, ok = exact(v)
	case "maximum":
		s.maximum, ok = exact(v)
	case "anyOf":
		return s.learnAnyOf(v)
	case "if":
		s.when, ok = shapeOf(v)
	case "then":
		s.then, ok = memberShape(v), true
	case "else":
		s.otherwise, ok = memberShape(v), true
	}
	return ok
}

// memberShape leaves to the library only the values that need it.
func memberShape(schema any) *shape {
	s, ok := shapeOf(schema)
	if !ok {
		return &shape{never: true}
	}
	return s
}

func (s *shape) learnFields(v any) bool {
	properties, ok := v.(map[string]any)
	for name, schema := range properties {
		field := s.fields[name]
		field.shape = memberShape(schema)
		s.fields[name] = field
	}
	return ok
}

func (s *shape) learnRequired(v any) bool {
	names, ok := plainTexts(v)
	for i, name := range names {
		field := s.fields[name]
		field.bit = 1 << i
		s.fields[name] = field
		s.required |= field.bit
	}
	return ok && len(names) < 64
}

func (s *shape) learnAnyOf(v any) bool {
	schemas, ok := v.([]any)
	for _, schema := range schemas {
		branch, known := shapeOf(schema)
		s.anyOf = append(s.anyOf, branch)
		ok = ok && known
	}
	return ok
}

// plainTexts are strings that JSON writes without escapes.
func plainTexts(v any) ([]string, bool) {
	list, ok := v.([]any)
	texts := make([]string, len(list))
	for i, item := range list {
		text, isText := item.(string)
		ok = ok && isText && strconv.Quote(text) == `"`+text+`"`
		texts[i] = text
	}
	return texts, ok
}

func whole(v any) (int, bool) {
	number, _ := v.(json.Number)
	n, err := strconv.Atoi(string(number))
	return n, err == nil
}

// exact reads a bound of at most 15 digits: no two such numbers are the same float64.
func exact(v any) (*float64, bool) {
	number, _ := v.(json.Number)
	f, err := number.Float64()
	return &f, err == nil && len(number) <= 15
}

// fits reports whether canonical JSON is sure to be valid.
func (s *shape) fits(v jsontext.Value) bool {
	if s == nil {
		return true
	}
	kind, ok := kindOf(v), true
	if s.never || s.kind != 0 && kind != s.kind {
		return false
	}
	switch kind {
	case '{':
		ok = s.fitsObject(v)
	case '[':
		ok = s.fitsList(v)
	case '"':
		ok = s.fitsText(v[1 : len(v)-1])
	case '0':
		ok = s.fitsNumber(string(v))
	}
	if !ok || s.texts != nil && kind != '"' {
		return false
	}
	if s.anyOf != nil && !slices.ContainsFunc(s.anyOf, func(branch *shape) bool { return branch.fits(v) }) {
		return false
	}
	switch {
	case s.when == nil, s.then.fits(v) && s.otherwise.fits(v):
		return true
	case bytes.IndexByte(v, '\\') >= 0: // an escape hides what a text is
		return false
	case s.when.fits(v):
		return s.then.fits(v)
	}
	return s.otherwise.fits(v)
}

func (s *shape) fitsObject(v jsontext.Value) bool {
	seen := uint64(0)
	for name, value := range ijson.Members(v) {
		field := s.fields[string(name)]
		if !field.shape.fits(value) {
			return false
		}
		seen |= field.bit
	}
	return seen == s.required
}

func (s *shape) fitsList(v jsontext.Value) bool {
	n := 0
	for item := range ijson.Items(v) {
		if n++; !s.items.fits(item) {
			return false
		}
	}
	return n >= s.minItems
}

// fitsText takes what is between the quotes. A text with an escape fits only where any
// text does.
func (s *shape) fitsText(between []byte) bool {
	if s.texts == nil && s.pattern == nil && s.format == nil && s.minLength == 0 && s.maxLength < 0 {
		return true
	}
	if bytes.IndexByte(between, '\\') >= 0 {
		return false
	}
	if length := utf8.RuneCount(between); length < s.minLength || s.maxLength >= 0 && length > s.maxLength {
		return false
	}
	return (s.texts == nil || slices.Contains(s.texts, string(between))) &&
		(s.pattern == nil || s.pattern.Match(between)) &&
		(s.format == nil || s.format(string(between)))
}

// fitsNumber compares as float64, which is exact up to 15 digits.
func (s *shape) fitsNumber(number string) bool {
	if s.integer && strings.Contains(number, ".") {
		return false
	}
	if s.minimum == nil && s.maximum == nil {
		return true
	}
	f, err := strconv.ParseFloat(number, 64)
	return err == nil && (s.minimum == nil || f >= *s.minimum) && (s.maximum == nil || f <= *s.maximum)
}
