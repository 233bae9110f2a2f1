package ijson

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// PlainlyCanonical tells in one pass whether the data is I-JSON in RFC 8785
// form, as most envelopes come: their senders signed that form. Only a yes
// counts. It is not said of some that are, such as an object with names beyond
// ASCII or a number of more than 15 digits; those go the long way, through the
// canonicaliser, which alone words what is wrong.
func PlainlyCanonical(data []byte) bool {
	s := scan{data: data}
	return s.value(1) && s.at == len(s.data)
}

// A scan is how far the data has been read.
type scan struct {
	data []byte
	at   int
}

// next is the byte to come, 0 at the end.
func (s *scan) next() byte {
	if s.at < len(s.data) {
		return s.data[s.at]
	}
	return 0
}

func (s *scan) take(c byte) bool {
	if s.next() != c {
		return false
	}
	s.at++
	return true
}

func (s *scan) word(w string) bool {
	if !bytes.HasPrefix(s.data[s.at:], []byte(w)) {
		return false
	}
	s.at += len(w)
	return true
}

// value reads one value, which stands so deep if it is an object or a list.
func (s *scan) value(depth int) bool {
	switch s.next() {
	case '{':
		return depth <= MaxDepth && s.object(depth)
	case '[':
		return depth <= MaxDepth && s.list(depth)
	case '"':
		_, ok := s.text()
		return ok
	case 't':
		return s.word("true")
	case 'f':
		return s.word("false")
	case 'n':
		return s.word("null")
	default:
		return s.number()
	}
}

// object insists on names of plain ASCII, which rise as bytes do; so none stands
// twice.
func (s *scan) object(depth int) bool {
	s.at++
	if s.take('}') {
		return true
	}
	for before, first := []byte(nil), true; ; first = false {
		from := s.at
		if s.next() != '"' {
			return false
		}
		if plain, ok := s.text(); !ok || !plain {
			return false
		}
		name := s.data[from+1 : s.at-1]
		if !first && bytes.Compare(before, name) >= 0 {
			return false
		}
		if before = name; !s.take(':') || !s.value(depth+1) {
			return false
		}
		if !s.take(',') {
			return s.take('}')
		}
	}
}

func (s *scan) list(depth int) bool {
	s.at++
	if s.take(']') {
		return true
	}
	for s.value(depth + 1) {
		if !s.take(',') {
			return s.take(']')
		}
	}
	return false
}

// text reads a string whose quote comes next; plain is one of ASCII without
// escapes.
func (s *scan) text() (plain, ok bool) {
	plain = true
	for s.at++; s.at < len(s.data); {
		switch c := s.data[s.at]; {
		case c == '"':
			s.at++
			return plain, true
		case c == '\\':
			if plain = false; !s.escape() {
				return false, false
			}
		case c < ' ':
			return false, false
		case c < utf8.RuneSelf:
			s.at++
		default:
			plain = false
			r, size := utf8.DecodeRune(s.data[s.at:])
			if r == utf8.RuneError && size == 1 {
				return false, false
			}
			s.at += size
		}
	}
	return false, false
}

// escape takes those that RFC 8785 §3.2.2.2 writes.
func (s *scan) escape() bool {
	rest := s.data[s.at+1:]
	if len(rest) > 0 && strings.IndexByte(`"\bfnrt`, rest[0]) >= 0 {
		s.at += 2
		return true
	}
	if len(rest) < 5 || string(rest[:3]) != "u00" || rest[3] != '0' && rest[3] != '1' {
		return false
	}
	if strings.IndexByte("0123456789abcdef", rest[4]) < 0 || rest[3] == '0' && strings.IndexByte("89acd", rest[4]) >= 0 { // \b \t \n \f \r
		return false
	}
	s.at += 6
	return true
}

// number takes at most 15 digits and no exponent: so many survive a double, and
// are its shortest form where no zero stands at either end.
func (s *scan) number() bool {
	negative := s.take('-')
	from := s.at
	whole := s.digits()
	leading := whole > 0 && s.data[from] == '0'
	if whole == 0 || leading && whole > 1 {
		return false
	}
	if !s.take('.') {
		return whole <= 15 && (!negative || !leading)
	}
	fraction := s.digits()
	if fraction == 0 || s.data[s.at-1] == '0' || whole+fraction > 15 {
		return false
	}
	return !leading || !bytes.HasPrefix(s.data[from:], []byte("0.000000")) // 1e-7 has an exponent
}

func (s *scan) digits() int {
	from := s.at
	for c := s.next(); c >= '0' && c <= '9'; c = s.next() {
		s.at++
	}
	return s.at - from
}
