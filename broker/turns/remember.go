package turns

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
)

// Bounds of what is remembered.
const (
	rememberedFor    = 10 * time.Minute
	mostRemembered   = 16      // waits of one principal: its workers, each in all sessions or in one
	mostRememberedOf = 1 << 14 // principals
)

// memory is what callers were given last, for those who wait without a cursor. A broker that
// starts remembers nothing, and gives what waits again.
type memory struct {
	mu sync.Mutex
	of map[performatives.Agent]map[waits]remembered
}

// waits are those of a worker, in one session or, without one, in all.
type waits struct {
	worker  string
	session performatives.SessionID
}

type remembered struct {
	cursor   api.Cursor              // of the newest answer
	reminded performatives.SessionID // of all sessions, the one that a reminder was about last
	at       time.Time
}

// find is what a caller was given lately.
func (m *memory) find(a performatives.Agent, of waits, now time.Time) (found remembered, known bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	found, known = m.of[a][of]
	return found, known && now.Sub(found.at) < rememberedFor
}

// keep remembers what a caller is given, unless it was given what came later.
func (m *memory) keep(a performatives.Agent, of waits, given remembered) {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := m.of[a]
	if all == nil {
		if len(m.of) >= mostRememberedOf {
			m.forget(given.at)
		}
		all = map[waits]remembered{}
		m.of[a] = all
	}
	if old, known := all[of]; known && given.at.Sub(old.at) < rememberedFor && position(old.cursor) > position(given.cursor) {
		return
	} else if !known && len(all) >= mostRemembered {
		oldest := of
		for w, r := range all {
			if at, is := all[oldest]; !is || r.at.Before(at.at) {
				oldest = w
			}
		}
		delete(all, oldest)
	}
	all[of] = given
}

// forget makes room for a principal: of those that were given nothing lately, else of any one.
func (m *memory) forget(now time.Time) {
	var anyone performatives.Agent
	for a, all := range m.of {
		anyone = a
		for w, r := range all {
			if now.Sub(r.at) >= rememberedFor {
				delete(all, w)
			}
		}
		if len(all) == 0 {
			delete(m.of, a)
		}
	}
	if len(m.of) >= mostRememberedOf {
		delete(m.of, anyone)
	}
}

// position is how far a cursor goes: of an inbox the message, of a session the entry.
func position(c api.Cursor) uint64 {
	n, _, _ := strings.Cut(strings.TrimPrefix(string(c), "i"), ",")
	at, err := strconv.ParseUint(n, 10, 64)
	if err != nil {
		return 0
	}
	return at
}

// remind shows again what the caller was given and has not answered: its turn, or of one session
// that it is over. Of several sessions, each has its turn.
func (g *givenOfSession) remind(ctx context.Context, _ performatives.SessionID) (*api.Snapshot, api.Cursor, error) {
	found, err := (&givenOfSession{t: g.t, caller: g.caller, id: g.id}).news(ctx)
	if err != nil || found == nil || !found.State.Over() && (found.Waiting == nil || !found.Waiting.Yours) {
		return nil, g.cursor(), err
	}
	return found, g.cursor(), nil
}

func (g *givenOfInbox) remind(ctx context.Context, last performatives.SessionID) (*api.Snapshot, api.Cursor, error) {
	for _, after := range []performatives.SessionID{last, beforeAll} {
		if after == "" {
			continue
		}
		again := &givenOfInbox{t: g.t, caller: g.caller, position: g.position, after: after, heads: map[performatives.SessionID]uint64{}}
		if found, err := again.waiting(ctx); found != nil || err != nil {
			return found, again.cursor(), err
		}
	}
	return nil, g.cursor(), nil
}
