// Package fit cuts what is long in values until they fit into a number of bytes. They stay values of the same kind.
package fit

import (
	"bytes"
	"math"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Size is how many bytes a value has as it is sent.
func Size(v any) int {
	data, err := json.Marshal(v)
	if err != nil {
		return math.MaxInt32
	}
	return len(data)
}

// shortest is the lowest limit that To tries: everything that is short by nature, such as an id,
// a status or a time, has fewer bytes.
const shortest = 256

// To cuts what is long in a value until it has at most so many bytes, and reports whether anything
// was cut: texts, JSON values and lists above a limit, which is halved until the rest fits. Named
// strings, such as agents and hashes, stay. Each struct in which something was cut has its field
// Truncated set, if it has one. What is cut is copied first: others may share it.
func To[T any](v *T, most int) (cut bool) {
	for limit := most / 2; limit >= shortest && Size(v) > most; limit /= 2 {
		cut = shorten(reflect.ValueOf(v).Elem(), limit) || cut
	}
	return cut
}

var (
	rawType  = reflect.TypeFor[jsontext.Value]()
	textType = reflect.TypeFor[string]()
)

// shorten cuts what is longer than a limit in a value that can be set.
func shorten(v reflect.Value, limit int) (cut bool) {
	switch {
	case v.Type() == rawType:
		if v.Len() > limit {
			v.SetBytes(JSON(v.Bytes(), limit))
			return true
		}
	case v.Type() == textType:
		if TextSize(v.String()) > limit {
			v.SetString(Text(v.String(), limit))
			return true
		}
	case v.Kind() == reflect.Pointer && !v.IsNil():
		inner := reflect.New(v.Type().Elem())
		inner.Elem().Set(v.Elem())
		if cut = shorten(inner.Elem(), limit); cut {
			v.Set(inner)
		}
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				cut = shorten(v.Field(i), limit) || cut
			}
		}
		if mark := v.FieldByName("Truncated"); cut && mark.IsValid() {
			mark.SetBool(true)
		}
	case v.Kind() == reflect.Slice && Size(v.Interface()) > limit:
		return shortenList(v, limit)
	case v.Kind() == reflect.Map && Size(v.Interface()) > limit:
		return shortenMap(v, limit)
	}
	return cut
}

// shortenList keeps as much of the beginning of a list as a limit allows.
func shortenList(v reflect.Value, limit int) bool {
	kept, size := reflect.MakeSlice(v.Type(), 0, 0), 2
	for i := range v.Len() {
		e := reflect.New(v.Type().Elem()).Elem()
		e.Set(v.Index(i))
		shorten(e, limit/4)
		if size += Size(e.Interface()) + 1; size > limit {
			break
		}
		kept = reflect.Append(kept, e)
	}
	v.Set(kept)
	return true
}

// shortenMap keeps as many entries, in the order of their keys, as a limit allows.
func shortenMap(v reflect.Value, limit int) bool {
	kept, size := reflect.MakeMap(v.Type()), 2
	keys := v.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
	for _, key := range keys {
		e := reflect.New(v.Type().Elem()).Elem()
		e.Set(v.MapIndex(key))
		shorten(e, limit/4)
		if size += TextSize(key.String()) + Size(e.Interface()) + 2; size > limit {
			break
		}
		kept.SetMapIndex(key, e)
	}
	v.Set(kept)
	return true
}

// TextSize is how many bytes a text has as a JSON string.
func TextSize(s string) int {
	n := 2
	for _, r := range s {
		n += runeSize(r)
	}
	return n
}

func runeSize(r rune) int {
	switch {
	case r == '"' || r == '\\' || r == '\b' || r == '\f' || r == '\n' || r == '\r' || r == '\t':
		return 2
	case r < ' ':
		return 6
	}
	return utf8.RuneLen(r)
}

const ellipsis = "…"

// Text is the beginning of a text, so long that it has at most so many bytes as a JSON string.
func Text(s string, most int) string {
	n := TextSize(ellipsis)
	for i, r := range s {
		if n += runeSize(r); n > most {
			return s[:i] + ellipsis
		}
	}
	return s
}

// JSON is the beginning of a JSON value, as a value of the same kind with at most so many bytes.
// A member or element gets at most half of what is left, so that one long one does not hide the rest.
func JSON(v jsontext.Value, most int) jsontext.Value {
	if len(v) <= most {
		return v
	}
	switch v.Kind() {
	case '"':
		text, err := jsontext.AppendUnquote(nil, v)
		if err != nil {
			return jsontext.Value(`""`)
		}
		short, err := jsontext.AppendQuote(nil, Text(string(text), most))
		if err != nil {
			return jsontext.Value(`""`)
		}
		return short
	case '{':
		return cutComposite(v, most, '}')
	case '[':
		return cutComposite(v, most, ']')
	}
	return jsontext.Value("null") // a number that is longer than any double is
}

func cutComposite(v jsontext.Value, most int, end byte) jsontext.Value {
	d := jsontext.NewDecoder(bytes.NewReader(v))
	if _, err := d.ReadToken(); err != nil {
		return jsontext.Value{v[0], end}
	}
	out := []byte{v[0]}
	for d.PeekKind() != jsontext.Kind(end) {
		left := most - len(out) - len(",}")
		var name jsontext.Value
		if end == '}' {
			read, err := d.ReadValue()
			if err != nil {
				break
			}
			name = append(read.Clone(), ':')
		}
		value, err := d.ReadValue()
		if err != nil {
			break
		}
		if len(name) > most/2 {
			continue
		}
		if left -= len(name); len(value) > left/2 {
			if kind := value.Kind(); left/2 < shortestPart || kind != '"' && kind != '{' && kind != '[' {
				break
			}
			value = JSON(value, left/2)
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(out, name...), value...)
	}
	return append(out, end)
}

// shortestPart is the least that is left of a member or element that is cut.
const shortestPart = 32
