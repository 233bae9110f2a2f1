// Package strictyaml reads configuration files of which every field must be known. Its errors name the lines and fields
// of a file, and not the types of Go.
package strictyaml

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// ErrEmpty is for a file that says nothing, as one that is being written.
var ErrEmpty = errors.New("the file is empty")

// Document is the only document of a file.
func Document(data []byte) (*yaml.Node, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var document yaml.Node
	if err := decoder.Decode(&document); errors.Is(err, io.EOF) {
		return nil, ErrEmpty
	} else if err != nil {
		return nil, err
	}
	for {
		var more yaml.Node
		err := decoder.Decode(&more)
		if errors.Is(err, io.EOF) {
			return &document, nil
		}
		if err != nil || more.Content[0].ShortTag() != "!!null" {
			return nil, errors.New("the file has more than one document: want no --- after the first")
		}
	}
}

// Decode reads a file of YAML or JSON. An unknown field is an error, a fraction where a whole number belongs, and a
// field without a value, but for what is below the free ones: the file may have been cut off there.
func Decode(data []byte, into any, free ...string) error {
	document, err := Document(data)
	if err != nil {
		return err
	}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	decoder.KnownFields(true)
	err = decoder.Decode(into)
	wrong, ok := errors.AsType[*yaml.TypeError](err)
	if err != nil && !ok {
		return err
	}
	var faults []error
	if ok {
		for _, line := range wrong.Errors {
			faults = append(faults, errors.New(plain(line, document)))
		}
	}
	faults = append(faults, fractions(document, reflect.TypeOf(into), "the file")...)
	return errors.Join(append(faults, nulls(document, "the file", free)...)...)
}

// fractions are the numbers that the library would cut to whole ones.
func fractions(node *yaml.Node, t reflect.Type, name string) (faults []error) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case node.Kind == yaml.AliasNode:
		return fractions(node.Alias, t, name)
	case node.Kind == yaml.DocumentNode:
		return fractions(node.Content[0], t, name)
	case node.Kind == yaml.ScalarNode && node.ShortTag() == "!!float" && t.Kind() >= reflect.Int && t.Kind() <= reflect.Uint64:
		if f, err := strconv.ParseFloat(node.Value, 64); err != nil || f != math.Trunc(f) {
			return []error{fmt.Errorf("line %d: %s: want a whole number", node.Line, name)}
		}
	case node.Kind == yaml.SequenceNode && (t.Kind() == reflect.Slice || t.Kind() == reflect.Array):
		for _, item := range node.Content {
			faults = append(faults, fractions(item, t.Elem(), name)...)
		}
	case node.Kind == yaml.MappingNode:
		for n := 0; n < len(node.Content); n += 2 {
			if key := node.Content[n].Value; key == "<<" { // others' members
				faults = append(faults, fractions(node.Content[n+1], t, name)...)
			} else if t.Kind() == reflect.Map {
				faults = append(faults, fractions(node.Content[n+1], t.Elem(), key)...)
			} else if of := field(t, key); of != nil {
				faults = append(faults, fractions(node.Content[n+1], of, key)...)
			}
		}
	}
	return faults
}

// field is the type of the field that a key names; nil for none.
func field(t reflect.Type, key string) reflect.Type {
	if t.Kind() != reflect.Struct {
		return nil
	}
	for _, f := range reflect.VisibleFields(t) {
		if name, _, _ := strings.Cut(f.Tag.Get("yaml"), ","); name == key {
			return f.Type
		}
	}
	return nil
}

// nulls are the fields without a value, but for those below free ones.
func nulls(node *yaml.Node, name string, free []string) (faults []error) {
	if node.Kind == yaml.ScalarNode && node.ShortTag() == "!!null" {
		return []error{fmt.Errorf("line %d: %s has no value", node.Line, name)}
	}
	for n, child := range node.Content {
		of := name
		if node.Kind == yaml.SequenceNode {
			of = "an item of " + name
		} else if node.Kind == yaml.MappingNode {
			if n%2 == 0 {
				continue // a key
			}
			of = node.Content[n-1].Value
		}
		if !slices.Contains(free, of) {
			faults = append(faults, nulls(child, of, free)...)
		}
	}
	return faults
}

var (
	inType = regexp.MustCompile(` in type .+$`)
	ofType = regexp.MustCompile("(?s)^line (\\d+): cannot unmarshal (!\\S+)(?: `(.*)`)? into (.+)$")
)

// kinds are YAML's, and types those of Go, as people call them.
var (
	kinds = map[string]string{
		"!!str": "a text", "!!int": "a number", "!!float": "a number", "!!bool": "true or false", "!!seq": "a list", "!!map": "keys with values", "!!timestamp": "a date",
	}
	types = map[string]string{"int": "a whole number", "float64": "a number", "bool": "true or false", "string": "a text"}
)

// plain says what yaml does, in the words of the file.
func plain(fault string, document *yaml.Node) string {
	m := ofType.FindStringSubmatch(fault)
	if m == nil {
		return inType.ReplaceAllString(fault, "")
	}
	line, _ := strconv.Atoi(m[1]) // they are digits
	says := "has a wrong type"
	if kind := kinds[m[2]]; kind != "" {
		says = "cannot be " + kind
	}
	want := types[m[4]]
	switch {
	case strings.HasPrefix(m[4], "[]"):
		want = "a list"
	case strings.HasPrefix(m[4], "map["):
		want = "keys with values"
	}
	if want != "" {
		says = "want " + want
	}
	names := map[string]bool{}
	find(document, "", func(name string, value *yaml.Node) {
		if name != "" && value.Line == line && value.ShortTag() == m[2] && strings.HasPrefix(value.Value, strings.TrimSuffix(m[3], "...")) {
			names[name] = true
		}
	})
	if len(names) != 1 { // more values of the line could be meant
		return fmt.Sprintf("line %d: %s", line, says)
	}
	for name := range names {
		says = fmt.Sprintf("line %d: %s: %s", line, name, says)
	}
	return says
}

// find visits the values below a node, each with the name of its field, or of that of its list.
func find(node *yaml.Node, of string, visit func(name string, value *yaml.Node)) {
	for n, child := range node.Content {
		name := of
		if node.Kind == yaml.MappingNode {
			if n%2 == 0 {
				continue // a key
			}
			name = node.Content[n-1].Value
		}
		visit(name, child)
		find(child, name, visit)
	}
}
