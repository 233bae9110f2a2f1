package sessionlist

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"time"

	"github.com/parley-asp/parley/performatives"
)

// idLength is that of an id in letters.
const idLength = 36

// near is how far an id's time may be from the opening: agents' clocks differ, and some sign in advance.
const near = time.Hour

// OpenedApart is Row.Opened of a session that was opened at a time.
func OpenedApart(id performatives.SessionID, at time.Time) int64 {
	if off := at.Sub(time.UnixMilli(timeIn(compact(id)))); off.Abs() < near {
		return 0
	}
	return at.UnixMilli()
}

// timeIn is the time of a UUIDv7, in its first six bytes.
func timeIn(id [16]byte) int64 { return int64(binary.BigEndian.Uint64(id[:8]) >> 16) } //nolint:gosec // it has 48 bits

func withTime(id [16]byte, ms int64) [16]byte {
	after := id
	binary.BigEndian.PutUint64(after[:8], uint64(ms)<<16) //nolint:gosec // it has 48 bits
	copy(after[6:], id[6:])
	return after
}

// key is what a session sorts by.
func (t *table) key(id [16]byte) [16]byte {
	if key, apart := t.sorts[id]; apart {
		return key
	}
	return id
}

// compare compares two sessions by what they sort by.
func (t *table) compare(a, b [16]byte) int {
	one, two := t.key(a), t.key(b)
	return cmp.Or(bytes.Compare(one[:], two[:]), bytes.Compare(a[:], b[:]))
}
