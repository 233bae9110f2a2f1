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

// printable reports whether a text is ASCII without controls, as most are.
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

// A Span is text in one ink.
type Span struct {
	Text string
	ink  ink
}

// joined is the text of spans.
func joined(spans []Span) string {
	var b strings.Builder
	for _, s := range spans {
		b.WriteString(s.Text)
	}
	return b.String()
}

func said(text string) Span   { return Span{text, plain} }
func hushed(text string) Span { return Span{text, faint} }
func loud(text string) Span   { return Span{text, strong} }

// A cell is one character and its ink.
type cell struct {
	r   rune
	ink ink
}

func cells(spans []Span) []cell {
	var all []cell
	for _, s := range spans {
		for _, r := range Clean(s.Text) {
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

// A page is lines that fit a width.
type page struct {
	Style
	lines [][]cell
}

// put adds a line at an indent. It continues on lines indented by hang.
func (p *page) put(indent, hang int, spans ...Span) { p.putBeside(indent, hang, Span{}, spans...) }

func (p *page) putBeside(indent, hang int, right Span, spans ...Span) {
	edge := cells([]Span{right})
	first := p.width() - indent
	if len(edge) > 0 {
		first -= cellsWidth(edge) + 2
	}
	for i, line := range wrap(cells(spans), max(first, 8), max(p.width()-hang, 8)) {
		if i > 0 {
			p.lines = append(p.lines, append(spaces(hang), line...))
			continue
		}
		line = append(spaces(indent), line...)
		if len(edge) > 0 {
			line = append(line, spaces(max(p.width()-cellsWidth(line)-cellsWidth(edge), 2))...)
			line = append(line, edge...)
		}
		p.lines = append(p.lines, line)
	}
}

// quote adds free text with a bar before each line, so that it cannot imitate ours.
func (p *page) quote(indent int, text string) {
	text = strings.Trim(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	if text == "" {
		return
	}
	for line := range strings.SplitSeq(text, "\n") {
		for _, part := range wrap(cells([]Span{said(line)}), p.width()-indent-2, p.width()-indent-2) {
			bar := append(spaces(indent), cell{'│', faint}, cell{' ', plain})
			p.lines = append(p.lines, append(bar, part...))
		}
	}
}

// gap adds an empty line.
func (p *page) gap() { p.lines = append(p.lines, nil) }

// cut omits lines beyond a maximum, and says how many.
func (p *page) cut(most, indent int) {
	if p.Full || len(p.lines) <= most {
		return
	}
	left := len(p.lines) - most + 1
	p.lines = p.lines[:most-1]
	p.put(indent, indent, hushed("… "+Count(left, "more line", "more lines")+" (--full shows all)"))
}

// String returns the page as text.
func (p *page) String() string {
	var b strings.Builder
	for _, line := range p.lines {
		for len(line) > 0 && line[len(line)-1].r == ' ' {
			line = line[:len(line)-1]
		}
		p.write(&b, line)
		b.WriteByte('\n')
	}
	return b.String()
}

func (p *page) write(b *strings.Builder, line []cell) {
	now := plain
	for _, c := range line {
		if p.Colour && c.ink != now {
			if now != plain {
				b.WriteString("\x1b[0m")
			}
			if c.ink != plain {
				b.WriteString("\x1b[" + inks[c.ink] + "m")
			}
			now = c.ink
		}
		b.WriteRune(c.r)
	}
	if now != plain {
		b.WriteString("\x1b[0m")
	}
}

func spaces(n int) []cell {
	line := make([]cell, n)
	for i := range line {
		line[i].r = ' '
	}
	return line
}
