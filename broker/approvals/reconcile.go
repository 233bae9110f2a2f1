package approvals

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/store"
)

// A Session is a session as Reconcile needs it.
type Session struct {
	State    *session.State
	At       time.Time                                   // by the session's clock
	Messages func(context.Context) (api.Messages, error) // the first page of its transcript
}

// Written has the version of each approval of a session that is written.
type Written map[escalation.ID]version

// A version of an approval is what may change of it.
type version struct {
	how     string
	votes   int
	actions uint64
}

func (a *Approvals) version(of *escalation.Item) version {
	return version{of.End.How, len(of.Votes), a.cases.cached(of.ID).Actions}
}

// Note makes memory agree with a session before its act is answered, so that whoever has the answer
// finds what the act did.
func (a *Approvals) Note(s *session.State, at time.Time) {
	for _, newest := range append(slices.Clip(s.NewestEscalations()), s.Last.Disputes...) {
		item := a.item(s, newest, at)
		a.queue.put(&item)
	}
}

// Reconcile makes the approvals of a session, and their case logs, agree with it, and notes in written,
// which may be nil, which versions are.
func (a *Approvals) Reconcile(ctx context.Context, s Session, written Written) (Written, error) {
	isWritten := func(item *escalation.Item) bool {
		before, has := written[item.ID]
		return has && before == a.version(item)
	}
	var all []*escalation.Item
	s.State.Escalations(func(item *escalation.Item) {
		if item.Open() || !isWritten(item) {
			all = append(all, item)
		}
	})
	slices.SortFunc(all, func(a, b *escalation.Item) int {
		return cmp.Or(cmp.Compare(a.Sequence, b.Sequence), cmp.Compare(a.ID, b.ID))
	})
	var failed error
	for _, item := range all { // one that fails does not hide those after it
		err := a.bringUpToDate(ctx, s.State, item, s.At)
		if err == nil && isWritten(item) {
			continue
		}
		now := a.version(item)
		if err == nil {
			err = a.write(ctx, &s, item)
		}
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		if written == nil {
			written = Written{}
		}
		written[item.ID] = now
	}
	return written, failed
}

// write writes one approval, unless its subject says as much already.
func (a *Approvals) write(ctx context.Context, s *Session, of *escalation.Item) error {
	item := a.item(s.State, of, s.At)
	subject := api.Escalation(item.Organisation, item.Urgency, string(item.ID))
	last, err := a.o.Store.Last(ctx, api.EscalationsStream, subject)
	if err != nil {
		return err
	}
	var sequence uint64
	if last != nil {
		sequence = last.Sequence
		old, err := readItem(last.Data)
		if err != nil {
			return err
		}
		if !newer(old, &item) {
			a.queue.put(old)
			return nil
		}
	}
	if item.Status == statusOpen {
		messages, err := s.Messages(ctx)
		if err != nil {
			return err
		}
		addTranscript(&item, messages)
	}
	data, err := json.Marshal(item)
	if err != nil {
		return err
	}
	if _, err := a.o.Store.PutIf(ctx, store.Message{Subject: subject, Data: data}, sequence); err != nil {
		return fmt.Errorf("escalation item: %w", err)
	}
	a.queue.put(&item)
	return nil
}
