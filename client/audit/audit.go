// Package audit compares a broker's derived data with its transcripts.
//
// Inbox copies, the timer, the session row and the items of the escalation inbox are
// projections of the transcript. [Session] derives them again and compares:
//
//	faults, err := audit.Session(entries, held, modes.All())
//
// Invariants:
//
//   - Without faults, every principal has exactly the entries addressed to it, in order,
//     except those that have expired, and a standby those of the turns that it may take;
//     the timer fires no later than the next deadline; the session row and the
//     escalation inbox agree with the transcript.
//   - Session trusts the transcript: verify that first (package transcript, and a replay).
//   - A broker may still be applying side effects. A fault counts if it is still there a
//     few seconds later.
//
// The package is pure: no network, no clock, no log.
package audit

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/session/transcript"
)

// A Kind is one kind of derived data.
type Kind string

// The kinds.
const (
	Inbox Kind = "inbox" // copies of entries
	Timer Kind = "timer"
	Index Kind = "index" // the session row
	Item  Kind = "item"  // of the escalation inbox
)

// A Fault is derived data that does not follow from the transcript.
type Fault struct {
	Kind  Kind                `json:"kind"`
	Agent performatives.Agent `json:"agentId,omitzero"` // whose inbox
	Why   string              `json:"why"`              // for people
}

func (f Fault) Error() string {
	if f.Agent != "" {
		return fmt.Sprintf("%s of %s: %s", f.Kind, f.Agent, f.Why)
	}
	return fmt.Sprintf("%s: %s", f.Kind, f.Why)
}

// A check compares the derived data of one session with its transcript.
type check struct {
	held  api.Held
	at    time.Time
	state session.State

	entries []transcript.Entry
	index   map[performatives.Hash]int              // of entries, by the hash of their bytes
	due     map[performatives.Agent]map[uint64]bool // sequence numbers of the entries for each principal
	standby map[performatives.Agent]bool            // who is one, and may have copies of earlier turns
	faults  []Fault
}

// Session compares the derived data of a session with its transcript, up to the entry
// that was the last when the data was read. It returns an error if the transcript does
// not replay.
func Session(entries []transcript.Entry, held api.Held, modes session.Modes) ([]Fault, error) {
	at, err := time.Parse(time.RFC3339Nano, held.At)
	if err != nil {
		return nil, err
	}
	c := &check{
		held: held, at: at, state: session.New(held.Session, modes), entries: entries,
		index: map[performatives.Hash]int{}, due: map[performatives.Agent]map[uint64]bool{}, standby: map[performatives.Agent]bool{},
	}
	if len(entries) == 0 {
		return nil, errors.New("there is no transcript")
	}
	for i, e := range entries {
		c.index[performatives.HashOf(e.Bytes)] = i
		if held.Sequence != nil && e.Stamp.Sequence > *held.Sequence {
			continue // appended after the data was read
		}
		if c.state, err = session.Replay(c.state, e.Message, e.Stamp); err != nil {
			return nil, err
		}
		for _, a := range c.state.Audience() {
			if c.due[a] == nil {
				c.due[a] = map[uint64]bool{}
			}
			c.due[a][e.Stamp.Sequence] = true
		}
	}
	c.standbys()
	if len(held.Inboxes) > 0 {
		c.counts()
	} else {
		c.inboxes()
	}
	c.timer()
	c.row()
	c.items()
	return c.faults, nil
}

// standbys finds the standbys. A standby gets a copy of the entry that made a turn wait, once the turn
// has waited too long.
func (c *check) standbys() {
	for _, a := range c.state.Participants() {
		if p, _ := c.state.Party(a); p.Role == session.Standby {
			if c.standby[a] = true; c.due[a] == nil {
				c.due[a] = map[uint64]bool{}
			}
		}
	}
	_, overdue := c.state.Waiting(c.at)
	for _, turn := range overdue {
		c.due[turn.Standby][turn.Sequence] = true
	}
}

// more reports whether somebody may have copies of which the transcript does not tell: a standby, or a
// human who is asked to decide and has not acted.
func (c *check) more(a performatives.Agent) bool {
	return c.standby[a] || a.IsHuman() && c.state.Policy.Format >= 5 && slices.Contains(slices.Collect(c.state.Deciding()), a.Organisation())
}

func (c *check) fault(k Kind, a performatives.Agent, format string, args ...any) {
	c.faults = append(c.faults, Fault{k, a, fmt.Sprintf(format, args...)})
}

// inboxes checks that each copy is an entry for its owner and follows the previous
// copy, and that only expired copies are missing.
func (c *check) inboxes() {
	last := map[performatives.Agent]int{}
	for _, a := range owners(c.due) {
		last[a] = -1
	}
	for _, copied := range c.held.Copies {
		a := copied.Agent
		i, there := c.index[copied.Hash]
		switch {
		case !there:
			c.fault(Inbox, a, "it has a copy that is not an entry of the transcript (sha256 %s)", copied.Hash)
			continue
		case c.held.Sequence != nil && c.entries[i].Stamp.Sequence > *c.held.Sequence:
			continue
		}
		sequence := c.entries[i].Stamp.Sequence
		before, known := last[a]
		if !known && c.more(a) {
			before = -1
		}
		switch {
		case !known && !c.more(a):
			c.fault(Inbox, a, "it has entry %d, but no entry of the session is for %s", sequence, a)
			last[a] = i
			continue
		case before == i:
			c.fault(Inbox, a, "it has entry %d twice", sequence)
		case before > i:
			c.fault(Inbox, a, "it has entry %d after entry %d", sequence, c.entries[before].Stamp.Sequence)
		}
		last[a] = max(before, i)
		if !c.due[a][sequence] && !c.more(a) && before < i {
			c.fault(Inbox, a, "it has entry %d, which is not for %s", sequence, a)
		}
		delete(c.due[a], sequence)
	}
	for _, a := range owners(c.due) {
		for _, e := range c.entries {
			if sequence := e.Stamp.Sequence; c.due[a][sequence] && !c.expired(e) {
				c.fault(Inbox, a, "entry %d is missing", sequence)
			}
		}
	}
}

// counts checks inboxes whose copies were only counted: each has as many copies as there
// are entries for its owner, except the expired ones, and ends with the last of them.
func (c *check) counts() {
	counted := map[performatives.Agent]bool{}
	for _, inbox := range c.held.Inboxes {
		a := inbox.Agent
		counted[a] = true
		most, least, last := c.dueTo(a)
		i, there := c.index[inbox.Last]
		switch {
		case !there:
			c.fault(Inbox, a, "it ends with a copy that is not an entry of the transcript (sha256 %s)", inbox.Last)
		case most == 0 && !c.more(a):
			c.fault(Inbox, a, "it has %d copies, but no entry of the session is for %s", inbox.Copies, a)
		case c.entries[i].Stamp.Sequence < last:
			c.fault(Inbox, a, "it ends with entry %d; entry %d is missing", c.entries[i].Stamp.Sequence, last)
		case inbox.Copies < least || inbox.Copies > most+c.later() && !c.more(a):
			c.fault(Inbox, a, "it has %d copies; there are %d entries for %s", inbox.Copies, most, a)
		}
	}
	for _, a := range owners(c.due) {
		if _, least, _ := c.dueTo(a); !counted[a] && least > 0 {
			c.fault(Inbox, a, "it has no copies; there are %d entries for %s", least, a)
		}
	}
}

// dueTo counts the entries for a principal, with and without those that may have
// expired, and finds the last.
func (c *check) dueTo(a performatives.Agent) (most, least, last uint64) {
	for _, e := range c.entries {
		if sequence := e.Stamp.Sequence; c.due[a][sequence] {
			most, last = most+1, sequence
			if !c.expired(e) {
				least++
			}
		}
	}
	return most, least, last
}

// later counts the entries that were appended after the data was read.
func (c *check) later() (n uint64) {
	for _, e := range c.entries {
		if c.held.Sequence != nil && e.Stamp.Sequence > *c.held.Sequence {
			n++
		}
	}
	return n
}

// expired reports whether the copy of an entry may have expired. The copy is younger
// than the entry, so it must exist if the entry is younger than the inbox age.
func (c *check) expired(e transcript.Entry) bool {
	accepted, err := e.Stamp.AcceptedAt()
	age := time.Duration(c.held.InboxAge) * time.Millisecond
	return err == nil && age > 0 && c.at.Sub(accepted) >= age
}

func owners[V any](m map[performatives.Agent]V) []performatives.Agent {
	all := make([]performatives.Agent, 0, len(m))
	for a := range m {
		all = append(all, a)
	}
	slices.Sort(all)
	return all
}

// timer checks that the timer fires no later than the next deadline. One that fired
// and was not processed yet is no fault.
func (c *check) timer() {
	next, some := c.state.NextDeadline(c.at)
	if !some || c.held.Due {
		return
	}
	if c.held.Timer == "" {
		c.fault(Timer, "", "there is none; the next deadline is %s", next.UTC().Format(time.RFC3339Nano))
		return
	}
	set, err := time.Parse(time.RFC3339Nano, c.held.Timer)
	if err != nil || set.After(next) {
		c.fault(Timer, "", "it fires at %s; the next deadline is %s", c.held.Timer, next.UTC().Format(time.RFC3339Nano))
	}
}

// row checks the state and the participants in the session row.
func (c *check) row() {
	row, participants := c.held.Index, c.state.Participants()
	switch {
	case row == nil:
		c.fault(Index, "", "the session is not in the list of sessions")
	case row.State != c.state.Phase.String():
		c.fault(Index, "", "the list has %s; the transcript has %s", row.State, c.state.Phase)
	case !slices.Equal(row.Participants, participants):
		c.fault(Index, "", "the list has the participants %s; the transcript has %s", join(row.Participants), join(participants))
	}
}

func join(agents []performatives.Agent) string {
	var all []string
	for _, a := range agents {
		all = append(all, string(a))
	}
	return strings.Join(all, ", ")
}

// items checks that the escalation inbox has every escalation in its current status.
func (c *check) items() {
	held := map[escalation.ID]api.EscalationItem{}
	for _, item := range c.held.Items {
		held[item.ID] = item
	}
	c.state.Escalations(func(of *escalation.Item) {
		want := api.ViewEscalation(of)
		item, there := held[want.ID]
		switch {
		case !there:
			c.fault(Item, "", "escalation %s is not in the escalation inbox", want.ID)
		case item.Session != c.held.Session:
			c.fault(Item, "", "escalation %s is listed under session %s", want.ID, item.Session)
		case item.Status != want.Status || item.DecidedBy != want.DecidedBy:
			c.fault(Item, "", "escalation %s is listed as %s %s; it is %s %s", want.ID, item.Status, item.DecidedBy, want.Status, want.DecidedBy)
		}
	})
}
