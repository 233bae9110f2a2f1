package archive

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"go.uber.org/zap"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker/sessionlist"
	"github.com/parley-asp/parley/internal/background"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/session/transcript"
	"github.com/parley-asp/parley/store"
)

// A session is erased in an order that survives a kill at each step, and saying it again completes it:
// what is derived goes first, while the transcript says what that is; then what is left is written beside the
// transcript, which readers see from then on; then the transcript goes, and its row loses its participants.
const (
	derivedErased  = "after what is beside the transcript is erased"
	leftPart       = "after a part of what is left"
	leftWritten    = "after what is left is in the archive"
	partErased     = "after a part of the transcript is erased"
	rowWritten     = "after the row is written again"
	replacedErased = "after the page with the old row is erased"
)

// ErasurePoints are the names with which Options.Failpoint is called while a session is erased.
func ErasurePoints() []string {
	return []string{derivedErased, leftPart, leftWritten, partErased, rowWritten, replacedErased}
}

const (
	erasedHeader   = "Asp-Erased"   // on the last message of what is left: when
	replacesHeader = "Asp-Replaces" // on a page of the index: the page that it was written for again
)

func isErased(m *store.Message) bool { return m.Header.Get(compressionHeader) == zstdErased }

// SessionErase answers session.erase.
func (a *Archiver) SessionErase(ctx context.Context, _ api.Caller, q api.EraseSession) (api.ErasedSession, error) {
	id, err := performatives.ParseSessionID(string(q.Session))
	if err != nil {
		return api.ErasedSession{}, session.NoSuchSession()
	}
	a.erasing.Lock()
	defer a.erasing.Unlock()
	if err := a.erasable(ctx, id); err != nil {
		return api.ErasedSession{}, err
	}
	has, err := a.reader.holding(ctx, id)
	if err != nil {
		return api.ErasedSession{}, err
	}
	if len(has.whole.stored) > 0 {
		if err := a.erase(ctx, id, &has); err != nil {
			return api.ErasedSession{}, err
		}
		a.o.Log.Info("session erased", zap.String("session", string(id)))
	}
	if !has.left.complete() {
		return api.ErasedSession{}, session.NoSuchSession() // it has just expired
	}
	last := has.left.stored[len(has.left.stored)-1]
	at := last.Header.Get(erasedHeader)
	return api.ErasedSession{Session: id, Erased: at, Entries: uint64(len(has.left.entries))}, a.eraseRow(ctx, id, at)
}

// erasable refuses a session that is not in the archive, and says what to do.
func (a *Archiver) erasable(ctx context.Context, id performatives.SessionID) error {
	if !a.o.Policy.Erasure {
		return session.Refuse(session.WrongState, "this broker lets nobody erase a session: start it with --erasure")
	}
	if !a.o.Store.Archives() {
		return session.Refuse(session.WrongState, "only the archive lets a session be erased, and this store has none: restore a backup of it with --archive")
	}
	if may, err := a.o.Store.Erasable(ctx); err != nil {
		return err
	} else if !may {
		return session.Refuse(session.WrongState, "this store was made by a version that never deletes: restore a backup of it, whose sessions can be erased")
	}
	if err := background.Await(ctx, a.o.List.Loaded()); err != nil {
		return err
	}
	entry, err := a.o.Store.LastEntry(ctx, id)
	if err != nil {
		return err
	}
	if entry > 0 {
		return a.notArchived(ctx, id)
	}
	last, err := a.o.Store.Last(ctx, api.ArchiveStream, api.Archive(id))
	switch {
	case err != nil:
		return err
	case last == nil:
		return session.NoSuchSession()
	case a.o.List.PageOf(id) == 0: // it is on its way to the index
		return session.Busy()
	}
	return nil
}

// notArchived refuses a session whose transcript is in its stream.
func (a *Archiver) notArchived(ctx context.Context, id performatives.SessionID) error {
	if archived, err := a.reader.Archived(ctx, id); err != nil {
		return err
	} else if archived != nil { // it is leaving its stream
		return session.Busy()
	}
	row, err := a.o.Ended(ctx, id)
	if refusal, is := errors.AsType[*session.Refusal](err); is {
		return refusal
	}
	switch {
	case row.State.Over() && a.o.Policy.After > 0:
		return session.Refuse(session.WrongState, "the session is not in the archive yet: it moves there within about %s of its end", a.o.Policy.After+a.o.Policy.every())
	case row.State.Over():
		return session.Refuse(session.WrongState, "the session is not in the archive, and this broker moves none there: start it with --archive-after")
	}
	return session.Refuse(session.WrongState, "the session has not ended: only one that has ended, and is in the archive, is erased")
}

// erase erases a session of which the archive has the transcript, or the rest of it.
func (a *Archiver) erase(ctx context.Context, id performatives.SessionID, has *holding) error {
	if !has.left.complete() {
		if !has.whole.complete() {
			return errIncomplete
		}
		left, err := a.derived(ctx, id, has.whole.entries)
		if err != nil {
			return err
		}
		if err := a.writeLeft(ctx, id, left, has); err != nil {
			return err
		}
	}
	if err := a.o.Store.Sync(api.ArchiveStream, 0); err != nil {
		return err
	}
	a.o.Failpoint(leftWritten)
	for _, m := range has.whole.stored {
		if err := a.o.Store.Erase(ctx, api.ArchiveStream, m.Sequence); err != nil {
			return err
		}
		a.o.Failpoint(partErased)
	}
	return a.o.Store.Sync(api.ArchiveStream, 0)
}

// derived erases what is beside a transcript, and returns what is to be left of its entries.
func (a *Archiver) derived(ctx context.Context, id performatives.SessionID, entries []Entry) (left []Entry, err error) {
	state := session.New(id, a.o.Modes)
	for _, stored := range entries {
		e, err := stored.Read()
		if err != nil {
			return nil, err
		}
		line, err := transcript.Erase(&e.Stamp)
		if err != nil {
			return nil, err
		}
		if state, err = session.Replay(state, e.Message, e.Stamp); err != nil {
			return nil, err
		}
		left = append(left, Entry{Data: line})
	}
	if err := a.o.Store.Purge(ctx, api.InboxStream, api.InboxesOf(id)); err != nil {
		return nil, err
	}
	if err := a.o.Erase(ctx, &state); err != nil {
		return nil, err
	}
	a.o.Failpoint(derivedErased)
	return left, nil
}

// writeLeft writes the messages of what is left that the archive does not have yet. They expire when those of the
// transcript do.
func (a *Archiver) writeLeft(ctx context.Context, id performatives.SessionID, left []Entry, has *holding) error {
	all, err := messages(id, left, zstdErased)
	if err != nil {
		return err
	}
	newest := has.whole.stored[len(has.whole.stored)-1]
	timed, err := a.o.Store.At(ctx, api.ArchiveStream, newest.Sequence) // a batch has no times
	if err != nil {
		return err
	}
	if timed == nil {
		return errIncomplete // it has just expired
	}
	expire, err := expiry(timed)
	if err != nil {
		return err
	}
	written := has.left.stored
	if len(written) > 0 {
		newest = written[len(written)-1]
	}
	sequence := newest.Sequence
	for _, m := range all[min(len(written), len(all)):] {
		if expire != "" {
			m.Header.Set(store.TTLHeader, expire)
		}
		if m.Header.Get(lastHeader) != "" {
			m.Header.Set(erasedHeader, api.Timestamp(time.Now()))
		}
		if sequence, err = a.o.Store.PutIf(ctx, m, sequence); err != nil {
			return err
		}
		written = append(written, &m)
		a.o.Failpoint(leftPart)
	}
	has.left = parts{entries: left, want: len(left), stored: written}
	return nil
}

var errNoTime = errors.New("nobody knows when the message was written, after which it expires")

// expiry is the lifetime that a message has left, "" for ever.
func expiry(m *store.Message) (string, error) {
	header := m.Header.Get(store.TTLHeader)
	if header == "" {
		return "", nil
	}
	if m.Time.IsZero() {
		return "", errNoTime
	}
	whole, err := time.ParseDuration(header)
	if err != nil {
		return "", err
	}
	return max(time.Second, (whole - time.Since(m.Time)).Round(time.Second)).String(), nil
}

// eraseRow writes the page of the index that has the session's row once more, without what that says of its
// participants, and erases the page that it replaces.
func (a *Archiver) eraseRow(ctx context.Context, id performatives.SessionID, at string) error {
	for {
		done, err := a.tryEraseRow(ctx, id, at)
		if done || err != nil && !errors.Is(err, store.ErrConflict) {
			return err
		}
	}
}

func (a *Archiver) tryEraseRow(ctx context.Context, id performatives.SessionID, erased string) (done bool, err error) {
	last, err := a.o.Store.Last(ctx, api.ArchiveIndexStream, api.ArchiveIndexPage)
	if err != nil || last == nil {
		return true, err
	}
	for a.o.List.Followed() < last.Sequence { // another broker may just have written the page again
		if err := background.Pause(ctx, followPause); err != nil {
			return false, err
		}
	}
	number := a.o.List.PageOf(id)
	page, err := a.o.Store.At(ctx, api.ArchiveIndexStream, number)
	if err != nil || page == nil {
		return true, err // it has expired
	}
	if before, err := strconv.ParseUint(page.Header.Get(replacesHeader), 10, 64); err == nil {
		if err := a.o.Store.Erase(ctx, api.ArchiveIndexStream, before); err != nil {
			return false, err
		}
	}
	rows, err := rowsOn(page)
	if err != nil {
		return false, err
	}
	at := slices.IndexFunc(rows, func(r sessionlist.Listed) bool { return r.Session == id })
	if at < 0 || rows[at].Erased != "" {
		return true, nil
	}
	old := rows[at].Row
	rows[at].Row = sessionlist.Row{State: old.State, Participants: []performatives.Agent{}, Entries: old.Entries, Mode: old.Mode, Opened: old.Opened, Erased: erased}
	m, err := IndexPage(rows)
	if err != nil {
		return false, err
	}
	m.Header.Set(replacesHeader, strconv.FormatUint(number, 10))
	if expire, err := expiry(page); err != nil {
		return false, err
	} else if expire != "" {
		m.Header.Set(store.TTLHeader, expire)
	}
	written, err := a.o.Store.PutIf(ctx, m, last.Sequence)
	if err != nil {
		return false, err
	}
	a.o.List.SetPage(written, rows)
	a.o.List.Keep(id, rows[at].Row)
	if err := a.o.Store.Sync(api.ArchiveIndexStream, written); err != nil {
		return false, err
	}
	a.o.Failpoint(rowWritten)
	if err := a.o.Store.Erase(ctx, api.ArchiveIndexStream, number); err != nil {
		return false, err
	}
	a.o.Failpoint(replacedErased)
	return true, nil
}

const followPause = 10 * time.Millisecond
