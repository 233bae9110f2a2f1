package schemas

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/parley-asp/parley/performatives"
)

// A document is a compiled schema with its decoded text, from which the messages
// of faults are made.
type document struct {
	schema   *jsonschema.Schema
	text     any
	patterns map[string]*regexp.Regexp // of the names of fields, of a terms schema
}

// errRemote reports a reference to another document.
type errRemote struct{ url string }

func (e *errRemote) Error() string {
	return fmt.Sprintf("it refers to %s, which is not part of it; a remote $ref is never fetched", clip(e.url, maxName))
}

var errNoSchema = errors.New("it is no JSON Schema")

// newCompiler returns a compiler that knows our formats and loads nothing from
// the network or the disk.
func newCompiler() *jsonschema.Compiler {
	c := jsonschema.NewCompiler()
	c.Draft = jsonschema.Draft2020
	c.AssertFormat = true
	c.LoadURL = func(url string) (io.ReadCloser, error) { return nil, &errRemote{url} }
	for name, valid := range formats {
		c.Formats[name] = ofString(valid)
	}
	return c
}

var formats = map[string]func(string) bool{
	"asp-id": performatives.ValidID, "asp-principal": validPrincipal, "date-time": validTime, "regex": isRegex,
}

func validPrincipal(s string) bool {
	_, err := performatives.ParseAgent(s)
	return err == nil
}

// ofString makes a format of a check for strings. Other values are valid.
func ofString(valid func(string) bool) func(any) bool {
	return func(v any) bool {
		s, ok := v.(string)
		return !ok || valid(s)
	}
}

// validTime accepts exactly the times that a body's Go type can hold: RFC 3339
// with upper-case T and Z, without leap seconds. It uses the decoder of the
// bodies, which is stricter than time.Parse.
func validTime(s string) bool {
	quoted, err := jsontext.AppendQuote(nil, s)
	var t time.Time
	return err == nil && jsonv2.Unmarshal(quoted, &t) == nil
}

// compile recovers the library's panics on some references to values that are
// not schemas.
func compile(c *jsonschema.Compiler, url string, schema jsontext.Value) (d *document, err error) {
	defer func() {
		if r := recover(); r != nil {
			d, err = nil, errNoSchema
		}
	}()
	text, err := decode(schema)
	if err != nil {
		return nil, err
	}
	if err := c.AddResource(url, bytes.NewReader(schema)); err != nil {
		return nil, err
	}
	compiled, err := c.Compile(url)
	if err != nil {
		return nil, err
	}
	return &document{schema: compiled, text: text}, nil
}

func mustCompile(schema jsontext.Value) *document {
	d, err := compile(newCompiler(), "https://parley-asp.github.io/schemas/embedded", schema)
	if err != nil { // the embedded file is not what the generator wrote
		panic("schemas: " + err.Error())
	}
	return d
}

var errMore = errors.New("more than one JSON value")

// decode reads one JSON value as the library needs it: numbers keep their digits.
func decode(v jsontext.Value) (any, error) {
	d := json.NewDecoder(bytes.NewReader(v))
	d.UseNumber()
	var out any
	if err := d.Decode(&out); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errMore
	}
	return out, nil
}

// faults validates the value at a path of a body.
func (d *document) faults(v any, path string) (faults []Fault) {
	defer func() {
		if r := recover(); r != nil {
			faults = []Fault{{Path: path, Rule: "type", Message: name(path) + " holds a number that is too large to compare"}}
		}
	}()
	err := d.schema.Validate(v)
	if err == nil {
		return nil
	}
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) { // infinite recursion of the schema
		return []Fault{{Path: path, Rule: "$ref", Message: name(path) + " cannot be checked: its schema refers to itself without end"}}
	}
	return leaves{d, v, path}.of(invalid)
}

// at returns the value at a JSON pointer, nil if there is none.
func at(v any, pointer string) any {
	if pointer == "" {
		return v
	}
	for token := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		v = child(v, token)
	}
	return v
}
