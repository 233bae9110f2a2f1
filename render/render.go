// Package render formats sessions as text for people.
//
//	chat := render.NewChat(render.Style{Width: 100, Colour: true})
//	for _, entry := range entries {
//		fmt.Print(chat.Add(entry))
//	}
//	fmt.Print(chat.End(view))
//
// Invariants:
//
//   - A counterparty's text cannot control the terminal: control, bidirectional and
//     invisible characters appear as escapes such as \u202e, and free text has a bar
//     before each line.
//   - Without Colour the output contains no escape sequence.
//   - No line is wider than Width columns, which is at least 40. Omitted lines are
//     counted, and truncated text ends in ….
//
// The package is pure: no terminal, no clock. Times are in UTC.
package render

import (
	"fmt"
	"strings"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/transcript"
)

// Style is how to format.
type Style struct {
	Width  int  // columns, at least 40; 0 without a terminal: 100, and tables of any width
	Colour bool // with ANSI escape sequences
	Full   bool // omit nothing: every line of a long message, every id, every cell
}

const (
	defaultWidth = 100
	minWidth     = 40
)

func (s Style) width() int {
	if s.Width == 0 {
		return defaultWidth
	}
	return max(s.Width, minWidth)
}

// Conversation formats a transcript, or its beginning and some later entries, and the
// session's state. It says how many entries are left out.
func Conversation(entries []transcript.Entry, view api.SessionView, s Style) string {
	chat := NewChat(s)
	var out strings.Builder
	next := uint64(0)
	for _, e := range entries {
		out.WriteString(leftOutFrom(next, e.Stamp.Sequence, s))
		out.WriteString(chat.Add(e))
		next = e.Stamp.Sequence + 1
	}
	if last := view.Head.Sequence; last != nil {
		out.WriteString(leftOutFrom(next, *last+1, s))
	}
	out.WriteString(chat.End(view))
	return out.String()
}

// leftOutFrom says that the entries from one sequence number to another are left out.
func leftOutFrom(from, to uint64, s Style) string {
	if to <= from {
		return ""
	}
	p := &page{Style: s}
	p.gap()
	p.put(bodyIndent, bodyIndent, span{fmt.Sprintf("… %s left out (--cursor %d begins with them)", count(int(to-from), "message", "messages"), from), warn}) //nolint:gosec // a session has fewer
	return p.String()
}
