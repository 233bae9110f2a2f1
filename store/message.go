package store

import (
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// A Header is the header of a message.
type Header = nats.Header

// A Message is one that a stream holds, or one that is to be stored.
type Message struct {
	Subject  string
	Sequence uint64 // in its stream; 0 before it is stored
	Header   Header
	Data     []byte
	Time     time.Time
}

// Headers that the server acts on.
const (
	TTLHeader            = jetstream.MsgTTLHeader
	RollupHeader         = jetstream.MsgRollup
	RollupSubject        = jetstream.MsgRollupSubject
	ScheduleHeader       = jetstream.ScheduleHeader
	ScheduleTargetHeader = jetstream.ScheduleTargetHeader
)

var (
	// ErrConflict means that a conditional write lost the race: something newer
	// is stored.
	ErrConflict = errors.New("something newer is stored")

	// ErrIndeterminate means that a write was not acknowledged, so nobody knows
	// whether it happened: read before you answer.
	ErrIndeterminate = errors.New("the write was not acknowledged")

	// ErrSyncFailed means that the disk failed. Nothing is answered any more from
	// what it may not hold; the next start finds out what it does hold.
	ErrSyncFailed = errors.New("the disk did not take what was written; restart the broker when it does")
)

// API error codes of the server.
const (
	codeWrongLastSequence = 10071 // the race is lost
	codeRetryWrite        = 10164 // the same on a replicated stream, also spuriously
)

// writeError tells the three ways in which a write fails: ErrConflict,
// ErrIndeterminate, or the server's refusal.
func writeError(err error) error {
	var refused *jetstream.APIError
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &refused):
		return fmt.Errorf("%w: %w", ErrIndeterminate, err)
	case refused.ErrorCode == codeWrongLastSequence, refused.ErrorCode == codeRetryWrite:
		return ErrConflict
	}
	return err
}
