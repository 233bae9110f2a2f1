package sessionlist

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strconv"
	"time"

	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// A Place is where a session stands in lists: by when it was opened, then by its id. The zero Place is after the newest.
type Place struct {
	opened int64 // Unix time in milliseconds
	id     [16]byte
}

// Session is the session's id.
func (p Place) Session() performatives.SessionID { return written(p.id) }

// Opened is when the session was opened.
func (p Place) Opened() time.Time { return time.UnixMilli(p.opened) }

// Compare says which place is newer.
func (p Place) Compare(q Place) int {
	return cmp.Or(cmp.Compare(p.opened, q.opened), bytes.Compare(p.id[:], q.id[:]))
}

// Including is the place of which a page has p too, as the first.
func (p Place) Including() Place {
	for n := len(p.id) - 1; n >= 0; n-- {
		if p.id[n]++; p.id[n] > 0 {
			break
		}
	}
	return p
}

// openedDigits are those of the time in a cursor, "-" follows.
const openedDigits = 12

// Cursor is the place in a request. It says all that the next page needs to know: nobody looks whether there is such a session.
func (p Place) Cursor() string {
	switch {
	case p == Place{}:
		return ""
	case p.opened == timeIn(p.id):
		return string(written(p.id))
	}
	return fmt.Sprintf("%0*x-%s", openedDigits, p.opened, written(p.id))
}

// ParseCursor reads a Cursor.
func ParseCursor(cursor string) (p Place, err error) {
	if cursor == "" {
		return p, nil
	}
	id := cursor
	if len(cursor) == openedDigits+1+idLength && cursor[openedDigits] == '-' {
		id = cursor[openedDigits+1:]
		p.opened, err = strconv.ParseInt(cursor[:openedDigits], 16, 64)
	}
	if p.id = compact(performatives.SessionID(id)); err != nil || p.opened < 0 || len(id) != idLength || p.id == [16]byte{} {
		return Place{}, NoCursor()
	}
	if id == cursor {
		p.opened = timeIn(p.id)
	}
	return p, nil
}

// NoCursor refuses what is no cursor.
func NoCursor() error {
	return session.Refuse(session.MalformedEnvelope, "cursor is next of the page before").With(map[string]string{"path": "/cursor"})
}

// near is how far an id's time may be from the opening: agents' clocks differ.
const near = 5 * time.Minute

// OpenedApart is Row.Opened of a session that was opened at a time.
func OpenedApart(id performatives.SessionID, at time.Time) int64 {
	if at.Sub(time.UnixMilli(timeIn(compact(id)))).Abs() < near {
		return 0
	}
	return at.UnixMilli()
}

// timeIn is the time of a UUIDv7, in its first six bytes.
func timeIn(id [16]byte) int64 { return int64(binary.BigEndian.Uint64(id[:8]) >> 16) } // it has 48 bits

// idLength is that of an id in letters.
const idLength = 36

// compact is a session's id in 16 bytes, all zero for what is not an id.
func compact(id performatives.SessionID) (c [16]byte) {
	digits := bytes.ReplaceAll([]byte(id), []byte("-"), nil)
	if len(digits) != 2*len(c) {
		return c
	}
	if _, err := hex.Decode(c[:], digits); err != nil {
		return [16]byte{}
	}
	return c
}

// written is a session's id in letters.
func written(id [16]byte) performatives.SessionID {
	h := make([]byte, 0, idLength)
	for n, part := range [][]byte{id[:4], id[4:6], id[6:8], id[8:10], id[10:]} {
		if n > 0 {
			h = append(h, '-')
		}
		h = hex.AppendEncode(h, part)
	}
	return performatives.SessionID(h)
}
