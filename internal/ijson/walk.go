package ijson

import (
	"iter"

	"github.com/go-json-experiment/json/jsontext"
)

// Members returns the names and values of a PlainlyCanonical object.
func Members(object jsontext.Value) iter.Seq2[[]byte, jsontext.Value] {
	return func(yield func([]byte, jsontext.Value) bool) {
		for at := 1; at < len(object)-1; {
			colon := Past(object, at)
			end := Past(object, colon+1)
			if !yield(object[at+1:colon-1], object[colon+1:end]) {
				return
			}
			at = end + 1
		}
	}
}

// Items returns the items of a PlainlyCanonical array.
func Items(list jsontext.Value) iter.Seq[jsontext.Value] {
	return func(yield func(jsontext.Value) bool) {
		for at := 1; at < len(list)-1; {
			end := Past(list, at)
			if !yield(list[at:end]) {
				return
			}
			at = end + 1
		}
	}
}

// Past is where the value ends that begins there, or the end of the text, past
// which there is nothing. The text is canonical: without spaces, and well-formed.
func Past(text []byte, at int) int {
	for depth := 0; at < len(text); at++ {
		switch text[at] {
		case '"':
			for at++; at < len(text) && text[at] != '"'; at++ {
				if text[at] == '\\' {
					at++
				}
			}
			if depth == 0 {
				return min(at+1, len(text))
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return at // after a number or a word
			}
			if depth--; depth == 0 {
				return at + 1
			}
		case ',', ':':
			if depth == 0 {
				return at
			}
		}
	}
	return len(text)
}
