// Package render draws sessions as text that a person reads.
//
//	chat := render.NewChat(render.Style{Width: 100, Colour: true})
//	for _, entry := range entries {
//		fmt.Print(chat.Add(entry))
//	}
//	fmt.Print(chat.End(view))
//
// Invariants:
//
//   - What comes from a counterparty cannot draw: control characters, marks that
//     turn the reading direction, and invisible characters are shown as escapes
//     such as \u202e, and free text stands behind a bar of its own.
//   - Without Colour the output holds no escape sequence.
//   - No line is wider than Width columns, but for Width below 40, and nothing
//     that is left out goes without saying how much it was.
//
// The package is pure: no terminal, no clock. Times are shown in UTC.
package render

import (
	"strings"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/transcript"
)

// Style says how to draw.
type Style struct {
	Width  int  // columns, at least 40; 0 is no terminal: 100, and lists as wide as they are
	Colour bool // with ANSI escape sequences
	Full   bool // leave nothing out: every line of a long message, every id
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

// Conversation draws a whole transcript and how the session stands.
func Conversation(entries []transcript.Entry, view api.SessionView, s Style) string {
	chat := NewChat(s)
	var out strings.Builder
	for _, e := range entries {
		out.WriteString(chat.Add(e))
	}
	out.WriteString(chat.End(view))
	return out.String()
}
