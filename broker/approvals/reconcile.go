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

// Written names a version of a session's approvals. "" is none.
type Written string

// Note makes memory agree with a session before its act is answered, so that whoever has the answer
// finds what the act did.
func (a *Approvals) Note(s *session.State, at time.Time) {
	for _, newest := range s.RecentItems() {
		item := a.item(s, newest, at)
		a.queue.put(&item)
	}
}

// Reconcile makes the approvals of a session, and their case logs, agree with it, unless they are
// written already. The newest ones tell: the others have ended.
func (a *Approvals) Reconcile(ctx context.Context, s Session, written Written) (Written, error) {
	var version Written
	var outdated error
	for _, newest := range s.State.RecentItems() {
		outdated = errors.Join(outdated, a.bringUpToDate(ctx, s.State, newest, s.At))
		version += Written(fmt.Sprint(newest.ID, " ", newest.End.How, " ", len(newest.Votes), " ", a.cases.cached(newest.ID).Actions, " "))
	}
	if written == version && outdated == nil {
		return written, nil
	}
	var all []*escalation.Item
	s.State.Escalations(func(item *escalation.Item) { all = append(all, item) })
	slices.SortFunc(all, func(a, b *escalation.Item) int {
		return cmp.Or(cmp.Compare(a.Sequence, b.Sequence), cmp.Compare(a.ID, b.ID))
	})
	var failed error
	for _, item := range all { // one that fails does not hide those after it
		if err := a.bringUpToDate(ctx, s.State, item, s.At); err != nil {
			failed = errors.Join(failed, err)
		} else if err := a.write(ctx, &s, item); err != nil {
			failed = errors.Join(failed, err)
		}
	}
	if failed != nil {
		return written, failed
	}
	return version, nil
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
