package render

import (
	"math"
	"slices"
	"strings"
)

const (
	columnGap = 2
	// idPrefix is how much of a UUIDv7 a narrow table shows: the time and 12 random bits.
	idPrefix = len("019478a3-7b2c-7def")
	// minFlexible is the narrowest that a flexible column becomes.
	minFlexible = 8
)

// A column of a table. A table that is too wide for a terminal shortens its ids, then
// truncates flexible columns, then omits optional columns, rightmost first.
type column struct {
	title string
	kind  columnKind
}

type columnKind uint8

const (
	fixed columnKind = iota
	identifier
	flexible
	optional         // omitted if necessary
	flexibleOptional // truncated or omitted
)

func (k columnKind) flexes() bool   { return k == flexible || k == flexibleOptional }
func (k columnKind) optional() bool { return k == optional || k == flexibleOptional }

// table formats rows under a heading. Without a width, for a program, cells are
// complete. With Full, rows that are too wide continue on the next line.
func table(s Style, none string, columns []column, rows [][]Span) string {
	if s.Width == 0 {
		s.Width = math.MaxInt32
	}
	p := &page{Style: s}
	if len(rows) == 0 {
		p.put(0, 0, hushed(none))
		return p.String()
	}
	for _, r := range rows {
		for i := range r {
			r[i].Text = Clean(r[i].Text)
		}
	}
	if !s.Full {
		columns, rows = fitted(p.width(), columns, rows)
	}
	widths := natural(columns, rows)
	title := make([]Span, len(columns))
	for i, c := range columns {
		title[i] = hushed(c.title)
	}
	for _, r := range slices.Insert(rows, 0, title) {
		var line []Span
		for i, cell := range r {
			if i > 0 {
				pad := widths[i-1] - textWidth(r[i-1].Text) + columnGap
				line = append(line, said(strings.Repeat(" ", pad)))
			}
			line = append(line, cell)
		}
		p.put(0, 4, line...)
	}
	return p.String()
}

// natural returns the widths of columns that show every cell in full.
func natural(columns []column, rows [][]Span) []int {
	widths := make([]int, len(columns))
	for i, c := range columns {
		widths[i] = textWidth(c.title)
		for _, r := range rows {
			widths[i] = max(widths[i], textWidth(r[i].Text))
		}
	}
	return widths
}

// fitted shortens, truncates and omits columns until rows fit the width, if they can.
func fitted(width int, columns []column, rows [][]Span) ([]column, [][]Span) {
	excess := func(widths []int) int {
		sum := columnGap * (len(widths) - 1)
		for _, w := range widths {
			sum += w
		}
		return sum - width
	}
	cut := func(i, most int) {
		for _, r := range rows {
			r[i].Text = short(r[i].Text, most)
		}
	}
	if excess(natural(columns, rows)) <= 0 {
		return columns, rows
	}
	for i, c := range columns {
		if c.kind == identifier {
			for _, r := range rows {
				id := []rune(r[i].Text)
				r[i].Text = string(id[:min(len(id), idPrefix)])
			}
		}
	}
	for {
		widths := natural(columns, rows)
		least := slices.Clone(widths)
		omit := -1
		for i, c := range columns {
			if c.kind.flexes() {
				least[i] = min(widths[i], max(minFlexible, textWidth(c.title)))
			}
			if c.kind.optional() {
				omit = i
			}
		}
		if excess(least) <= 0 || omit < 0 {
			for i, c := range slices.Backward(columns) {
				if over := excess(widths); over > 0 && c.kind.flexes() {
					widths[i] = max(least[i], widths[i]-over)
					cut(i, widths[i])
				}
			}
			return columns, rows
		}
		columns = slices.Delete(slices.Clone(columns), omit, omit+1)
		for n := range rows {
			rows[n] = slices.Delete(rows[n], omit, omit+1)
		}
	}
}
