package turns

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/store"
)

// given is what a caller has been given: of one session, or of its inbox.
type given interface {
	news(ctx context.Context) (*api.Snapshot, error) // what it was not given, nil for none
	cursor() api.Cursor
	remind(ctx context.Context, last performatives.SessionID) (*api.Snapshot, api.Cursor, error) // what it was given and has yet to answer
	watch(ctx context.Context) (changed <-chan struct{}, stop func(), err error)
}

// givenTo reads the cursor of a request.
func (t *Turns) givenTo(c api.Caller, q api.WaitTurn) (given, error) {
	if q.Session != "" {
		g := &givenOfSession{t: t, caller: c, id: q.Session}
		if q.Since == "" {
			return g, nil
		}
		since, err := strconv.ParseUint(string(q.Since), 10, 64)
		if err != nil {
			return nil, malformed("/since", "is the cursor of the session's snapshot, a number")
		}
		g.since = &since
		return g, nil
	}
	g := &givenOfInbox{t: t, caller: c, heads: map[performatives.SessionID]uint64{}}
	if err := g.read(q.Since); err != nil {
		return nil, malformed("/since", "is the cursor of an answer without a sessionId")
	}
	return g, nil
}

// givenOfSession is what a caller was given of one session. What it says itself is no news to it, but
// for the end of the session, which another of its workers may wait for.
type givenOfSession struct {
	t      *Turns
	caller api.Caller
	id     performatives.SessionID
	since  *uint64 // entries before it were given; nil: nothing was
}

func (g *givenOfSession) watch(ctx context.Context) (changed <-chan struct{}, stop func(), err error) {
	return g.t.o.WatchSession(ctx, g.id)
}

func (g *givenOfSession) cursor() api.Cursor {
	if g.since == nil {
		return ""
	}
	return api.Cursor(strconv.FormatUint(*g.since, 10))
}

func (g *givenOfSession) news(ctx context.Context) (*api.Snapshot, error) {
	for {
		state, _, err := g.t.o.Look(ctx, g.caller.Agent, g.id)
		switch {
		case err != nil || g.since != nil && *g.since == state.Next:
			return nil, err
		case g.since != nil && *g.since > state.Next: // of a store before it was restored
			g.since = nil
		}
		found, err := g.t.o.Snapshot(ctx, g.caller, api.GetSnapshot{Session: g.id, Since: g.since})
		if err != nil {
			return nil, err
		}
		first := g.since == nil
		g.since = &found.Cursor
		if first || len(found.News) == 0 || found.State.Over() { // without news: a delegation that is offered
			return &found, nil
		}
		for _, raw := range found.News {
			if entry, err := api.ReadEntry(raw, nil); err != nil || entry.From != g.caller.Agent {
				return &found, err
			}
		}
	}
}

// givenOfInbox is what a caller was given of all its sessions. It begins with the open sessions
// that wait for the caller, in the order of their ids. Then it follows the caller's inbox: of what
// was delivered since, each session comes once, at the place of its newest message.
type givenOfInbox struct {
	t        *Turns
	caller   api.Caller
	position uint64                             // messages before it were given
	after    performatives.SessionID            // of the open sessions, those up to it were given; "" once all were
	heads    map[performatives.SessionID]uint64 // entries before it were given ahead of their messages
	begun    bool                               // the inbox has the position
}

// Bounds of a cursor, and of a look at the inbox.
const (
	mostHeads   = 8
	mostScanned = 1000
)

// beforeAll comes before all ids of sessions.
const beforeAll = "0"

// read reads a cursor: i, the position, the session after which to go on, and heads, as in i17,0,<id>:4.
func (g *givenOfInbox) read(c api.Cursor) (err error) {
	if c == "" {
		g.after = beforeAll
		return nil
	}
	position, rest, _ := strings.Cut(strings.TrimPrefix(string(c), "i"), ",")
	if g.position, err = strconv.ParseUint(position, 10, 64); err != nil || c[0] != 'i' || len(c) > maxCursor {
		return errors.New("not a cursor of an inbox")
	}
	after, rest, _ := strings.Cut(rest, ",")
	g.after = performatives.SessionID(after)
	for part := range strings.SplitSeq(rest, ",") {
		if id, head, is := strings.Cut(part, ":"); is {
			if g.heads[performatives.SessionID(id)], err = strconv.ParseUint(head, 10, 64); err != nil {
				return err
			}
		}
	}
	return nil
}

const maxCursor = 1 << 10 // bytes

func (g *givenOfInbox) cursor() api.Cursor {
	all := []string{fmt.Sprint("i", g.position)}
	if g.after != "" || len(g.heads) > 0 {
		all = append(all, string(g.after))
	}
	ids := make([]string, 0, len(g.heads))
	for id, head := range g.heads {
		ids = append(ids, fmt.Sprint(id, ":", head))
	}
	slices.Sort(ids)
	return api.Cursor(strings.Join(append(all, ids...), ","))
}

func (g *givenOfInbox) watch(ctx context.Context) (changed <-chan struct{}, stop func(), err error) {
	if g.position == 0 { // from here on, the inbox says what is new
		end, err := g.t.o.Store.End(ctx, api.InboxStream, api.InboxOf(g.caller.Agent))
		if err != nil {
			return nil, nil, err
		}
		g.position = end + 1
	}
	return g.t.o.Watch(ctx, g.caller.Agent)
}

func (g *givenOfInbox) news(ctx context.Context) (*api.Snapshot, error) {
	if found, err := g.waiting(ctx); found != nil || err != nil {
		return found, err
	}
	for {
		next, err := g.delivered(ctx)
		if err == nil && next == nil && !g.begun {
			return g.begin(ctx)
		}
		if err != nil || next == nil {
			return nil, err
		}
		g.position = next.position + 1
		if ahead := g.heads[next.id]; next.sequence < ahead {
			state, _, err := g.t.o.Look(ctx, g.caller.Agent, next.id)
			if err != nil || ahead <= state.Next {
				continue
			}
			delete(g.heads, next.id) // it was of the store before it was restored
		}
		since := max(next.since, g.heads[next.id])
		found, err := g.snapshot(ctx, next.id, &since)
		if found != nil || err != nil {
			return found, err
		}
	}
}

// begin makes sure that the inbox has the position. The cursor of a store before it was restored may be beyond
// the end: then the caller begins anew.
func (g *givenOfInbox) begin(ctx context.Context) (*api.Snapshot, error) {
	end, err := g.t.o.Store.End(ctx, api.InboxStream, api.InboxOf(g.caller.Agent))
	if err != nil {
		return nil, err
	}
	g.begun = true
	if g.position <= end+1 {
		return nil, nil
	}
	g.position, g.after = end+1, beforeAll
	clear(g.heads)
	return g.news(ctx)
}

// waiting is the next of the open sessions that wait for the caller.
func (g *givenOfInbox) waiting(ctx context.Context) (*api.Snapshot, error) {
	if g.after == "" {
		return nil, nil
	}
	open := g.t.o.OpenSessions(g.caller.Agent)
	slices.SortFunc(open, func(a, b OpenSession) int { return cmp.Compare(a.ID, b.ID) })
	for _, s := range open {
		if s.ID <= g.after {
			continue
		}
		g.after = s.ID
		state, at, err := g.t.o.Look(ctx, g.caller.Agent, s.ID)
		if errors.Is(err, &session.Refusal{Code: session.UnknownSession}) || err == nil && !state.Awaits(g.t.o.Member(g.caller.Agent), at) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if found, err := g.snapshot(ctx, s.ID, nil); found != nil || err != nil {
			return found, err
		}
	}
	g.after = ""
	return nil, nil
}

// A message is one that was delivered to the caller.
type message struct {
	id       performatives.SessionID
	position uint64
	sequence uint64 // of the entry
	since    uint64 // of the first entry of the session that was delivered since the position
}

// delivered is, of the newest message of each session since the position, the oldest.
func (g *givenOfInbox) delivered(ctx context.Context) (*message, error) {
	newest, scanned := map[performatives.SessionID]*message{}, 0
	err := g.t.o.Store.Read(ctx, api.InboxStream, api.InboxOf(g.caller.Agent), g.position, func(m store.Message) error {
		sequence, err := strconv.ParseUint(m.Header.Get(api.SequenceHeader), 10, 64)
		if err != nil {
			return err
		}
		id := performatives.SessionID(m.Subject[strings.LastIndexByte(m.Subject, '.')+1:])
		since := sequence
		if before := newest[id]; before != nil {
			since = min(since, before.since)
		}
		newest[id] = &message{id, m.Sequence, sequence, since}
		if scanned++; scanned == mostScanned {
			return store.ErrEnough
		}
		return nil
	})
	var oldest *message
	for _, m := range newest {
		if oldest == nil || m.position < oldest.position {
			oldest = m
		}
	}
	return oldest, err
}

// snapshot is that of a session that the caller may look at, with the news from an entry on. What
// it shows ahead of its messages is noted.
func (g *givenOfInbox) snapshot(ctx context.Context, id performatives.SessionID, since *uint64) (*api.Snapshot, error) {
	found, err := g.t.o.Snapshot(ctx, g.caller, api.GetSnapshot{Session: id, Since: since})
	switch {
	case errors.Is(err, &session.Refusal{Code: session.UnknownSession}) || errors.Is(err, &session.Refusal{Code: session.AuthorityExceeded}):
		return nil, nil // its part there is over
	case err != nil:
		return nil, err
	}
	delete(g.heads, id)
	if since == nil || found.Head.N > *since {
		for len(g.heads) >= mostHeads {
			for old := range g.heads {
				delete(g.heads, old)
				break
			}
		}
		g.heads[id] = found.Head.N + 1
	}
	return &found, nil
}
