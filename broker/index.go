package broker

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/zap"

	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/wire"
)

// index is the list of sessions: who takes part in which, and its state. It is
// derived from the transcripts; memory follows the stream.
type index struct {
	b *Broker

	mu       sync.RWMutex
	sessions map[performatives.SessionID]line
	parties  map[performatives.Agent][]performatives.SessionID

	open, opening map[performatives.Agent]int // sessions by inviter: not over, about to be opened
}

// A line is what the index holds of a session.
type line struct {
	State   session.Phase         `json:"state"`
	Parties []performatives.Agent `json:"participants"`
	Entries uint64                `json:"entries"` // of the transcript that it was made from
}

func (b *Broker) openIndex(ctx context.Context) error {
	b.index = &index{
		b: b, sessions: map[performatives.SessionID]line{}, parties: map[performatives.Agent][]performatives.SessionID{},
		open: map[performatives.Agent]int{}, opening: map[performatives.Agent]int{},
	}
	return b.followStream(ctx, wire.IndexStream, func(m jetstream.Msg) {
		id, err := performatives.ParseSessionID(strings.TrimPrefix(m.Subject(), wire.Index("")))
		if err != nil {
			return
		}
		var l line
		if err := json.Unmarshal(m.Data(), &l); err != nil {
			b.Log.Error("index", zap.String("subject", m.Subject()), zap.Error(err))
			return
		}
		b.index.keep(id, l)
	})
}

// followStream reads the last message of each subject of a stream, returns
// when it has them all, and goes on in the background.
func (b *Broker) followStream(ctx context.Context, stream string, saw func(jetstream.Msg)) error {
	c, err := b.js.OrderedConsumer(ctx, stream, jetstream.OrderedConsumerConfig{DeliverPolicy: jetstream.DeliverLastPerSubjectPolicy})
	if err != nil {
		return err
	}
	info, err := c.Info(ctx)
	if err != nil {
		return err
	}
	caughtUp := make(chan struct{})
	left := info.NumPending
	if left == 0 {
		close(caughtUp)
	}
	consuming, err := c.Consume(func(m jetstream.Msg) {
		saw(m)
		if left > 0 {
			if left--; left == 0 {
				close(caughtUp)
			}
		}
	})
	if err != nil {
		return err
	}
	b.background(func(ctx context.Context) {
		<-ctx.Done()
		consuming.Stop()
	})
	select {
	case <-caughtUp:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// note makes memory agree with an act before it is answered, so that whoever
// has the acceptance finds what it did.
func (b *Broker) note(l *live, before session.Phase) {
	roll := l.state.Roll()
	if before != l.state.Phase || l.members != len(roll) {
		b.index.keep(l.id, line{l.state.Phase, roll, l.state.Next})
	}
	if before == session.Escalated || l.state.Phase == session.Escalated {
		item := b.item(l, l.state.NewestEscalation())
		b.items.keep(&item)
	}
}

// keep takes the newer word on a session.
func (x *index) keep(id performatives.SessionID, l line) {
	x.mu.Lock()
	defer x.mu.Unlock()
	old := x.sessions[id]
	if old.Entries > l.Entries {
		return
	}
	for _, a := range l.Parties {
		if !slices.Contains(old.Parties, a) {
			x.parties[a] = insert(x.parties[a], id)
		}
	}
	x.count(old, l)
	x.sessions[id] = l
}

// names tells whether a session names a principal, without reading it.
func (x *index) names(id performatives.SessionID, a performatives.Agent) bool {
	x.mu.RLock()
	defer x.mu.RUnlock()
	_, there := slices.BinarySearch(x.parties[a], id)
	return there
}

// insert keeps a list of sessions sorted: UUIDv7s sort by when they were made.
func insert(ids []performatives.SessionID, id performatives.SessionID) []performatives.SessionID {
	at, there := slices.BinarySearch(ids, id)
	if there {
		return ids
	}
	return slices.Insert(ids, at, id)
}

// of lists the sessions of a principal ("" for all) that are in a state ("" for
// any), the newest first, before a cursor.
func (x *index) of(a performatives.Agent, state, before string) []performatives.SessionID {
	x.mu.RLock()
	defer x.mu.RUnlock()
	ids := x.parties[a]
	if a == "" {
		ids = make([]performatives.SessionID, 0, len(x.sessions))
		for id := range x.sessions {
			ids = append(ids, id)
		}
		slices.Sort(ids)
	}
	return x.newest(ids, state, before)
}

// newest picks from sorted sessions.
func (x *index) newest(ids []performatives.SessionID, state, before string) []performatives.SessionID {
	var found []performatives.SessionID
	for i := len(ids) - 1; i >= 0; i-- {
		if (before == "" || string(ids[i]) < before) && (state == "" || x.sessions[ids[i]].State.String() == state) {
			found = append(found, ids[i])
		}
	}
	return found
}

// reindex writes the session's line if it has changed.
func (b *Broker) reindex(ctx context.Context, l *live) error {
	roll := l.state.Roll()
	if l.indexed == l.state.Phase && l.members == len(roll) {
		return nil
	}
	now := line{l.state.Phase, roll, l.state.Next}
	data, err := json.Marshal(now)
	if err != nil {
		return err
	}
	if _, err := b.js.PublishMsg(ctx, &nats.Msg{Subject: wire.Index(l.id), Data: data}); err != nil {
		return fmt.Errorf("index: %w", err)
	}
	b.index.keep(l.id, now)
	l.indexed, l.members = l.state.Phase, len(roll)
	return nil
}
