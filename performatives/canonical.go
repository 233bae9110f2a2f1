package performatives

import (
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/internal/ijson"
)

// MaxEnvelope is how many bytes an envelope has at most (PROTOCOL.md §3).
const MaxEnvelope = 256 << 10

// ErrTooLarge is for an envelope of more than MaxEnvelope bytes.
var ErrTooLarge = fmt.Errorf("the envelope has more than %d bytes", MaxEnvelope)

// Malformed says where an envelope is not what it must be.
type Malformed = ijson.Malformed

func malformed(path, format string, args ...any) error { return ijson.Errorf(path, format, args...) }

// Canonical reads one I-JSON value (RFC 7493) and returns its RFC 8785 bytes. Neither the data nor
// its canonical form may have more than MaxEnvelope bytes. Data that is canonical already is
// returned itself, so do not change it afterwards.
func Canonical(data []byte) (jsontext.Value, error) {
	if len(data) > MaxEnvelope {
		return nil, ErrTooLarge
	}
	v, err := ijson.Canonical(data)
	if err != nil {
		return nil, err
	}
	// RFC 8785 writes 1e20 as 21 digits: what is signed, kept and delivered has
	// to fit as well.
	if len(v) > MaxEnvelope {
		return nil, ErrTooLarge
	}
	return v, nil
}
