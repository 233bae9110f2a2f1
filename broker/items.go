package broker

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/zap"

	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/wire"
)

// items is the escalation inbox: one subject for each escalation, whose last
// message says how it stands. It is derived from the transcripts.
type items struct {
	b *Broker

	mu   sync.RWMutex
	byID map[escalation.ID]wire.EscalationItem
}

func (b *Broker) openItems(ctx context.Context) error {
	b.items = &items{b: b, byID: map[escalation.ID]wire.EscalationItem{}}
	return b.followStream(ctx, wire.EscalationsStream, func(m jetstream.Msg) {
		var item wire.EscalationItem
		if err := json.Unmarshal(m.Data(), &item); err != nil {
			b.Log.Error("escalation item", zap.String("subject", m.Subject()), zap.Error(err))
			return
		}
		b.items.keep(item)
	})
}

// keep takes the newer word on an item: once it is resolved it stays so.
func (i *items) keep(item wire.EscalationItem) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if old, ok := i.byID[item.ID]; ok && old.Status != "open" {
		return
	}
	item.Transcript, item.Next = nil, nil // the stream and the session have them
	i.byID[item.ID] = item
}

// showItems writes the escalations of a session as they stand. While the newest
// stands as it did, so do all.
func (b *Broker) showItems(ctx context.Context, l *live) error {
	newest := l.state.NewestEscalation()
	if newest == nil {
		return nil
	}
	as := string(newest.ID) + " " + session.ViewItem(newest).Status
	if l.shown == as {
		return nil
	}
	var all []*escalation.Item
	l.state.Escalations(func(item *escalation.Item) { all = append(all, item) })
	slices.SortFunc(all, func(a, b *escalation.Item) int { return cmp.Compare(a.Sequence, b.Sequence) })
	for _, item := range all {
		if err := b.showItem(ctx, l, item); err != nil {
			return err
		}
	}
	l.shown = as
	return nil
}

// showItem writes one item, unless its subject says so already.
func (b *Broker) showItem(ctx context.Context, l *live, of *escalation.Item) error {
	item := b.item(l, of)
	subject := wire.Escalation(item.Organisation, item.Urgency, string(item.ID))
	last, err := b.log.lastOn(ctx, wire.EscalationsStream, subject)
	if err != nil {
		return err
	}
	var position uint64
	if last != nil {
		position = last.Sequence
		var old wire.EscalationItem
		if err := json.Unmarshal(last.Data, &old); err != nil {
			return err
		}
		if old.Status == item.Status || old.Status != "open" {
			b.items.keep(old)
			return nil
		}
	}
	if item.Status == "open" {
		story, err := b.messages(ctx, l.places, wire.ListMessages{Session: l.id, Limit: wire.MaxPage})
		if err != nil {
			return err
		}
		item.Transcript, item.Next = story.Messages, story.Next
	}
	data, err := json.Marshal(item)
	if err != nil {
		return err
	}
	if _, err := b.js.PublishMsg(ctx, &nats.Msg{Subject: subject, Data: data}, jetstream.WithExpectLastSequencePerSubject(position)); err != nil {
		return fmt.Errorf("escalation item: %w", err)
	}
	b.items.keep(item)
	return nil
}

// item shows an escalation with what is at stake in the session as it is now.
func (b *Broker) item(l *live, of *escalation.Item) wire.EscalationItem {
	view := l.state.ViewAt(b.clock(l))
	view.Escalation = session.ViewItem(of)
	return wire.EscalationItem{EscalationView: *view.Escalation, Session: l.id, Purpose: view.Purpose, Proposal: atStake(&view)}
}

// atStake is the proposal that an escalation names, else the newest open offer
// of another side: what the agent could not decide.
func atStake(v *session.View) *session.OfferView {
	e := v.Escalation
	for i := len(v.Proposals) - 1; i >= 0; i-- {
		p := &v.Proposals[i]
		if e.Reference == p.Proposal || e.Reference == "" && p.Status == "open" && p.From != e.OnBehalfOf {
			return p
		}
	}
	for i := range v.Commitments {
		if e.Reference == v.Commitments[i].Commitment {
			return &v.Commitments[i]
		}
	}
	return nil
}

// of lists the items of an organisation ("" for all), the one due first at the top.
func (i *items) of(org performatives.Organisation, status string) []wire.EscalationItem {
	i.mu.RLock()
	defer i.mu.RUnlock()
	found := []wire.EscalationItem{}
	for _, item := range i.byID {
		open := item.Status == "open"
		if (org == "" || item.Organisation == org) && (status == "all" || open == (status != "resolved")) {
			found = append(found, item)
		}
	}
	slices.SortFunc(found, func(a, b wire.EscalationItem) int {
		return strings.Compare(a.Deadline+string(a.ID), b.Deadline+string(b.ID))
	})
	return found
}
