package transcript

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"github.com/parley-asp/parley/performatives"
)

// maxLine is one byte more than an entry may have: what is longer is cut there,
// and refused as too large when it is read.
const maxLine = 4*performatives.MaxEnvelope + 1

// ReadAll reads an exported transcript: one canonical delivered envelope per
// line, each line ended by a line feed, which the last may lack. It checks the
// form of each entry and nothing between them; that is for Verify. The error
// names the line, counted from 1.
func ReadAll(r io.Reader) ([]Entry, error) {
	var entries []Entry
	in := newLines(r)
	for in.next() {
		e, fault := read(in.line)
		if fault != nil {
			fault.Line = in.number
			return nil, *fault
		}
		entries = append(entries, e)
	}
	return entries, in.err
}

// Write exports entries, as ReadAll reads them.
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

// lines cuts JSON Lines at line feeds and nowhere else; memory is bounded by
// the longest entry there can be.
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
