package archive

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker/sessionlist"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/store"
)

// The failpoints, in the order in which a session passes them.
const (
	partWritten     = "after a part in the archive"
	batchWritten    = "after sessions are in the archive"
	entryReleased   = "after an entry left the transcripts"
	pagesWritten    = "after sessions are in the catalogue"
	rowFromListGone = "after a line left the list for it"
)

// Failpoints are the names with which Options.Failpoint is called.
func Failpoints() []string {
	return []string{partWritten, batchWritten, entryReleased, pagesWritten, rowFromListGone}
}

// errMoving means that another broker is archiving the session now.
var errMoving = errors.New("the transcript does not have all entries")

// archiveOne writes a session to the archive, if it is not there yet.
func (a *Archiver) archiveOne(ctx context.Context, id performatives.SessionID) (row sessionlist.Row, err error) {
	if id, err = performatives.ParseSessionID(string(id)); err != nil {
		return row, err
	}
	if row, err = a.o.Ended(ctx, id); err != nil {
		return row, err
	}
	if archived, err := a.reader.Archived(ctx, id); err != nil || archived != nil {
		return row, err
	}
	var entries []Entry
	if err := a.o.Store.Read(ctx, api.SessionsStream, api.Session(id), 1, func(e store.Message) error {
		entries = append(entries, EntryOf(e))
		return nil
	}); err != nil {
		return row, err
	}
	if uint64(len(entries)) != row.Entries {
		return row, errMoving
	}
	return row, a.write(ctx, id, a.o.Policy.keeps(row.State), entries)
}

// write writes the messages that the archive does not have yet. They expire after
// a time; 0 is never.
func (a *Archiver) write(ctx context.Context, id performatives.SessionID, expire time.Duration, entries []Entry) error {
	prior, err := a.o.Store.Last(ctx, api.ArchiveStream, api.Archive(id))
	if err != nil {
		return err
	}
	var written int
	var sequence uint64
	if prior != nil {
		if written, err = strconv.Atoi(prior.Header.Get(partHeader)); err != nil {
			return err
		}
		sequence = prior.Sequence
	}
	all, err := Messages(id, entries)
	if err != nil {
		return err
	}
	for _, m := range all[min(written, len(all)):] {
		if expire > 0 {
			m.Header.Set(store.TTLHeader, expire.String())
		}
		if sequence, err = a.o.Store.PutIf(ctx, m, sequence); err != nil {
			return err
		}
		a.o.Failpoint(partWritten)
	}
	return nil
}

// release takes archived sessions out of the stream of transcripts, once the
// archive has them on disk.
func (a *Archiver) release(ctx context.Context, archived []sessionlist.Listed) error {
	if len(archived) == 0 {
		return nil
	}
	if err := a.o.Store.Sync(api.ArchiveStream, 0); err != nil {
		return err
	}
	a.o.Failpoint(batchWritten)
	subjects := make([]string, len(archived))
	for i, s := range archived {
		subjects[i] = api.Session(s.Session)
	}
	return a.o.Store.Release(ctx, subjects, func() { a.o.Failpoint(entryReleased) })
}

// list writes the rows of archived sessions to the index, and removes them from the
// session list once the index has them on disk.
func (a *Archiver) list(ctx context.Context, archived []sessionlist.Listed) error {
	pages := map[time.Duration][]sessionlist.Listed{} // by when they expire
	for _, s := range archived {
		if a.o.List.PageOf(s.Session) == 0 {
			expire := a.o.Policy.keeps(s.State)
			pages[expire] = append(pages[expire], s)
		}
	}
	for expire, rows := range pages {
		m, err := IndexPage(rows)
		if err != nil {
			return err
		}
		if expire > 0 { // as the sessions do
			m.Header.Set(store.TTLHeader, expire.String())
		}
		page, err := a.o.Store.Put(ctx, m)
		if err != nil {
			return err
		}
		a.o.List.SetPage(page, rows)
	}
	if err := a.o.Store.Sync(api.ArchiveIndexStream, 0); err != nil {
		return err
	}
	a.o.Failpoint(pagesWritten)
	for _, s := range archived {
		if err := a.o.List.Remove(ctx, s.Session); err != nil {
			return err
		}
		a.o.Failpoint(rowFromListGone)
	}
	return nil
}
