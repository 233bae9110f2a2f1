package schemas

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/parley-asp/parley/performatives"
)

// A TermsSchema validates the terms of the offers that name it. It is safe for
// concurrent use.
type TermsSchema struct {
	name     string
	text     jsontext.Value
	document *document
	root     *node
	survey   survey
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
		return refuse(within(len(schema), MaxTermsSchema, "bytes"))
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
	t := &TermsSchema{name: name, text: text}
	t.survey.add(v, 0)
	if err := t.survey.check(); err != nil {
		return refuse(err)
	}
	if ref := builtIn(v); ref != "" {
		return refuse(&errRemote{ref})
	}
	if t.document, err = compile(newCompiler(), "https://parley-asp.github.io/terms/"+name, text); err != nil {
		return refuse(plainly(err))
	}
	if t.root, err = t.document.graph(); err != nil {
		return refuse(err)
	}
	return t, nil
}

// Name is the value of an offer's schema field that selects this schema.
func (t *TermsSchema) Name() string { return t.name }

// Schema returns the schema in RFC 8785 form.
func (t *TermsSchema) Schema() jsontext.Value { return t.text.Clone() }

// Size estimates the bytes of memory that the compiled schema takes.
func (t *TermsSchema) Size() int {
	return 8*len(t.text) + 2048*t.survey.subschemas + 256*t.survey.patternSteps
}

// Validate returns the faults of an offer's terms. Paths point into the body, so
// they start with /terms.
func (t *TermsSchema) Validate(terms jsontext.Value) []Fault { return t.Begin(terms).Faults() }

// A Validation is a check of terms whose cost is known before it runs.
type Validation struct {
	schema *TermsSchema
	terms  any
	work   int
	fault  []Fault // found without the schema
}

// Begin reads an offer's terms and measures what checking them will cost.
func (t *TermsSchema) Begin(terms jsontext.Value) Validation {
	v, err := decode(terms)
	if err != nil {
		return Validation{fault: []Fault{{Path: "/terms", Rule: "type", Message: "terms is not JSON"}}}
	}
	units := work(t.root, v)
	if units > Budget {
		return Validation{fault: overBudget("/terms")}
	}
	return Validation{schema: t, terms: v, work: units}
}

// Work is what Faults will cost, in units of which Budget is the most.
func (v Validation) Work() int { return v.work }

// Faults checks the terms.
func (v Validation) Faults() []Fault {
	if v.fault != nil {
		return v.fault
	}
	return report(v.schema.document.faults(v.terms, "/terms"))
}

// SameSchema reports whether two schemas are the same, byte for byte in canonical
// form. Only then may a registered name be registered again.
func SameSchema(a, b jsontext.Value) bool {
	canonicalA, errA := performatives.Canonical(a)
	canonicalB, errB := performatives.Canonical(b)
	return errA == nil && errB == nil && performatives.Equal(canonicalA, canonicalB)
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
