package performatives

import (
	"bytes"
	"errors"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/internal/ijson"
)

// A document is a canonical JSON object taken apart at its top level, so that
// members can be added and removed without canonicalising again. Members stand
// in RFC 8785 order.
type document []member

// A member is the canonical text "name":value.
type member struct {
	text []byte
	name int // bytes of the name with its quotes
}

func (m member) value() jsontext.Value { return jsontext.Value(m.text[m.name+1:]) }

// is compares with a name of ASCII letters, which canonical JSON never escapes.
func (m member) is(name string) bool { return string(m.text[1:m.name-1]) == name }

// before reports whether the member stands before one with such a name. Against
// ASCII, byte order and RFC 8785's UTF-16 order agree for any other name.
func (m member) before(name string) bool {
	quoted := m.text[:m.name]
	if bytes.IndexByte(quoted, '\\') < 0 {
		return string(quoted[1:len(quoted)-1]) < name
	}
	plain, err := jsontext.AppendUnquote(nil, quoted)
	return err == nil && string(plain) < name
}

// texts are members in the making, all in one piece of memory.
type texts []byte

func (t *texts) begin(name string) (from int) {
	from = len(*t)
	*t = append(append(append(*t, '"'), name...), '"', ':')
	return from
}

func (t *texts) end(name string, from int) member {
	return member{(*t)[from:len(*t):len(*t)], len(name) + 2}
}

// field makes a member whose value is JSON already.
func (t *texts) field(name string, value []byte) member {
	from := t.begin(name)
	*t = append(*t, value...)
	return t.end(name, from)
}

// text makes one whose value is a text.
func (t *texts) text(name, text string) member {
	from := t.begin(name)
	*t = appendQuote(*t, text)
	return t.end(name, from)
}

var errObject = errors.New("not a canonical object")

// split takes a canonical object apart, and appends its members to a document;
// it shares the object's bytes.
func split(into document, object jsontext.Value) (document, error) {
	if len(object) < 2 || object[0] != '{' {
		return nil, errObject
	}
	if string(object) == "{}" {
		return into, nil
	}
	for at := 1; ; {
		colon := ijson.Past(object, at)
		if object[at] != '"' || colon >= len(object) || object[colon] != ':' {
			return nil, errObject
		}
		end := ijson.Past(object, colon+1)
		if end >= len(object) {
			return nil, errObject
		}
		into = append(into, member{object[at:end:end], colon - at})
		if object[end] == '}' && end == len(object)-1 {
			return into, nil
		}
		if at = end + 1; object[end] != ',' || at >= len(object) {
			return nil, errObject
		}
	}
}

func (d document) get(name string) jsontext.Value {
	for _, m := range d {
		if m.is(name) {
			return m.value()
		}
	}
	return nil
}

// without returns the document less the named members.
func (d document) without(drop ...string) document {
	out := make(document, 0, len(d)+1)
	for _, m := range d {
		if !slices.ContainsFunc(drop, m.is) {
			out = append(out, m)
		}
	}
	return out
}

// bytes puts the object together again, in canonical form.
func (d document) bytes() jsontext.Value { return merge{a: d}.appendTo(nil) }

// A merge is the members of two documents, of which none has a name in both.
type merge struct{ a, b document }

// next takes out the member that stands first.
func (m *merge) next() (f member, ok bool) {
	switch {
	case len(m.a) == 0 && len(m.b) == 0:
		return f, false
	case len(m.b) == 0 || len(m.a) > 0 && m.a[0].before(string(m.b[0].text[1:m.b[0].name-1])):
		f, m.a = m.a[0], m.a[1:]
	default:
		f, m.b = m.b[0], m.b[1:]
	}
	return f, true
}

func (m merge) size() int {
	n := 2 + len(m.a) + len(m.b)
	for f, ok := m.next(); ok; f, ok = m.next() {
		n += len(f.text)
	}
	return n
}

func (m merge) appendTo(out []byte) []byte {
	out = append(out, '{')
	for f, ok := m.next(); ok; f, ok = m.next() {
		out = append(append(out, f.text...), ',')
	}
	return closed(out)
}

// sealed is an envelope with its integrity, which it has none of so far.
func sealed(envelope, integrity merge) []byte {
	return appendSealed(make([]byte, 0, envelope.size()+len(`"integrity":,`)+integrity.size()), envelope, integrity)
}

func appendSealed(out []byte, envelope, integrity merge) []byte {
	out = append(out, '{')
	placed := false
	for f, ok := envelope.next(); ok; f, ok = envelope.next() {
		if !placed && !f.before("integrity") {
			out = append(integrity.appendTo(append(out, `"integrity":`...)), ',')
			placed = true
		}
		out = append(append(out, f.text...), ',')
	}
	if !placed {
		out = append(integrity.appendTo(append(out, `"integrity":`...)), ',')
	}
	return closed(out)
}

// closed ends an object after the comma of its last member.
func closed(out []byte) []byte {
	if out[len(out)-1] == ',' {
		out = out[:len(out)-1]
	}
	return append(out, '}')
}
