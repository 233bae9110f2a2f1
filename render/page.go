package render

import "strings"

// A page is lines that fit a width.
type page struct {
	Style
	lines [][]cell
}

// put adds a line at an indent. It continues on lines indented by hang.
func (p *page) put(indent, hang int, spans ...span) { p.putBeside(indent, hang, span{}, spans...) }

func (p *page) putBeside(indent, hang int, right span, spans ...span) {
	edge := cells([]span{right})
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
		for _, part := range wrap(cells([]span{said(line)}), p.width()-indent-2, p.width()-indent-2) {
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
	p.put(indent, indent, hushed("… "+count(left, "more line", "more lines")+" (--full shows all)"))
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
