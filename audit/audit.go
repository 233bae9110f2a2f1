// Package audit holds what a broker keeps beside its transcripts against them.
//
// Inbox copies, the timer, the line in the list of sessions and the items of the
// escalation inbox all follow from the transcript. [Session] derives them again and
// compares:
//
//	faults, err := audit.Session(entries, held, modes.All())
//
// Invariants:
//
//   - No fault means: every principal was sent exactly the entries that are for it, in
//     their order, except those that have expired since; the timer goes off no later than
//     the next deadline; the list and the escalation inbox say what the transcript says.
//   - It trusts the transcript: verify that first (package transcript, and a replay).
//   - A broker that is in the middle of delivering has not done all yet. A fault counts
//     when it is still there a few seconds later.
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
	"github.com/parley-asp/parley/transcript"
)

// A Kind is what of the derived is not in order.
type Kind string

// The kinds.
const (
	Inbox Kind = "inbox" // copies of entries
	Timer Kind = "timer"
	Index Kind = "index" // the line in the list of sessions
	Item  Kind = "item"  // of the escalation inbox
)

// A Fault says what of the derived does not follow from the transcript.
type Fault struct {
	Kind  Kind                `json:"kind"`
	Agent performatives.Agent `json:"agentId,omitzero"` // whose inbox
	Why   string              `json:"why"`              // a sentence for a person
}

func (f Fault) Error() string {
	if f.Agent != "" {
		return fmt.Sprintf("%s of %s: %s", f.Kind, f.Agent, f.Why)
	}
	return fmt.Sprintf("%s: %s", f.Kind, f.Why)
}

// A check holds one session against what is kept of it.
type check struct {
	held  api.Held
	at    time.Time
	state session.State

	entries []transcript.Entry
	place   map[performatives.Hash]int              // of an entry by the hash of its bytes
	due     map[performatives.Agent]map[uint64]bool // which entries are for whom
	faults  []Fault
}

// Session compares what is held of a session with its transcript up to the entry that
// was the last when it was looked up. An error means that the transcript does not
// replay.
func Session(entries []transcript.Entry, held api.Held, modes session.Modes) ([]Fault, error) {
	at, err := time.Parse(time.RFC3339Nano, held.At)
	if err != nil {
		return nil, err
	}
	c := &check{
		held: held, at: at, state: session.New(held.Session, modes), entries: entries,
		place: map[performatives.Hash]int{}, due: map[performatives.Agent]map[uint64]bool{},
	}
	if len(entries) == 0 {
		return nil, errors.New("there is no transcript")
	}
	for i, e := range entries {
		c.place[performatives.HashOf(e.Bytes)] = i
		if held.Sequence != nil && e.Stamp.Sequence > *held.Sequence {
			continue // it came later
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
	c.inboxes()
	c.timer()
	c.index()
	c.items()
	return c.faults, nil
}

func (c *check) fault(k Kind, a performatives.Agent, format string, args ...any) {
	c.faults = append(c.faults, Fault{k, a, fmt.Sprintf(format, args...)})
}

// inboxes: each copy is an entry that is for its owner, after the copy before; none
// is missing but those that have expired.
func (c *check) inboxes() {
	last := map[performatives.Agent]int{}
	for _, a := range owners(c.due) {
		last[a] = -1
	}
	for _, copied := range c.held.Copies {
		a := copied.Agent
		i, there := c.place[copied.Hash]
		switch {
		case !there:
			c.fault(Inbox, a, "it holds what is no entry of the transcript (sha256 %s)", copied.Hash)
			continue
		case c.held.Sequence != nil && c.entries[i].Stamp.Sequence > *c.held.Sequence:
			continue
		}
		sequence := c.entries[i].Stamp.Sequence
		before, known := last[a]
		switch {
		case !known:
			c.fault(Inbox, a, "it holds entry %d, and nothing of the session is for %s", sequence, a)
			last[a] = i
			continue
		case before == i:
			c.fault(Inbox, a, "it holds entry %d twice", sequence)
		case before > i:
			c.fault(Inbox, a, "it holds entry %d after entry %d", sequence, c.entries[before].Stamp.Sequence)
		}
		last[a] = max(before, i)
		if !c.due[a][sequence] && before < i {
			c.fault(Inbox, a, "it holds entry %d, which is not for %s", sequence, a)
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

// expired: a copy of the entry may be gone. It was made after the entry, so one of an
// entry younger than the age must be there.
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

// timer: it goes off no later than the next deadline. A timer that went off and was
// not looked at yet will be.
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
		c.fault(Timer, "", "it goes off at %s; the next deadline is %s", c.held.Timer, next.UTC().Format(time.RFC3339Nano))
	}
}

// index: the list says the state and who takes part.
func (c *check) index() {
	line, roll := c.held.Index, c.state.Roll()
	switch {
	case line == nil:
		c.fault(Index, "", "the session is not in the list of sessions")
	case line.State != c.state.Phase.String():
		c.fault(Index, "", "the list says %s; the transcript, %s", line.State, c.state.Phase)
	case !slices.Equal(line.Participants, roll):
		c.fault(Index, "", "the list names %s; the transcript, %s", join(line.Participants), join(roll))
	}
}

func join(agents []performatives.Agent) string {
	var all []string
	for _, a := range agents {
		all = append(all, string(a))
	}
	return strings.Join(all, ", ")
}

// items: the escalation inbox has every escalation, as it stands.
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
			c.fault(Item, "", "escalation %s is shown as of session %s", want.ID, item.Session)
		case item.Status != want.Status || item.DecidedBy != want.DecidedBy:
			c.fault(Item, "", "escalation %s is shown as %s %s; it is %s %s", want.ID, item.Status, item.DecidedBy, want.Status, want.DecidedBy)
		}
	})
}
