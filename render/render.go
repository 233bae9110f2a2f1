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

// Conversation formats a transcript and the session's state.
func Conversation(entries []transcript.Entry, view api.SessionView, s Style) string {
	chat := NewChat(s)
	var out strings.Builder
	for _, e := range entries {
		out.WriteString(chat.Add(e))
	}
	out.WriteString(chat.End(view))
	return out.String()
}
