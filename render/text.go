package render

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"

	"golang.org/x/text/width"
)

// maxMarks is the maximum number of combining marks on a character: enough for any
// script, too few to overlap other lines.
const maxMarks = 4

// Clean escapes characters in untrusted text that are invisible or change how other
// text appears.
func Clean(s string) string { return clean(s, escape) }

// JSON escapes the same characters in a JSON text, which keeps its value.
func JSON(text string) string {
	lines := strings.Split(text, "\n") // outside of strings, as are tabs
	for i, line := range lines {
		indent := len(line) - len(strings.TrimLeft(line, "\t"))
		lines[i] = line[:indent] + clean(line[indent:], escapeJSON)
	}
	return strings.Join(lines, "\n")
}

// printable tells whether a text is ASCII without controls, as most are.
func printable(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

func clean(s string, escape func(*strings.Builder, rune)) string {
	if printable(s) {
		return s
	}
	var b strings.Builder
	marks := 0
	for _, r := range s {
		switch {
		case unicode.Is(unicode.Mn, r) || unicode.Is(unicode.Me, r):
			if marks++; marks > maxMarks {
				escape(&b, r)
				continue
			}
			b.WriteRune(r)
			continue
		case !unicode.IsPrint(r) || blank(r):
			escape(&b, r)
		default:
			b.WriteRune(r)
		}
		marks = 0
	}
	return b.String()
}

// blank reports whether a letter or symbol is invisible.
func blank(r rune) bool {
	switch r {
	case '\u115f', '\u1160', '\u2800', '\u3164', '\uffa0', unicode.ReplacementChar:
		return true
	}
	return false
}

func escape(b *strings.Builder, r rune) {
	switch {
	case r == '\n':
		b.WriteString(`\n`)
	case r == '\t':
		b.WriteString(`\t`)
	case r == '\r':
		b.WriteString(`\r`)
	case r > 0xffff:
		fmt.Fprintf(b, `\U%08x`, r)
	default:
		fmt.Fprintf(b, `\u%04x`, r)
	}
}

func escapeJSON(b *strings.Builder, r rune) {
	for _, unit := range utf16.Encode([]rune{r}) {
		fmt.Fprintf(b, `\u%04x`, unit)
	}
}

// columns returns the width of a character in terminal columns.
func columns(r rune) int {
	if unicode.In(r, unicode.Mn, unicode.Me) {
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	default:
		return 1
	}
}

func textWidth(s string) int {
	n := 0
	for _, r := range s {
		n += columns(r)
	}
	return n
}

// short truncates text to a number of columns and appends ….
func short(s string, most int) string {
	if textWidth(s) <= most {
		return s
	}
	n := 0
	for i, r := range s {
		if n += columns(r); n > most-1 {
			return s[:i] + "…"
		}
	}
	return s
}

// An ink is the colour and weight of text.
type ink uint8

const (
	plain ink = iota
	faint
	strong
	good
	bad
	warn
	firstVoice // followed by one voice for each principal
)

// inks are ANSI attributes. No voice is red, which means bad.
var inks = []string{
	plain: "", faint: "2", strong: "1", good: "32", bad: "31", warn: "33",
	firstVoice: "1;36", "1;32", "1;35", "1;34", "1;33", "1;96", "1;95", "1;94",
}

func voice(n int) ink {
	voices := len(inks) - int(firstVoice)
	return firstVoice + ink(n%voices) //nolint:gosec // less than the number of voices
}

// A span is text in one ink.
type span struct {
	text string
	ink  ink
}

func said(text string) span   { return span{text, plain} }
func hushed(text string) span { return span{text, faint} }
func loud(text string) span   { return span{text, strong} }

// A cell is one character and its ink.
type cell struct {
	r   rune
	ink ink
}

func cells(spans []span) []cell {
	var all []cell
	for _, s := range spans {
		for _, r := range Clean(s.text) {
			all = append(all, cell{r, s.ink})
		}
	}
	return all
}

func cellsWidth(line []cell) int {
	n := 0
	for _, c := range line {
		n += columns(c.r)
	}
	return n
}

// wrap breaks a line, at spaces if possible, into a first part of at most first columns
// and others of at most rest.
func wrap(line []cell, first, rest int) [][]cell {
	var lines [][]cell
	for most := first; ; most = rest {
		end := fits(line, most)
		if end == len(line) {
			return append(lines, line)
		}
		next := end
		for at := end; at > 0; at-- {
			if line[at].r == ' ' {
				end, next = at, at+1
				break
			}
		}
		lines = append(lines, line[:end])
		line = line[next:]
	}
}

// fits returns how many cells fit a number of columns: at least one.
func fits(line []cell, most int) int {
	n := 0
	for i, c := range line {
		if n += columns(c.r); n > most && i > 0 {
			return i
		}
	}
	return len(line)
}
