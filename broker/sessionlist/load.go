package sessionlist

import (
	"context"
	"strings"

	"github.com/go-json-experiment/json"
	"go.uber.org/zap"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/internal/background"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/store"
)

// followOpen follows the rows of open sessions, and returns once memory has them.
func (l *List) followOpen(ctx context.Context) error {
	feed := store.Feed{Stream: api.IndexStream, Filters: []string{api.AllIndex}}
	caughtUp, err := l.o.Store.Follow(ctx, l.work, feed, func(m store.Message, _ bool) {
		if id, row, ok := l.read(m, api.Index("")); ok {
			l.Keep(id, row)
		}
	})
	if err != nil {
		return err
	}
	return background.Await(ctx, caughtUp)
}

// followEnded loads the ended sessions, and follows them until ctx is done.
func (l *List) followEnded(ctx context.Context) error {
	work := background.New()
	defer work.Close()
	ended := newTable()
	if err := l.loadEnded(ctx, work, ended); err != nil {
		return err
	}
	// Later, because a session may move to the archive while its row is read.
	if err := l.loadArchived(ctx, work, ended); err != nil {
		return err
	}
	ended.sort()
	l.replace(ended)
	l.expire(ctx)
	return nil
}

// loadEnded adds the rows of ended sessions to a table; those that come later go to memory.
func (l *List) loadEnded(ctx context.Context, work *background.Group, ended *table) error {
	feed := store.Feed{Stream: api.IndexStream, Filters: []string{api.AllOver}}
	caughtUp, err := l.o.Store.Follow(ctx, work, feed, func(m store.Message, old bool) {
		id, row, ok := l.read(m, api.IndexOver(""))
		switch {
		case !ok:
		case old:
			ended.add(compact(id), row)
		default:
			l.Keep(id, row)
		}
	})
	if err != nil {
		return err
	}
	return background.Await(ctx, caughtUp)
}

// loadArchived does the same with the pages of the archive's index.
func (l *List) loadArchived(ctx context.Context, work *background.Group, ended *table) error {
	if l.o.FollowArchive == nil {
		return nil
	}
	caughtUp, err := l.o.FollowArchive(ctx, work, func(page Page, old bool) {
		if len(page.Rows) == 0 {
			l.lacks()
		}
		for _, r := range page.Rows {
			if old {
				ended.rows[ended.add(compact(r.Session), r.Row)].page = uint32(page.Number) //nolint:gosec // there are fewer pages
			} else {
				l.Keep(r.Session, r.Row)
			}
		}
		if !old {
			l.SetPage(page.Number, page.Rows)
		}
		l.followed(page)
	})
	if err != nil {
		return err
	}
	return background.Await(ctx, caughtUp)
}

// replace makes memory the ended sessions and what it has meanwhile.
func (l *List) replace(ended *table) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for r := range l.table.all.values() { // the row of an open session may have been left behind
		id := l.table.rows[r].Session()
		stale, _ := l.table.row(id)
		if now, ok := ended.row(id); ok && now.Entries > stale.Entries {
			l.count(stale, now)
		}
	}
	ended.merge(l.table)
	l.table = ended
	close(l.loaded)
}

// lacks notes that a row could not be read.
func (l *List) lacks() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unread = true
}

// read reads a message of the stream. An empty one says that the session has
// ended, and its row moved to another subject.
func (l *List) read(m store.Message, prefix string) (id performatives.SessionID, row Row, ok bool) {
	id, err := performatives.ParseSessionID(strings.TrimPrefix(m.Subject, prefix))
	if err != nil || len(m.Data) == 0 {
		return id, row, false
	}
	if err := json.Unmarshal(m.Data, &row); err != nil {
		l.o.Log.Error("a session row cannot be read", zap.String("subject", m.Subject), zap.Error(err))
		l.lacks()
		return id, row, false
	}
	return id, row, true
}
