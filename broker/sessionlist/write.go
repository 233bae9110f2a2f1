package sessionlist

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/internal/background"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/store"
)

// Write stores a session's row, unless a peer has stored a later one, and keeps it in memory. The row of an ended
// session has another subject; the rows on the first one go, unless this is the
// only row.
func (l *List) Write(ctx context.Context, id performatives.SessionID, row Row, only bool) error {
	data, err := json.Marshal(row)
	if err != nil {
		return err
	}
	subject := api.Index(id)
	if row.State.Over() {
		subject = api.IndexOver(id)
	}
	if err := l.put(ctx, subject, row.Entries, data); err != nil {
		return fmt.Errorf("session row: %w", err)
	}
	if row.State.Over() && !only {
		if _, err := l.o.Store.Put(ctx, store.Message{Subject: api.Index(id), Header: remove}); err != nil {
			return fmt.Errorf("session row: %w", err)
		}
	}
	l.Keep(id, row)
	return nil
}

// maxRaces is how often a row is written again because another broker was faster.
const maxRaces = 16

// put stores a row, unless a peer has stored one with more entries.
func (l *List) put(ctx context.Context, subject string, entries uint64, data []byte) error {
	if l.o.Alone {
		_, err := l.o.Store.Put(ctx, store.Message{Subject: subject, Data: data})
		return err
	}
	for range maxRaces {
		last, err := l.o.Store.Last(ctx, api.IndexStream, subject)
		if err != nil {
			return err
		}
		sequence := uint64(0)
		if last != nil {
			var stored Row
			if len(last.Data) == 0 || json.Unmarshal(last.Data, &stored) == nil && stored.Entries > entries { // an empty one says that the session has ended
				return nil
			}
			sequence = last.Sequence
		}
		if _, err = l.o.Store.PutIf(ctx, store.Message{Subject: subject, Data: data}, sequence); !errors.Is(err, store.ErrConflict) {
			return err
		}
	}
	return store.ErrConflict
}

// remove takes all messages off a subject, and then expires itself. A server that is
// killed remembers what a rollup has purged. A message that only exceeded the limit of
// its subject is back when the message that replaced it has expired.
var remove = store.Header{store.RollupHeader: {store.RollupSubject}, store.TTLHeader: {"1s"}}

// Stored reads a session's row from the store, past memory; nil where there is none.
// It looks from the end of a session's life to its beginning.
func (l *List) Stored(ctx context.Context, id performatives.SessionID) (*Row, error) {
	for _, find := range []func(context.Context, performatives.SessionID) (*Row, error){l.storedEnded, l.storedArchived, l.storedOpen} {
		if row, err := find(ctx, id); err != nil || row != nil {
			return row, err
		}
	}
	return nil, nil //nolint:nilnil // no row is an answer
}

func (l *List) storedEnded(ctx context.Context, id performatives.SessionID) (*Row, error) {
	return l.storedOn(ctx, api.IndexOver(id))
}

func (l *List) storedOpen(ctx context.Context, id performatives.SessionID) (*Row, error) {
	return l.storedOn(ctx, api.Index(id))
}

func (l *List) storedOn(ctx context.Context, subject string) (*Row, error) {
	last, err := l.o.Store.Last(ctx, api.IndexStream, subject)
	if err != nil || last == nil {
		return nil, err
	}
	var row Row
	if err := json.Unmarshal(last.Data, &row); err != nil {
		return nil, nil //nolint:nilerr,nilnil // a row that cannot be read counts as none
	}
	return &row, nil
}

func (l *List) storedArchived(ctx context.Context, id performatives.SessionID) (*Row, error) {
	if l.o.FollowArchive == nil {
		return nil, nil //nolint:nilnil // no row is an answer
	}
	if err := background.Await(ctx, l.loaded); err != nil {
		return nil, err
	}
	page := l.PageOf(id)
	if page == 0 {
		return nil, nil //nolint:nilnil // no row is an answer
	}
	return l.o.ArchivedRow(ctx, page, id)
}

// Remove takes the row of an ended session out of the store: the archive's index has it.
func (l *List) Remove(ctx context.Context, id performatives.SessionID) error {
	return l.o.Store.Purge(ctx, api.IndexStream, api.IndexOver(id))
}

// SetPage notes that a page of the archive's index has these rows.
func (l *List) SetPage(page uint64, rows []Listed) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range rows {
		l.table.setPage(r.Session, page)
	}
}

func (l *List) followed(page Page) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.newest = page.Number
	if !page.Expires.IsZero() {
		l.expiring[uint32(page.Number)] = page.Expires //nolint:gosec // there are fewer pages
	}
}

// Followed is the newest page of the archive's index that memory has.
func (l *List) Followed() uint64 {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.newest
}

// PageOf is the page of the archive's index that has a session's row, 0 for none.
func (l *List) PageOf(id performatives.SessionID) uint64 {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.table.page(id)
}
