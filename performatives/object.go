package performatives

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"
)

// A document is a canonical JSON object taken apart at its top level, so that
// members can be added and removed without canonicalising again. Values are
// canonical bytes; members stand in RFC 8785 order.
type document []member

type member struct {
	name  string
	quote []byte // the name as canonical JSON
	value jsontext.Value
}

// split takes a canonical object apart; it shares the object's bytes.
func split(object jsontext.Value) (document, error) {
	d := jsontext.NewDecoder(bytes.NewBuffer(object))
	if _, err := d.ReadToken(); err != nil {
		return nil, err
	}
	// What the decoder returns is good until it is used again; the same bytes
	// stand in the object, before the place that it has come to.
	read := func() (jsontext.Value, error) {
		v, err := d.ReadValue()
		end := d.InputOffset()
		return object[end-int64(len(v)) : end : end], err
	}
	doc := make(document, 0, 12)
	for d.PeekKind() != '}' {
		quote, err := read()
		if err != nil {
			return nil, err
		}
		name, err := unquote(quote)
		if err != nil {
			return nil, err
		}
		value, err := read()
		if err != nil {
			return nil, err
		}
		doc = append(doc, member{name, quote, value})
	}
	return doc, nil
}

// unquote reads a canonical JSON string; most names have nothing to read.
func unquote(quote jsontext.Value) (string, error) {
	if !bytes.ContainsRune(quote, '\\') {
		return string(quote[1 : len(quote)-1]), nil
	}
	name, err := jsontext.AppendUnquote(nil, quote)
	return string(name), err
}

func (d document) get(name string) jsontext.Value {
	for i := range d {
		if d[i].name == name {
			return d[i].value
		}
	}
	return nil
}

// with returns the document with the member set; name is ASCII, for which byte
// order and RFC 8785's UTF-16 order agree against any other name.
func (d document) with(name string, value []byte) document {
	out := make(document, 0, len(d)+1)
	placed := false
	for _, m := range d {
		if !placed && m.name >= name {
			out = append(out, member{name: name, quote: []byte(`"` + name + `"`), value: value})
			placed = true
		}
		if m.name != name {
			out = append(out, m)
		}
	}
	if !placed {
		out = append(out, member{name: name, quote: []byte(`"` + name + `"`), value: value})
	}
	return out
}

// without returns the document less the named members.
func (d document) without(drop ...string) document {
	out := make(document, 0, len(d))
next:
	for _, m := range d {
		for _, name := range drop {
			if m.name == name {
				continue next
			}
		}
		out = append(out, m)
	}
	return out
}

// bytes puts the object together again, in canonical form.
func (d document) bytes() jsontext.Value {
	n := 2
	for _, m := range d {
		n += len(m.quote) + len(m.value) + 2
	}
	out := append(make([]byte, 0, n), '{')
	for i, m := range d {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, m.quote...)
		out = append(out, ':')
		out = append(out, m.value...)
	}
	return append(out, '}')
}

// Canonicalise puts a value that is I-JSON already into RFC 8785 form.
func Canonicalise(v jsontext.Value) (jsontext.Value, error) {
	c := v.Clone()
	if err := c.Canonicalize(); err != nil {
		return nil, err
	}
	return c, nil
}
