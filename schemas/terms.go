package schemas

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/parley-asp/parley/performatives"
)

// Bounds of a terms schema. It nests at most performatives.MaxDepth deep.
const (
	MaxTermsSchema = 64 << 10 // bytes
	maxSubschemas  = 4096     // compiling takes time in their square
)

// A TermsSchema validates the terms of the offers that name it. It is safe for
// concurrent use.
type TermsSchema struct {
	name     string
	text     jsontext.Value
	mu       sync.Mutex // guards work: one validation at a time
	work     *work
	document *document
}

var (
	termsName    = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)
	termsVersion = regexp.MustCompile(`^(.+)-v([1-9][0-9]{0,8})$`)
)

// TermsName splits the name of a terms schema: service-agreement-v2 is version 2
// of service-agreement. A name without a version is version 1.
func TermsName(name string) (family string, version int, err error) {
	if !termsName.MatchString(name) {
		return "", 0, errors.New("the name of a terms schema has 1 to 128 letters, digits, '.', '_' and '-', and starts with a letter or digit")
	}
	if parts := termsVersion.FindStringSubmatch(name); parts != nil {
		version, err = strconv.Atoi(parts[2])
		return parts[1], version, err
	}
	return name, 1, nil
}

// CompileTerms compiles a terms schema. Its errors say what to fix. A reference
// to another document is refused and never followed.
func CompileTerms(name string, schema jsontext.Value) (*TermsSchema, error) {
	if _, _, err := TermsName(name); err != nil {
		return nil, err
	}
	refuse := func(err error) (*TermsSchema, error) { return nil, fmt.Errorf("terms schema %s: %w", name, err) }
	if len(schema) > MaxTermsSchema {
		return refuse(fmt.Errorf("it has more than %d bytes", MaxTermsSchema))
	}
	text, err := performatives.Canonical(schema)
	if err != nil {
		return refuse(err)
	}
	if kind := text.Kind(); kind != '{' && kind != 't' && kind != 'f' {
		return refuse(errors.New("a JSON Schema is an object, true or false"))
	}
	v, err := decode(text)
	if err != nil {
		return refuse(err)
	}
	if subschemas(v) > maxSubschemas {
		return refuse(fmt.Errorf("it has more than %d objects and booleans", maxSubschemas))
	}
	if ref := builtIn(v); ref != "" {
		return refuse(&errRemote{ref})
	}
	t := &TermsSchema{name: name, text: text, work: new(work)}
	c := newCompiler()
	c.RegisterExtension("work", nil, t.work)
	if t.document, err = compile(c, "https://parley-asp.github.io/terms/"+name, text); err != nil {
		return refuse(plainly(err))
	}
	return t, nil
}

// Name is the value of an offer's schema field that selects this schema.
func (t *TermsSchema) Name() string { return t.name }

// Schema returns the schema in RFC 8785 form.
func (t *TermsSchema) Schema() jsontext.Value { return t.text.Clone() }

// Validate returns the faults of an offer's terms. Paths point into the body, so
// they start with /terms.
func (t *TermsSchema) Validate(terms jsontext.Value) []Fault {
	v, err := decode(terms)
	if err != nil {
		return []Fault{{Path: "/terms", Rule: "type", Message: "terms is not JSON"}}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.work.left = maxWork
	return report(t.document.faults(v, "/terms"))
}

// SameSchema reports whether two schemas are the same, byte for byte in canonical
// form. Only then may a registered name be registered again.
func SameSchema(a, b jsontext.Value) bool {
	canonicalA, errA := performatives.Canonical(a)
	canonicalB, errB := performatives.Canonical(b)
	return errA == nil && errB == nil && performatives.Equal(canonicalA, canonicalB)
}

// subschemas counts objects and booleans, an upper bound of the subschemas.
func subschemas(v any) int {
	n := 0
	switch v := v.(type) {
	case bool:
		n = 1
	case []any:
		for _, item := range v {
			n += subschemas(item)
		}
	case map[string]any:
		n = 1
		for _, item := range v {
			n += subschemas(item)
		}
	}
	return n
}

// builtIn finds a reference to json-schema.org. The library has those documents
// built in and would validate against them without counting the work.
func builtIn(v any) string {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			if ref := builtIn(item); ref != "" {
				return ref
			}
		}
	case map[string]any:
		for _, keyword := range []string{"$id", "$ref", "$dynamicRef", "$recursiveRef"} {
			if ref, ok := v[keyword].(string); ok && strings.Contains(ref, "json-schema.org") {
				return ref
			}
		}
		for _, item := range v {
			if ref := builtIn(item); ref != "" {
				return ref
			}
		}
	}
	return ""
}

// plainly rewords the library's error about a schema.
func plainly(err error) error {
	if remote := new(errRemote); errors.As(err, &remote) {
		return remote
	}
	if errors.Is(err, errNoSchema) {
		return err
	}
	if outer := new(jsonschema.SchemaError); errors.As(err, &outer) {
		err = outer.Err
	}
	reason := err.Error()
	var invalid *jsonschema.ValidationError
	if errors.As(err, &invalid) {
		reason = firstReason(invalid)
	}
	reason = strings.TrimPrefix(reason, "jsonschema: ")
	return errors.New(clip("it is no JSON Schema: "+reason, maxMessage))
}

// firstReason picks one leaf of the library's tree of errors, deterministically.
// Wrong types come last, since they mostly belong to a branch that was not meant.
func firstReason(e *jsonschema.ValidationError) string {
	var reasons []string
	var walk func(*jsonschema.ValidationError)
	walk = func(e *jsonschema.ValidationError) {
		if len(e.Causes) == 0 {
			reasons = append(reasons, fmt.Sprintf("at %q %s", shorten(unescape(e.InstanceLocation)), e.Message))
		}
		for _, cause := range e.Causes {
			walk(cause)
		}
	}
	walk(e)
	slices.SortFunc(reasons, func(a, b string) int {
		return cmp.Or(cmp.Compare(typeOnly(a), typeOnly(b)), strings.Compare(a, b))
	})
	return reasons[0]
}

func typeOnly(reason string) int {
	if strings.Contains(reason, " expected ") {
		return 1
	}
	return 0
}
