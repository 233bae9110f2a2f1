package mcpgateway

import (
	"context"
	"crypto/sha256"
	"slices"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/gateway"
	act "github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// maxSeen is how many sessions of callers are remembered, at most.
const maxSeen = 8192

// seen remembers how far tools showed a session to a caller last, in two halves: once the younger half
// is full it becomes the older one. What is forgotten is as never shown, and so is what another process showed. The zero seen is empty.
type seen struct {
	mu             sync.Mutex
	younger, older map[seenKey]uint64 // sequence numbers
}

// A seenKey is the hash of a caller and a session.
type seenKey [sha256.Size]byte

func (c *call) seenKey(id act.SessionID) seenKey {
	return sha256.Sum256([]byte(strings.Join([]string{string(c.Agent()), c.Worker(), string(id)}, "\n")))
}

// newest is the newest entry that was shown; false is none.
func (s *seen) newest(k seenKey) (uint64, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n, there := s.younger[k]; there {
		return n, true
	}
	n, there := s.older[k]
	return n, there
}

// put remembers that a session was shown up to an entry.
func (s *seen) put(k seenKey, n uint64) {
	before, _ := s.newest(k)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.younger == nil || len(s.younger) >= maxSeen/2 {
		s.older, s.younger = s.younger, map[seenKey]uint64{}
	}
	s.younger[k] = max(before, s.younger[k], n)
}

// A shown session is shown up to an entry.
type shown struct {
	session act.SessionID
	entry   uint64
}

// shows notes that the answer shows a session up to an entry.
func (c *call) shows(id act.SessionID, n uint64) { c.shown = append(c.shown, shown{id, n}) }

// remember remembers what the answer shows to who is still there. A call that came before has not seen it: models make
// several at once.
func (c *call) remember(ctx context.Context) {
	if ctx.Err() != nil {
		return
	}
	for _, one := range c.shown {
		c.seen.put(c.seenKey(one.session), one.entry)
	}
}

// lastSeen is what the caller was shown of a session. Who decides on it asks before it asks for anything else.
func (c *call) lastSeen(id act.SessionID) lastSeen {
	n, known := c.seen.newest(c.seenKey(id))
	return lastSeen{n, known}
}

// A lastSeen is the newest entry that a caller was shown, if that is known.
type lastSeen struct {
	entry uint64
	known bool
}

// showsEntries remembers that entries are shown to the caller. After a gap, what came before them was not.
func (c *call) showsEntries(id act.SessionID, all []entry) {
	if len(all) == 0 {
		return
	}
	newest, known := c.seen.newest(c.seenKey(id))
	switch first, last := all[0].Sequence, all[len(all)-1].Sequence; {
	case first == 0, known && first <= newest+1:
		c.shows(id, last)
	case !known:
		c.shows(id, 0)
	}
}

// reoffers are the acts that change what an answer without a referenceId would be about.
var reoffers = []string{act.Propose.String(), act.Counter.String(), act.Commit.String(), act.Withdraw.String()}

// answersShown refuses an answer of Index's tool, which names nothing, unless what it is about is all that
// waits for the caller, and was shown.
func (c *call) answersShown(ctx context.Context, id act.SessionID, answer api.RespondTurn, last lastSeen) error {
	var body struct {
		Reference string `json:"referenceId"`
	}
	if !gateway.Answers(act.Parse(answer.Performative)) {
		return nil
	}
	if err := json.Unmarshal(answer.Body, &body); err != nil {
		return err
	}
	now, err := ask(ctx, c, api.SessionSnapshot, api.GetSnapshot{Session: id})
	if err != nil {
		return err
	}
	waits := []string{}
	for _, o := range now.Open {
		if slices.Contains(gateway.Offered, o.Kind) && waitsFor(o, now.You) {
			waits = append(waits, o.ID)
		}
	}
	if len(waits) > 1 {
		why := "says which, as accept, counter and reject take it: " + strings.Join(waits, ", ")
		return unreadable(&act.Malformed{Path: "/referenceId", Why: why})
	}
	return c.unseen(ctx, &now, body.Reference, last)
}

// waitsFor reports whether what is open waits for the caller.
func waitsFor(o api.OpenItem, you api.SnapshotCaller) bool {
	return slices.Contains(o.For, you.Agent) || slices.Contains(o.For, you.OnBehalfOf)
}

// unseen refuses an answer for which the gateway chose what it refers to, if that may be something else than
// what the caller was shown: it, or another offer, came after.
func (c *call) unseen(ctx context.Context, now *api.Snapshot, reference string, last lastSeen) error {
	if now.Head.N <= last.entry || len(now.Others) == 0 { // those who have yet to accept a delegation read nothing
		return nil
	}
	page, err := ask(ctx, c, api.SessionMessages, api.ListMessages{Session: now.Session, Since: last.entry + 1, Limit: maxEntries})
	if err != nil {
		return err
	}
	entries, err := page.Entries()
	if err != nil {
		return err
	}
	entries = slices.DeleteFunc(entries, func(e api.Entry) bool { return !slices.Contains(reoffers, e.Performative) && string(e.ID) != reference })
	several := len(entries) > 1
	entries = slices.DeleteFunc(entries, func(e api.Entry) bool { return e.From == c.Agent() })
	switch {
	case !last.known && (page.Next != nil || several): // another process may have shown the first
		return session.Refuse(session.ChainConflict, "it is not known what was shown to you, and nothing was said: decide on the view as it is now, or give a referenceId")
	case !last.known, page.Next == nil && len(entries) == 0:
		return nil
	}
	return session.Refuse(session.ChainConflict, "what is offered changed after it was shown to you, and nothing was said: decide on the view as it is now, or give a referenceId")
}
