package transcript

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"github.com/parley-asp/parley/performatives"
)

// maxLine is one byte more than an entry may have. Longer lines are cut there, and
// refused as too large.
const maxLine = 4*performatives.MaxEnvelope + 1

// ReadAll reads an exported transcript: one canonical delivered envelope per line.
// The last line feed may be missing. It checks each entry by itself; Verify checks
// the whole. The error names the line, counted from 1.
func ReadAll(r io.Reader) ([]Entry, error) {
	var entries []Entry
	in := newLines(r)
	for in.next() {
		e, fault, cause := read(in.line)
		if fault != nil {
			fault.Line = in.number
			return nil, unreadEntry(*fault, cause)
		}
		entries = append(entries, e)
	}
	return entries, in.err
}

// Write exports entries in the form that ReadAll reads.
func Write(w io.Writer, entries []Entry) error {
	out := bufio.NewWriter(w)
	for _, e := range entries {
		if _, err := out.Write(e.Bytes); err != nil {
			return err
		}
		if err := out.WriteByte('\n'); err != nil {
			return err
		}
	}
	return out.Flush()
}

// lines reads JSON Lines. It uses no more memory than the longest possible entry.
type lines struct {
	in     *bufio.Reader
	line   []byte // valid until next
	number int    // from 1
	err    error
}

func newLines(r io.Reader) *lines { return &lines{in: bufio.NewReader(r)} }

func (l *lines) next() bool {
	l.line = l.line[:0]
	for {
		part, err := l.in.ReadSlice('\n')
		ended := err == nil
		if ended {
			part = part[:len(part)-1]
		}
		l.line = append(l.line, part[:min(len(part), maxLine-len(l.line))]...)
		switch {
		case ended:
			l.number++
			return true
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF):
			if len(l.line) > 0 {
				l.number++
				return true
			}
			return false
		default:
			l.err = fmt.Errorf("line %d: %w", l.number+1, err)
			return false
		}
	}
}
