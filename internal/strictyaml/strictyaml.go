// Package strictyaml reads configuration files of which every field must be known. Its errors name the lines and fields
// of a file, and not the types of Go.
package strictyaml

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// ErrEmpty is for a file that says nothing, as one that is being written.
var ErrEmpty = errors.New("the file is empty")

// Decode reads a file of YAML or JSON. An unknown field is an error, and so is one without a value, but for what is
// below the free ones: the file may have been cut off there.
func Decode(data []byte, into any, free ...string) error {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	decoder.KnownFields(true)
	err := decoder.Decode(into)
	wrong, ok := errors.AsType[*yaml.TypeError](err)
	switch {
	case errors.Is(err, io.EOF):
		return ErrEmpty
	case err != nil && !ok:
		return err
	}
	for {
		var more yaml.Node
		err := decoder.Decode(&more)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil || more.Content[0].ShortTag() != "!!null" {
			return errors.New("the file has more than one document: want no --- after the first")
		}
	}
	var document yaml.Node
	if err := yaml.Unmarshal(data, &document); err != nil {
		return err
	}
	var faults []error
	if ok {
		for _, line := range wrong.Errors {
			faults = append(faults, errors.New(plain(line, &document)))
		}
	}
	return errors.Join(append(faults, nulls(&document, "the file", free)...)...)
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
