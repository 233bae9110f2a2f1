package store

import (
	"errors"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-asp/parley/internal/pending"
)

// Acknowledgements are read as servers write them, and what is none is never
// taken for one.
func TestReadAck(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		ack      string
		status   string
		sequence uint64
		err      error // or any, where sequence is 0
	}{
		{ack: `{"stream":"S","seq":7}`, sequence: 7},
		{ack: `{"stream":"S","seq":18446744073709551615}`, sequence: 1<<64 - 1},
		{ack: `{"stream":"S","domain":"hub","seq":7}`, sequence: 7},
		{ack: `{"stream":"S", "seq": 7, "duplicate": true}`, sequence: 7},
		{ack: `{"error":{"code":400,"err_code":10071,"description":"wrong last sequence: 3"},"stream":"S","seq":0}`, err: ErrConflict},
		{ack: `{"error":{"code":400,"err_code":10164,"description":"wrong last sequence"},"stream":"S","seq":0}`, err: ErrConflict},
		{status: "503", err: ErrIndeterminate},
		{ack: `{"stream":"OTHER","seq":7}`, err: ErrIndeterminate},
		{ack: `{"stream":"SS","seq":7}`, err: ErrIndeterminate},
		{ack: `{"stream":"S","seq":0}`, err: ErrIndeterminate},
		{ack: `{"stream":"S","seq":-1}`, err: ErrIndeterminate},
		{ack: `{"stream":"S","seq":}`, err: ErrIndeterminate},
		{ack: `{"stream":"S"}`, err: ErrIndeterminate},
		{ack: `{"stream":"S","seq":7`, err: ErrIndeterminate},
		{ack: `+ACK`, err: ErrIndeterminate},
		{ack: ``, err: ErrIndeterminate},
	} {
		m := &nats.Msg{Data: []byte(c.ack), Header: nats.Header{}}
		if c.status != "" {
			m.Header.Set("Status", c.status)
		}
		got := readAck("S", m)
		if got.sequence != c.sequence || (got.err == nil) != (c.sequence > 0) {
			t.Errorf("%s%s: %d, %v", c.ack, c.status, got.sequence, got.err)
		}
		if c.err != nil && !errors.Is(writeError(got.err), c.err) {
			t.Errorf("%s%s: %v is not %v", c.ack, c.status, got.err, c.err)
		}
	}
}

// A message has one outcome, and silence says nothing about the stream.
func TestWriteError(t *testing.T) {
	t.Parallel()
	for _, indeterminate := range []error{pending.ErrTimeout, pending.ErrClosed, errDisconnected, jetstream.ErrNoStreamResponse} {
		if err := writeError(indeterminate); !errors.Is(err, ErrIndeterminate) || errors.Is(err, ErrConflict) {
			t.Errorf("%v is told as %v", indeterminate, err)
		}
	}
	if err := writeError(nil); err != nil {
		t.Errorf("success is told as %v", err)
	}
}
