package broker

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/store"
	"github.com/parley-asp/parley/transcript"
)

// An operator reads here what it needs to compare derived data with the transcripts. It comes
// from the store and not from this broker's caches; the operator's verifier judges it
// (package audit).

// Sizes of pages.
const (
	auditedPage = 10_000 // sessions
	copiesPage  = 4_000  // inbox copies
)

// auditSessions lists the sessions by their transcripts, not by the session list.
func (b *Broker) auditSessions(ctx context.Context, _ api.Caller, q api.ListAudit) (api.AuditedSessions, error) {
	found := api.AuditedSessions{Sessions: []performatives.SessionID{}}
	if q.Cursor < 0 {
		return found, session.Refuse(session.MalformedEnvelope, "cursor is next of the page before")
	}
	// An even cursor counts in the transcripts' stream, an odd one in the archive.
	stream, filter, prefix, at := api.SessionsStream, api.AllSessions, api.Session(""), q.Cursor/2
	if q.Cursor%2 == 1 && b.store.Archives() {
		stream, filter, prefix = api.ArchiveStream, api.AllArchive, api.Archive("")
	}
	from := at / store.SubjectPage * store.SubjectPage
	subjects, total, err := b.store.Subjects(ctx, stream, filter, from)
	if err != nil {
		return found, err
	}
	subjects = subjects[min(at-from, len(subjects)):]
	subjects = subjects[:min(auditedPage, len(subjects))]
	for _, subject := range subjects {
		id, err := performatives.ParseSessionID(strings.TrimPrefix(subject, prefix))
		if err == nil { // no broker wrote anything else
			found.Sessions = append(found.Sessions, id)
		}
	}
	next := q.Cursor + 2*len(subjects)
	switch {
	case at+len(subjects) < total && len(subjects) > 0:
		found.Next = &next
	case stream == api.SessionsStream && b.store.Archives():
		next = 1
		found.Next = &next
	}
	return found, nil
}

// auditMessages is a page of a transcript as it is stored.
func (b *Broker) auditMessages(ctx context.Context, _ api.Caller, q api.AuditTranscript) (api.Stored, error) {
	found, size := api.Stored{Messages: [][]byte{}}, 0
	if _, err := performatives.ParseSessionID(string(q.Session)); err != nil {
		return found, session.NoSuchSession()
	}
	each := func(e store.Message) error {
		if size += len(e.Data); size > api.MaxPageBytes/2 && len(found.Messages) > 0 {
			found.Next = e.Sequence
			return errPageFull
		}
		found.Messages = append(found.Messages, e.Data)
		return nil
	}
	entries, err := b.archive.Entries(ctx, q.Session)
	if err != nil {
		return found, err
	}
	if entries == nil {
		err = b.store.Read(ctx, api.SessionsStream, api.Session(q.Session), q.Cursor, each)
	}
	for i := max(q.Cursor, 1); err == nil && i <= uint64(len(entries)); i++ {
		err = each(store.Message{Sequence: i, Data: entries[i-1]})
	}
	if errors.Is(err, errPageFull) {
		err = nil
	}
	return found, err
}

// auditSession is what the store has of a session besides its transcript.
func (b *Broker) auditSession(ctx context.Context, _ api.Caller, q api.AuditRef) (api.Held, error) {
	held := api.Held{Session: q.Session, Copies: []api.HeldCopy{}}
	if _, err := performatives.ParseSessionID(string(q.Session)); err != nil {
		return held, session.NoSuchSession()
	}
	if q.Cursor == "" {
		for _, find := range []func(context.Context, *api.Held) error{b.heldHead, b.heldRow, b.heldTimer, b.heldItems} {
			if err := find(ctx, &held); err != nil {
				return held, err
			}
		}
	}
	return held, b.heldCopies(ctx, &held, q.Cursor)
}

func (b *Broker) heldHead(ctx context.Context, held *api.Held) error {
	held.At, held.InboxAge = b.Now().UTC().Format(time.RFC3339Nano), b.store.InboxAge().Milliseconds()
	last, err := b.store.Last(ctx, api.SessionsStream, api.Session(held.Session))
	if err != nil {
		return err
	}
	var data []byte
	if last != nil {
		data = last.Data
	} else if entries, err := b.archive.Entries(ctx, held.Session); err != nil || entries == nil {
		return err
	} else {
		data = entries[len(entries)-1]
	}
	if entry, err := transcript.Read(data); err == nil { // otherwise the verifier finds the fault
		held.Sequence, held.Hash = &entry.Stamp.Sequence, entry.Stamp.Hash
	}
	return nil
}

func (b *Broker) heldRow(ctx context.Context, held *api.Held) error {
	row, err := b.list.Stored(ctx, held.Session)
	if row != nil {
		held.Index = &api.HeldRow{State: row.State.String(), Participants: row.Participants, Entries: row.Entries}
	}
	return err
}

func (b *Broker) heldTimer(ctx context.Context, held *api.Held) error {
	set, err := b.store.Last(ctx, api.TimersStream, timerAt+string(held.Session))
	if err != nil {
		return err
	}
	if set != nil {
		held.Timer, _ = strings.CutPrefix(set.Header.Get(store.ScheduleHeader), "@at ")
	}
	due, err := b.store.Last(ctx, api.TimersStream, timerDue+string(held.Session))
	held.Due = due != nil
	return err
}

// heldItems are the escalations that the transcript knows, as the stream has them.
func (b *Broker) heldItems(ctx context.Context, held *api.Held) error {
	var all []*escalation.Item
	if err := b.view(ctx, held.Session, func(l *cachedSession) {
		l.state.Escalations(func(item *escalation.Item) { all = append(all, item) })
	}); err != nil {
		return nil //nolint:nilerr // the verifier finds why a transcript does not replay
	}
	slices.SortFunc(all, func(a, b *escalation.Item) int { return cmp.Compare(a.Sequence, b.Sequence) })
	for _, of := range all {
		view := api.ViewEscalation(of)
		last, err := b.store.Last(ctx, api.EscalationsStream, api.Escalation(view.Organisation, view.Urgency, string(view.ID)))
		if err != nil {
			return err
		}
		var item api.EscalationItem
		if last == nil || json.Unmarshal(last.Data, &item) != nil {
			continue
		}
		item.Transcript, item.Next = nil, nil
		held.Items = append(held.Items, item)
	}
	return nil
}

// heldCopies is a page of the session's inbox copies, from a position in the stream on.
// One reading for all inboxes: the copies of an entry are next to each other, and reading
// inbox by inbox would look at all of them once for each inbox.
func (b *Broker) heldCopies(ctx context.Context, held *api.Held, cursor string) error {
	inboxes := api.InboxesOf(held.Session)
	var from uint64
	if cursor != "" {
		var err error
		if from, err = strconv.ParseUint(cursor, 10, 64); err != nil {
			return session.Refuse(session.MalformedEnvelope, "cursor is next of the page before")
		}
	} else if counted, err := b.heldInboxes(ctx, held, inboxes); counted || err != nil {
		return err
	}
	err := b.store.Read(ctx, api.InboxStream, inboxes, from, func(e store.Message) error {
		if len(held.Copies) == copiesPage {
			held.Next = strconv.FormatUint(e.Sequence, 10)
			return errPageFull
		}
		agent, err := inboxOwner(e.Subject)
		if err != nil {
			return err
		}
		held.Copies = append(held.Copies, api.HeldCopy{Agent: agent, Hash: performatives.HashOf(e.Data)})
		return nil
	})
	if errors.Is(err, errPageFull) {
		return nil
	}
	return err
}

// heldInboxes counts the copies of a session that has too many to list.
func (b *Broker) heldInboxes(ctx context.Context, held *api.Held, inboxes string) (counted bool, err error) {
	counts, _, err := b.store.Counts(ctx, api.InboxStream, inboxes, 0)
	if err != nil {
		return false, err
	}
	var all uint64
	for _, n := range counts {
		all += n
	}
	if all <= api.MaxHeldCopies {
		return false, nil
	}
	for _, subject := range slices.Sorted(maps.Keys(counts)) {
		agent, err := inboxOwner(subject)
		if err != nil {
			return true, err
		}
		last, err := b.store.Last(ctx, api.InboxStream, subject)
		if err != nil {
			return true, err
		}
		if last != nil { // else it has expired since
			held.Inboxes = append(held.Inboxes, api.HeldInbox{Agent: agent, Copies: counts[subject], Last: performatives.HashOf(last.Data)})
		}
	}
	return true, nil
}

func inboxOwner(subject string) (performatives.Agent, error) {
	return performatives.ParseToken(strings.Split(subject, ".")[2])
}
