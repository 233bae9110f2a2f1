package client

import (
	"context"
	"log/slog"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/client/internal/web"
	"github.com/parley-asp/parley/performatives"
)

// gaps notices what a broken connection swallowed. The server thinks it
// delivered and sends it again only when the ack wait is over, while newer
// messages come at once; so that a session stays in order, what is missing
// before a message is read from the transcript.
type gaps struct {
	delivery   uint64 // the consumer's number of the last delivery
	reconnects uint64 // when it came
	losses     int    // how often a connection broke and deliveries were missing after
	tops       map[performatives.SessionID]top
}

// A top is the last entry that came of a session.
type top struct {
	sequence uint64
	losses   int // when it came
}

// missing tells from which entry on something may be missing before this one.
func (g *gaps) missing(m *Message, delivery, reconnects uint64) (from uint64, may bool) {
	if g.delivery > 0 && delivery != g.delivery+1 && reconnects != g.reconnects {
		g.losses++
	}
	g.delivery, g.reconnects = delivery, reconnects
	k := m.key()
	last, known := g.tops[k.session]
	if known && last.sequence >= k.sequence {
		return 0, false
	}
	if g.tops == nil {
		g.tops = map[performatives.SessionID]top{}
	}
	if g.tops[k.session] = (top{k.sequence, g.losses}); m.State().Over() {
		delete(g.tops, k.session)
	}
	return last.sequence + 1, known && last.losses != g.losses && last.sequence+1 < k.sequence
}

// deliver puts a delivery into the mailbox, behind what is missing before it.
func (f *feed) deliver(ctx context.Context, raw jetstream.Msg) {
	in := f.in
	at, err := raw.Metadata()
	if err != nil {
		return // not from JetStream
	}
	entry, err := readEntry(raw.Data(), jsontext.Value(raw.Headers().Get(api.SealedHeader)))
	if err != nil {
		in.mu.Lock()
		defer in.mu.Unlock()
		in.fault(at.Sequence.Stream, &unreadable{err})
		return
	}
	m := &Message{Entry: entry, trace: raw.Headers().Get(web.TraceParent), inbox: in, came: []delivery{{f, raw}}}
	from, may := f.gaps.missing(m, at.Sequence.Consumer, in.client.link.nc.Stats().Reconnects)
	if may {
		f.fill(ctx, m.Message.Session, from, m.Stamp.Sequence)
	}
	in.mu.Lock()
	again := in.put(m)
	in.mu.Unlock()
	if again {
		if err := raw.Ack(); err != nil {
			in.client.link.log.Debug("not acknowledged again", slog.Any("error", err))
		}
	}
}

// fill reads the entries of others from one place up to before another. What
// cannot be read now is delivered again later.
func (f *feed) fill(ctx context.Context, id performatives.SessionID, from, end uint64) {
	in := f.in
	ctx, cancel := context.WithTimeout(ctx, 2*in.client.link.timeout)
	defer cancel()
	for e, err := range in.client.entries(ctx, id, from) {
		if err != nil {
			in.client.link.log.Warn("a gap stays in the inbox", slog.String("session", string(id)), slog.Any("error", err))
			return
		}
		if e.Stamp.Sequence >= end {
			return
		}
		if e.Message.Sender == in.client.agent || e.Message.DecodeBody() != nil {
			continue
		}
		in.mu.Lock()
		in.put(&Message{Entry: e, inbox: in, came: []delivery{{by: f}}})
		in.mu.Unlock()
	}
}
