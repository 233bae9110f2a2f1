// Package ijson reads I-JSON (RFC 7493) and writes it in RFC 8785 form, which is what everybody
// signs and hashes. Of what it refuses it says where and why.
package ijson

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// MaxDepth is how deep objects and arrays may be nested (PROTOCOL.md §3).
const MaxDepth = 64

// Malformed says where JSON is not what it must be.
type Malformed struct {
	Path string // JSON pointer, "" for the whole
	Why  string
}

func (m *Malformed) Error() string {
	if m.Path == "" {
		return m.Why
	}
	return m.Path + ": " + m.Why
}

// Errorf is a *Malformed, cut where it is long.
func Errorf(path, format string, args ...any) error {
	return &Malformed{Path: clip(path), Why: clip(fmt.Sprintf(format, args...))}
}

// clip keeps a sender's own words in an error short: a key may be as long as
// the envelope.
func clip(s string) string {
	const most = 256
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

// Canonical reads one I-JSON value and returns its RFC 8785 bytes. It refuses duplicate keys,
// invalid UTF-8, numbers that a double cannot hold, and nesting deeper than MaxDepth. Data that is
// canonical already is returned itself, so do not change it afterwards.
func Canonical(data []byte) (jsontext.Value, error) { return CanonicalWithin(data, MaxDepth) }

// CanonicalWithin is Canonical for another depth.
func CanonicalWithin(data []byte, depth int) (jsontext.Value, error) {
	if PlainlyCanonical(data) {
		return data[:len(data):len(data)], nil
	}
	return canonicalise(data, depth)
}

// canonicalise does it by way of the library, for any spelling.
func canonicalise(data []byte, depth int) (jsontext.Value, error) {
	if err := checkIJSON(data, depth); err != nil {
		return nil, err
	}
	v := jsontext.Value(bytes.Clone(data))
	if err := v.Canonicalize(); err != nil {
		return nil, Errorf("", "not I-JSON")
	}
	return v, nil
}

// Canonicalise puts a value that is I-JSON already into RFC 8785 form.
func Canonicalise(v jsontext.Value) (jsontext.Value, error) {
	c := v.Clone()
	if PlainlyCanonical(v) {
		return c, nil
	}
	if err := c.Canonicalize(); err != nil {
		return nil, err
	}
	return c, nil
}

func checkIJSON(data []byte, depth int) error {
	d := jsontext.NewDecoder(bytes.NewReader(data))
	for {
		token, err := d.ReadToken()
		if errors.Is(err, io.EOF) && d.InputOffset() > 0 {
			return Errorf("", "the JSON ends early")
		}
		if err != nil {
			return Errorf(syntaxPath(d, err), "not I-JSON: %s, at %s", syntaxReason(err), place(data, d, err))
		}
		switch token.Kind() {
		case '{', '[':
			if d.StackDepth() > depth {
				return Errorf("", "nested deeper than %d", depth)
			}
		case '0':
			if !survivesDouble(token.String()) {
				return Errorf(string(d.StackPointer()), "the number is larger or has more digits than a double holds; send it as a string")
			}
		}
		if d.StackDepth() == 0 {
			break
		}
	}
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		return Errorf("", "more than one JSON value")
	}
	return nil
}

// syntaxPath is where the error is; the decoder itself stands before it.
func syntaxPath(d *jsontext.Decoder, err error) string {
	var syntactic *jsontext.SyntacticError
	if errors.As(err, &syntactic) {
		return string(syntactic.JSONPointer)
	}
	return string(d.StackPointer())
}

// place is where in the text the error is: lines and characters count from 1.
func place(data []byte, d *jsontext.Decoder, err error) string {
	at := d.InputOffset()
	if syntactic, is := errors.AsType[*jsontext.SyntacticError](err); is {
		at = syntactic.ByteOffset
	}
	before := data[:min(max(int(at), 0), len(data))]
	line := before[bytes.LastIndexByte(before, '\n')+1:]
	return fmt.Sprintf("line %d, column %d", bytes.Count(before, []byte("\n"))+1, utf8.RuneCount(line)+1)
}

// syntaxReason keeps what a sender can use of a decoder's error, in our words.
func syntaxReason(err error) string {
	switch text := err.Error(); {
	case errors.Is(err, jsontext.ErrDuplicateName):
		return "a key stands twice"
	case strings.Contains(text, "UTF-8") || strings.Contains(text, "surrogate"):
		return "the text is not valid UTF-8"
	case errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF):
		return "the JSON ends early"
	case strings.Contains(text, "depth"):
		return "nested too deep"
	default:
		return "not well-formed JSON"
	}
}

// survivesDouble reports whether a JSON number means the same after it went
// through an IEEE 754 double, as every other JSON program will make it do.
func survivesDouble(number string) bool {
	f, err := strconv.ParseFloat(number, 64)
	if err != nil || math.IsInf(f, 0) {
		return false
	}
	return SameDecimal(number, strconv.FormatFloat(f, 'e', -1, 64))
}

// SameDecimal reports whether two decimal numbers mean the same, however they are written.
func SameDecimal(a, b string) bool {
	digitsA, expA, okA := decimal(a)
	digitsB, expB, okB := decimal(b)
	return okA && okB && digitsA == digitsB && (expA == expB || digitsA == "")
}

// decimal takes a number apart into its significant digits and the power of
// ten of its last one.
func decimal(s string) (digits string, exp int, ok bool) {
	mantissa, exponent, hasExp := strings.Cut(strings.ToLower(s), "e")
	if hasExp {
		var err error
		if exp, err = strconv.Atoi(exponent); err != nil {
			return "", 0, false
		}
	}
	mantissa, negative := strings.CutPrefix(mantissa, "-")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits = strings.TrimLeft(whole+fraction, "0")
	exp -= len(fraction)
	trimmed := strings.TrimRight(digits, "0")
	exp += len(digits) - len(trimmed)
	if negative && trimmed != "" {
		trimmed = "-" + trimmed
	}
	return trimmed, exp, true
}
