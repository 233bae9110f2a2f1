// Package delegation says what a delegate may do: an agent that a party brought
// into a session to act within bounds (PROTOCOL.md §6).
//
// A Grant is made by [Narrow] from what the delegator itself holds, so that a
// child is never wider than its parent: not in authority, not in time, not in
// the proposals it may touch, not in depth. Whether a grant still stands is
// asked of [Standing], which walks to the principal at the root: what ends a
// grant ends all below it.
package delegation

import (
	"fmt"
	"time"

	"github.com/parley-asp/parley/performatives"
)

// MaxDepth is how many delegates may stand in a row; a principal's own delegate
// is at depth 1.
const MaxDepth = 3

// An Authority is how far a delegate may go. A higher one includes the lower.
type Authority uint8

// The levels of authority.
const (
	None Authority = iota
	Advisory
	Limited
	Full
)

var authorityNames = map[Authority]string{Advisory: "advisory", Limited: "limited", Full: "full"}

func (a Authority) String() string { return authorityNames[a] }

// ParseAuthority reads a level's name; an unknown one is None.
func ParseAuthority(name string) Authority {
	for a, n := range authorityNames {
		if n == name {
			return a
		}
	}
	return None
}

// lowest is the table of PROTOCOL.md §6: the lowest authority that may send an
// act. What is not listed stays with the principals.
var lowest = map[performatives.Performative]Authority{
	performatives.Inform:   Advisory,
	performatives.Observe:  Advisory,
	performatives.Query:    Limited,
	performatives.Escalate: Limited,
	performatives.Accept:   Full,
	performatives.Reject:   Full,
	performatives.Counter:  Full,
	performatives.Propose:  Full,
	performatives.Clarify:  Full,
	performatives.Delegate: Full,
}

// Allows tells whether the authority suffices for the act.
func (a Authority) Allows(p performatives.Performative) bool {
	need, listed := lowest[p]
	return listed && a >= need
}

// Acts lists what the authority allows, in the protocol's order.
func (a Authority) Acts() []performatives.Performative {
	var acts []performatives.Performative
	for _, p := range performatives.All() {
		if a.Allows(p) {
			acts = append(acts, p)
		}
	}
	return acts
}

// A Status is how a grant stands.
type Status uint8

// A grant is offered by a DELEGATE, active once the delegate joined, and over
// once declined or withdrawn. Expired is a matter of time and never stored: ask
// StatusAt.
const (
	Offered Status = iota
	Active
	Declined
	Withdrawn
	Expired
)

var statusNames = [...]string{"offered", "active", "declined", "withdrawn", "expired"}

func (s Status) String() string { return statusNames[s] }

// An ID names a delegation: the messageId of its DELEGATE.
type ID string

// A Grant is one delegation.
type Grant struct {
	ID        ID
	Parent    ID // "" where the delegator is a principal
	From      performatives.Agent
	To        performatives.Agent
	Principal performatives.Agent // for whom it is done in the end
	Authority Authority
	Scope     string
	Line      string    // first proposal of the one line of offers that it may touch; "" is any
	Until     time.Time // on the session's clock; zero is as long as the session
	Depth     int
	MaxDepth  int
	Status    Status
	Sequence  uint64
}

// Excess says how an act is more than a grant allows.
type Excess struct{ Why string }

func (e *Excess) Error() string { return e.Why }

func excess(format string, args ...any) error { return &Excess{fmt.Sprintf(format, args...)} }

// Narrow makes the grant that a delegator asks for out of the one it holds
// (nil for a principal), or says what would be wider. An absent bound is
// inherited; maxDepth counts the levels from this grant on, itself included.
func Narrow(holds *Grant, ask Grant, maxDepth *int) (Grant, error) {
	g := ask
	g.Depth, g.MaxDepth = 1, MaxDepth
	g.Principal = g.From
	if holds != nil {
		g.Parent, g.Principal = holds.ID, holds.Principal
		g.Depth, g.MaxDepth = holds.Depth+1, holds.MaxDepth
		switch {
		case g.Authority > holds.Authority:
			return Grant{}, excess("a %s delegate cannot grant %s authority", holds.Authority, g.Authority)
		case g.Depth > holds.MaxDepth:
			return Grant{}, excess("the delegation may not grow deeper than %d", holds.MaxDepth)
		case holds.Line != "" && g.Line != "" && g.Line != holds.Line:
			return Grant{}, excess("its own authority is limited to the proposal %q and its counters", holds.Line)
		case !holds.Until.IsZero() && g.Until.After(holds.Until):
			return Grant{}, excess("its own authority ends before the validUntil that it asks for")
		}
		if g.Line == "" {
			g.Line = holds.Line
		}
		if g.Until.IsZero() {
			g.Until = holds.Until
		}
	}
	if maxDepth != nil {
		g.MaxDepth = min(g.MaxDepth, g.Depth+max(*maxDepth, 1)-1)
	}
	return g, nil
}

// Standing tells whether the grant, and with it all it was made from, still
// gives authority at the time; if not, why. grants finds a grant by its id.
func Standing(g Grant, at time.Time, grants func(ID) (Grant, bool)) error {
	for {
		switch {
		case g.Status == Declined:
			return excess("the delegation was declined")
		case g.Status == Withdrawn:
			return excess("the delegation was withdrawn")
		case !g.Until.IsZero() && !at.Before(g.Until):
			return excess("the delegation's validUntil has passed")
		case g.Parent == "":
			return nil
		}
		parent, ok := grants(g.Parent)
		if !ok {
			return excess("the delegation that it was made from is unknown")
		}
		g = parent
	}
}

// StatusAt is how the grant stands at the time: what ends one that it was made
// from ends it too. grants finds a grant by its id.
func StatusAt(g Grant, at time.Time, grants func(ID) (Grant, bool)) Status {
	for above, ok := g, true; ok; above, ok = grants(above.Parent) {
		switch {
		case above.ID == g.ID && g.Status > Active:
			return g.Status
		case above.Status > Active:
			return Withdrawn
		case !above.Until.IsZero() && !at.Before(above.Until):
			return Expired
		}
	}
	return g.Status
}

// Can tells whether the grant allows the act; line is the first proposal of
// the line of offers that the act is about, "" where it is about none. Whether
// the grant still stands is another question.
func (g Grant) Can(act performatives.Performative, line string) error {
	if !g.Authority.Allows(act) {
		return excess("%s authority allows %v; %s is not among them", g.Authority, g.Authority.Acts(), act)
	}
	if g.Line == "" {
		return nil
	}
	if act == performatives.Propose || line != "" && line != g.Line {
		return excess("the authority is limited to the proposal %q and its counters", g.Line)
	}
	return nil
}
