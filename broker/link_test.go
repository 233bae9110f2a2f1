package broker

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Acknowledgements are read as servers write them, and what is none is never
// taken for one.
func TestReadAck(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		ack      string
		status   string
		position uint64
		err      error // or any, where position is 0
	}{
		{ack: `{"stream":"S","seq":7}`, position: 7},
		{ack: `{"stream":"S","seq":18446744073709551615}`, position: 1<<64 - 1},
		{ack: `{"stream":"S","domain":"hub","seq":7}`, position: 7},
		{ack: `{"stream":"S", "seq": 7, "duplicate": true}`, position: 7},
		{ack: `{"error":{"code":400,"err_code":10071,"description":"wrong last sequence: 3"},"stream":"S","seq":0}`, err: errStale},
		{ack: `{"error":{"code":400,"err_code":10164,"description":"wrong last sequence"},"stream":"S","seq":0}`, err: errStale},
		{status: "503", err: errUnknown},
		{ack: `{"stream":"OTHER","seq":7}`, err: errUnknown},
		{ack: `{"stream":"SS","seq":7}`, err: errUnknown},
		{ack: `{"stream":"S","seq":0}`, err: errUnknown},
		{ack: `{"stream":"S","seq":-1}`, err: errUnknown},
		{ack: `{"stream":"S","seq":}`, err: errUnknown},
		{ack: `{"stream":"S"}`, err: errUnknown},
		{ack: `{"stream":"S","seq":7`, err: errUnknown},
		{ack: `+ACK`, err: errUnknown},
		{ack: ``, err: errUnknown},
	} {
		m := &nats.Msg{Data: []byte(c.ack), Header: nats.Header{}}
		if c.status != "" {
			m.Header.Set("Status", c.status)
		}
		got := readAck("S", m)
		if got.position != c.position || (got.err == nil) != (c.position > 0) {
			t.Errorf("%s%s: %d, %v", c.ack, c.status, got.position, got.err)
		}
		if c.err != nil && !errors.Is(appendError(got.err), c.err) {
			t.Errorf("%s%s: %v is not %v", c.ack, c.status, got.err, c.err)
		}
	}
}

// Each message has one outcome, however it comes: an acknowledgement, silence,
// or the end of the connection.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	begin := time.Now().Add(-time.Minute)
	l := &link{sent: newSlots("r.", 4, time.Hour, func(s *sent, why error) { s.done <- outcome{err: why} })}
	var all []*sent
	for i := range 4 {
		s := &sent{stream: "S", done: make(chan outcome, 1)}
		if reply, err := l.sent.put(s); err != nil || reply != fmt.Sprint("r.", i+1) {
			t.Fatal(reply, err)
		}
		l.sent.open[uint64(i+1)] = slot[*sent]{s, begin.Add(time.Duration(i) * time.Second)}
		all = append(all, s)
	}
	ack := &nats.Msg{Subject: "r.4", Data: []byte(`{"stream":"S","seq":7}`)}
	l.acknowledged(ack)
	l.acknowledged(ack) // again
	l.acknowledged(&nats.Msg{Subject: "r.zz", Data: ack.Data})
	l.acknowledged(&nats.Msg{Subject: "r.", Data: ack.Data})
	l.sent.fail(errSilence, begin.Add(time.Second))
	l.sent.end(errLinkBroke)
	for i, want := range []error{errSilence, errSilence, errLinkBroke, nil} {
		position, err := all[i].stored()
		if !errors.Is(err, want) || (err == nil) != (position == 7) {
			t.Errorf("%d: %d, %v", i, position, err)
		}
	}
	if _, err := l.send("S", &nats.Msg{Header: nats.Header{}}, 0); !errors.Is(err, errLinkBroke) {
		t.Errorf("sent over a link that has ended: %v", err)
	}
	if errors.Is(appendError(errSilence), errStale) || !errors.Is(appendError(jetstream.ErrNoStreamResponse), errUnknown) {
		t.Error("silence says nothing about the stream")
	}
}
