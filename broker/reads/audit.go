package reads

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/api/fit"
	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/session/transcript"
	"github.com/parley-asp/parley/store"
)

// An operator reads here what it needs to compare derived data with the transcripts. It comes
// from the store and not from this broker's caches; the operator's verifier judges it
// (package audit).

const auditedPage = 10_000 // sessions

// AuditSessions answers audit.sessions: it lists the sessions by their transcripts, not by the session list.
func (x *Reads) AuditSessions(ctx context.Context, _ api.Caller, q api.ListAudit) (api.AuditedSessions, error) {
	found := api.AuditedSessions{Sessions: []performatives.SessionID{}}
	if q.Cursor < 0 {
		return found, session.Refuse(session.MalformedEnvelope, "cursor is next of the page before")
	}
	// An even cursor counts in the transcripts' stream, an odd one in the archive.
	stream, filter, prefix, at := api.SessionsStream, api.AllSessions, api.Session(""), q.Cursor/2
	if q.Cursor%2 == 1 && x.o.Store.Archives() {
		stream, filter, prefix = api.ArchiveStream, api.AllArchive, api.Archive("")
	}
	from := at / store.SubjectPage * store.SubjectPage
	subjects, total, err := x.o.Store.Subjects(ctx, stream, filter, from)
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
	case stream == api.SessionsStream && x.o.Store.Archives():
		next = 1
		found.Next = &next
	}
	return found, nil
}

// AuditMessages answers audit.messages: it is a page of a transcript as it is stored.
func (x *Reads) AuditMessages(ctx context.Context, _ api.Caller, q api.AuditTranscript) (api.Stored, error) {
	found, size := api.Stored{Messages: [][]byte{}}, 0
	if _, err := performatives.ParseSessionID(string(q.Session)); err != nil {
		return found, session.NoSuchSession()
	}
	each := func(e store.Message) error {
		if size += len(e.Data); size > api.MaxPageBytes/2 && len(found.Messages) > 0 {
			found.Next = e.Sequence
			return store.ErrEnough
		}
		found.Messages = append(found.Messages, e.Data)
		return nil
	}
	entries, err := x.o.Reader.Archived(ctx, q.Session)
	if err != nil {
		return found, err
	}
	if entries == nil {
		err = x.o.Store.Read(ctx, api.SessionsStream, api.Session(q.Session), q.Cursor, each)
	}
	for i := max(q.Cursor, 1); err == nil && i <= uint64(len(entries)); i++ {
		err = each(store.Message{Sequence: i, Data: entries[i-1].Data})
	}
	if errors.Is(err, store.ErrEnough) { // of the archive's entries
		err = nil
	}
	return found, err
}

// The parts of audit.session that are paged, in their order: the second is the copies, or the
// inboxes if there are too many copies. A cursor is a part and where to go on in it.
const (
	itemsPart   = "items"
	copiesPart  = "copies"
	inboxesPart = "inboxes"
)

// AuditSession answers audit.session: it is what the store has of a session besides its transcript.
func (x *Reads) AuditSession(ctx context.Context, _ api.Caller, q api.AuditRef) (api.Held, error) {
	held := api.Held{Session: q.Session, Copies: []api.HeldCopy{}}
	if _, err := performatives.ParseSessionID(string(q.Session)); err != nil {
		return held, session.NoSuchSession()
	}
	part, from, _ := strings.Cut(cmp.Or(q.Cursor, itemsPart+":0"), ":")
	inbox, position := "", from // a position in the items, or in the copies of one inbox
	if part == copiesPart {
		inbox, position, _ = strings.Cut(from, ":")
	}
	at, err := strconv.ParseUint(position, 10, 64)
	if read := map[string]bool{itemsPart: err == nil, copiesPart: err == nil, inboxesPart: true}; !read[part] {
		return held, session.Refuse(session.MalformedEnvelope, "cursor is next of the page before")
	}
	if q.Cursor == "" {
		for _, find := range []func(context.Context, *api.Held) error{x.heldHead, x.heldRow} {
			if err := find(ctx, &held); err != nil {
				return held, err
			}
		}
		if held.Timer, held.Due, err = x.o.Timers.Stored(ctx, q.Session); err != nil {
			return held, err
		}
	}
	left := room(api.MaxPageBytes - fit.Size(held))
	if part == itemsPart {
		if err := x.heldItems(ctx, &held, at, &left); err != nil || held.Next != "" {
			return held, err
		}
		from = ""
	}
	counts, _, err := x.o.Store.Counts(ctx, api.InboxStream, api.InboxesOf(held.Session), 0)
	if err != nil {
		return held, err
	}
	if part != copiesPart {
		if counted, err := x.heldInboxes(ctx, &held, counts, from, &left); counted || err != nil {
			return held, err
		}
		at = 0
	}
	return held, x.heldCopies(ctx, &held, slices.Sorted(maps.Keys(counts)), inbox, at, &left)
}

// room is how many bytes a page has left.
type room int

// fits takes a value's room; one that finds none is the first of the next page.
func (r *room) fits(v any) bool {
	*r -= room(fit.Size(v) + 1)
	return *r >= 0
}

func (x *Reads) heldHead(ctx context.Context, held *api.Held) error {
	held.At, held.InboxAge = x.o.Now().UTC().Format(time.RFC3339Nano), x.o.Store.InboxAge().Milliseconds()
	last, err := x.o.Store.Last(ctx, api.SessionsStream, api.Session(held.Session))
	if err != nil {
		return err
	}
	var data []byte
	if last != nil {
		data = last.Data
	} else if entries, err := x.o.Reader.Archived(ctx, held.Session); err != nil || entries == nil {
		return err
	} else {
		data = entries[len(entries)-1].Data
	}
	if entry, err := transcript.Read(data); err == nil { // otherwise the verifier finds the fault
		held.Sequence, held.Hash = &entry.Stamp.Sequence, entry.Stamp.Hash
	}
	return nil
}

func (x *Reads) heldRow(ctx context.Context, held *api.Held) error {
	row, err := x.o.List.Stored(ctx, held.Session)
	if row != nil {
		held.Index = &api.HeldRow{State: row.State.String(), Participants: row.Participants, Entries: row.Entries, Erased: row.Erased}
	}
	return err
}

// heldItems are the escalations that the transcript knows, as the stream has them.
func (x *Reads) heldItems(ctx context.Context, held *api.Held, from uint64, left *room) error {
	var all []*escalation.Item
	if err := x.o.View(ctx, held.Session, func(s *Session) {
		s.State.Escalations(func(item *escalation.Item) { all = append(all, item) })
	}); err != nil {
		return nil //nolint:nilerr // the verifier finds why a transcript does not replay
	}
	slices.SortFunc(all, func(a, b *escalation.Item) int { return cmp.Compare(a.Sequence, b.Sequence) })
	for n := int(min(from, uint64(len(all)))); n < len(all); n++ { //nolint:gosec // at most len(all)
		view := api.ViewEscalation(all[n])
		last, err := x.o.Store.Last(ctx, api.EscalationsStream, api.Escalation(view.Organisation, view.Urgency, string(view.ID)))
		if err != nil {
			return err
		}
		if last == nil {
			continue
		}
		item, err := api.ReadEscalationItem(last.Data)
		if err != nil {
			continue
		}
		item.Transcript, item.Next = nil, nil
		if !left.fits(item) {
			held.Next = fmt.Sprintf("%s:%d", itemsPart, n)
			return nil
		}
		held.Items = append(held.Items, *item)
	}
	return nil
}

// maxCopiesRead is how many bytes of copies are read for one page: of each, the page has a hash only.
const maxCopiesRead = 8 << 20

// heldCopies are the session's inbox copies from a position in one inbox on, read inbox by inbox:
// for a wildcard the server looks at every message of the stream.
func (x *Reads) heldCopies(ctx context.Context, held *api.Held, inboxes []string, inbox string, at uint64, left *room) error {
	read := room(maxCopiesRead)
	for _, subject := range inboxes {
		switch {
		case subject < inbox:
			continue
		case subject > inbox:
			at = 0
		}
		agent, err := inboxOwner(subject)
		if err == nil {
			err = x.o.Store.Read(ctx, api.InboxStream, subject, at, func(e store.Message) error {
				copied := api.HeldCopy{Agent: agent, Hash: performatives.HashOf(e.Data)}
				if read < 0 || !left.fits(copied) {
					held.Next = fmt.Sprintf("%s:%s:%d", copiesPart, subject, e.Sequence)
					return store.ErrEnough
				}
				read -= room(len(e.Data))
				held.Copies = append(held.Copies, copied)
				return nil
			})
		}
		if err != nil || held.Next != "" {
			return err
		}
	}
	return nil
}

// heldInboxes counts the copies of a session that has too many to list, from an inbox on.
func (x *Reads) heldInboxes(ctx context.Context, held *api.Held, counts map[string]uint64, from string, left *room) (counted bool, err error) {
	var all uint64
	for _, n := range counts {
		all += n
	}
	if all <= api.MaxHeldCopies && from == "" {
		return false, nil
	}
	for _, subject := range slices.Sorted(maps.Keys(counts)) {
		if subject < from {
			continue
		}
		agent, err := inboxOwner(subject)
		if err != nil {
			return true, err
		}
		last, err := x.o.Store.Last(ctx, api.InboxStream, subject)
		if err != nil {
			return true, err
		}
		if last == nil { // it has expired since
			continue
		}
		inbox := api.HeldInbox{Agent: agent, Copies: counts[subject], Last: performatives.HashOf(last.Data)}
		if !left.fits(inbox) {
			held.Next = inboxesPart + ":" + subject
			return true, nil
		}
		held.Inboxes = append(held.Inboxes, inbox)
	}
	return true, nil
}

func inboxOwner(subject string) (performatives.Agent, error) {
	return performatives.ParseToken(strings.Split(subject, ".")[2])
}
