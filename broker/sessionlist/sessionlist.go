// Package sessionlist is the list of sessions: who takes part in each, and its state.
//
//	list, err := sessionlist.Open(ctx, sessionlist.Options{Store: s, Log: log})
//	if err != nil { … }
//	defer list.Close()
//	err = list.Write(ctx, id, sessionlist.Row{State: session.Invited, Participants: participants, Entries: 1}, true)
//	newest, err := list.Page(ctx, sessionlist.One(agent), "", sessionlist.Place{}, 50)
//
// The list is derived from the transcripts: a row tells how many entries it was
// made from, and a row made from fewer never replaces one made from more. Open
// returns once memory has the sessions that are open. The ended ones, of which
// there may be a million, load in the background; Page and Names wait for them.
package sessionlist

import (
	"context"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/parley-asp/parley/internal/background"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/store"
)

// Options say where the list is.
type Options struct {
	Store *store.Store
	Log   *zap.Logger // nil is silent
	Alone bool        // no other broker writes rows

	// Moved, if there is one, is told of sessions that went on, with every row that is kept.
	Moved func(id performatives.SessionID, row Row)

	// FollowArchive calls saw with each page of the archive's index, in order; old is true for those
	// that are seen before caughtUp is closed. It ends when work closes. It is nil if there is no
	// archive; otherwise ArchivedRow reads a session's row on a page, nil where there is none, and
	// Expired, if there is one, is told of sessions whose page has expired.
	FollowArchive func(ctx context.Context, work *background.Group, saw func(page Page, old bool)) (caughtUp <-chan struct{}, err error)
	ArchivedRow   func(ctx context.Context, page uint64, id performatives.SessionID) (*Row, error)
	Expired       func(id performatives.SessionID)
}

// A Row is what the list has of a session.
type Row struct {
	State        session.Phase         `json:"state"`
	Participants []performatives.Agent `json:"participants"`        // the inviter first, then whom it invited
	Principals   int                   `json:"principals,omitzero"` // how many principals these are; 0 in a row of an older version
	Answered     []performatives.Agent `json:"answered,omitzero"`   // while the session is INVITED: who has, in the order of the participants
	Entries      uint64                `json:"entries"`             // of the transcript that the row was made from
	Mode         string                `json:"mode,omitzero"`       // "" in a row of an older version
	Opened       int64                 `json:"opened,omitzero"`     // Unix time in milliseconds, where the id has another time
	Owed         Owed                  `json:"obligations,omitzero"`
	Dues         *Dues                 `json:"due,omitzero"`    // nil while nothing is open of its obligations, and there is no dispute
	Erased       string                `json:"erased,omitzero"` // when the session was erased; memory has it not
}

// A Listed session is a session with its row.
type Listed struct {
	Session performatives.SessionID `json:"sessionId"`
	Row
}

// A Page is one of the archive's index.
type Page struct {
	Number  uint64
	Rows    []Listed
	Expires time.Time // zero is never
}

// A List is open until it is closed.
type List struct {
	o      Options
	work   *background.Group
	loaded chan struct{} // closed when memory has the ended sessions too

	mu       sync.RWMutex
	table    *table
	unread   bool                            // some rows could not be read: memory has not all sessions
	newest   uint64                          // page of the archive's index that was followed
	expiring map[uint32]time.Time            // pages of it, by number
	open     tally                           // of sessions that are open, or about to be
	reserved map[performatives.SessionID]Row // those that are about to be
	busy     map[performatives.Agent]int     // open sessions by participant
}

// Open returns once memory has the open sessions. It loads the ended ones in the background.
func Open(ctx context.Context, o Options) (*List, error) {
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	l := &List{
		o: o, work: background.New(), loaded: make(chan struct{}), table: newTable(),
		open: newTally(), expiring: map[uint32]time.Time{}, reserved: map[performatives.SessionID]Row{}, busy: map[performatives.Agent]int{},
	}
	if err := l.followOpen(ctx); err != nil {
		l.Close()
		return nil, err
	}
	l.work.Go(func(ctx context.Context) {
		if err := l.o.Store.Patiently(ctx, "ended sessions", l.followEnded); err != nil && ctx.Err() == nil {
			l.o.Log.Error("ended sessions are not listed", zap.Error(err))
		}
	})
	return l, nil
}

// Close ends the list's goroutines and consumers.
func (l *List) Close() { l.work.Close() }

// Loaded is closed once memory has the ended sessions too.
func (l *List) Loaded() <-chan struct{} { return l.loaded }

// Keep puts a row into memory, unless memory has one made from more entries.
func (l *List) Keep(id performatives.SessionID, now Row) {
	l.mu.Lock()
	old, _ := l.table.row(id)
	newest := old.Entries <= now.Entries
	if newest {
		l.release(id)
		l.table.put(id, now)
		l.count(old, now)
	}
	l.mu.Unlock()
	if newest {
		l.Moved(id, now)
	}
}

// Moved reports that a session went on, perhaps with the same row.
func (l *List) Moved(id performatives.SessionID, row Row) {
	if l.o.Moved != nil {
		l.o.Moved(id, row)
	}
}

// Open are the sessions of an agent that have not ended, the oldest first.
func (l *List) Open(a performatives.Agent) (open []Listed) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	for r := range l.table.of[l.table.numbers[a]].values() {
		if !l.table.rows[r].state.Over() {
			id := l.table.rows[r].Session()
			row, _ := l.table.row(id)
			open = append(open, Listed{id, row})
		}
	}
	slices.Reverse(open)
	return open
}

// Row is what memory has of a session now.
func (l *List) Row(id performatives.SessionID) (row Row, ok bool) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.table.row(id)
}

// IsNew reports that there is no such session: memory has all, and not this one. Only a broker that is alone can know.
func (l *List) IsNew(id performatives.SessionID) bool {
	select {
	case <-l.loaded:
	default:
		return false
	}
	l.mu.RLock()
	defer l.mu.RUnlock()
	_, listed := l.table.rowOf(compact(id))
	return l.o.Alone && !l.unread && !listed
}

// Part reports whether memory has a session now, and an agent among its participants.
func (l *List) Part(id performatives.SessionID, a performatives.Agent) (there, part bool) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.table.part(id, a)
}

// Names reports whether an agent takes part in a session, without reading the session.
func (l *List) Names(ctx context.Context, id performatives.SessionID, a performatives.Agent) bool {
	named := func() bool {
		_, part := l.Part(id, a)
		return part
	}
	return named() || background.Await(ctx, l.loaded) == nil && named()
}

// Page lists at most n sessions of a selection that are in a state ("" is any),
// the newest first, before a place.
func (l *List) Page(ctx context.Context, selection Selection, state string, before Place, n int) ([]Place, error) {
	return l.find(ctx, selection, n, func(sorted runs) []Place { return l.table.newest(sorted, state, before, n) })
}

// Beginning lists at most n sessions of a selection whose id begins with a prefix of eight letters or more.
func (l *List) Beginning(ctx context.Context, selection Selection, prefix string, n int) ([]Place, error) {
	return l.find(ctx, selection, n, func(sorted runs) []Place { return l.table.beginning(sorted, prefix, n) })
}

// find lists the n newest of what is found in each part of a selection, once memory has all sessions.
func (l *List) find(ctx context.Context, selection Selection, n int, in func(runs) []Place) ([]Place, error) {
	if err := background.Await(ctx, l.loaded); err != nil {
		return nil, err
	}
	l.mu.RLock()
	defer l.mu.RUnlock()
	var found []Place
	for _, sorted := range selection(l.table) {
		found = append(found, in(sorted)...)
	}
	return newestOf(found, n), nil
}

func newestOf(found []Place, n int) []Place {
	slices.SortFunc(found, func(a, b Place) int { return b.Compare(a) })
	found = slices.Compact(found)
	return found[:min(n, len(found))]
}

// A Selection says whose sessions a Page lists.
type Selection func(*table) []runs

// All selects every session.
func All() Selection { return func(t *table) []runs { return []runs{t.all} } }

// One selects the sessions in which an agent takes part.
func One(a performatives.Agent) Selection {
	return func(t *table) []runs { return []runs{t.of[t.numbers[a]]} }
}

// Organisation selects the sessions in which an agent of an organisation takes part.
func Organisation(o performatives.Organisation) Selection {
	return func(t *table) (found []runs) {
		for n, a := range t.names {
			if a != "" && a.Organisation() == o {
				found = append(found, t.of[n])
			}
		}
		return found
	}
}
