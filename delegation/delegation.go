// Package delegation decides what a delegate may do: an agent that a party brought
// into a session to act within bounds (PROTOCOL.md §6).
//
// [Narrow] derives a Grant from the delegator's own, so a child is never wider
// than its parent: not in authority, time, proposals or depth. [Standing] reports
// whether a grant is still valid. It walks up to the principal, because whatever
// ends a grant ends all grants derived from it.
package delegation

import (
	"fmt"
	"time"

	"github.com/parley-asp/parley/performatives"
)

// MaxDepth is the longest chain of delegates. A principal's own delegate is at
// depth 1.
const MaxDepth = 3

// An Authority determines which acts a delegate may send. A higher one includes
// the lower ones.
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

// ParseAuthority returns the level with this name, None if there is none.
func ParseAuthority(name string) Authority {
	for a, n := range authorityNames {
		if n == name {
			return a
		}
	}
	return None
}

// lowest is the table of PROTOCOL.md §6: the lowest authority that may send an
// act. Only principals may send the acts that are not listed.
var lowest = map[performatives.Performative]Authority{
	performatives.Inform:   Advisory,
	performatives.Observe:  Advisory,
	performatives.Query:    Limited,
	performatives.Escalate: Full,
	performatives.Accept:   Full,
	performatives.Reject:   Full,
	performatives.Counter:  Full,
	performatives.Propose:  Full,
	performatives.Clarify:  Full,
	performatives.Delegate: Full,
}

// Allows reports whether the authority suffices for the act.
func (a Authority) Allows(p performatives.Performative) bool {
	need, listed := lowest[p]
	return listed && a >= need
}

// Acts lists the acts that the authority allows, in the protocol's order.
func (a Authority) Acts() []performatives.Performative {
	var acts []performatives.Performative
	for _, p := range performatives.All() {
		if a.Allows(p) {
			acts = append(acts, p)
		}
	}
	return acts
}

// A Status is the state of a grant.
type Status uint8

// A DELEGATE offers a grant. It is active once the delegate has joined, and ends
// when it is declined or withdrawn. Expired follows from the time and is never
// stored: see [StatusAt].
const (
	Offered Status = iota
	Active
	Declined
	Withdrawn
	Expired
)

var statusNames = [...]string{"offered", "active", "declined", "withdrawn", "expired"}

func (s Status) String() string { return statusNames[s] }

// An ID identifies a delegation: the messageId of its DELEGATE.
type ID string

// A Grant is one delegation.
type Grant struct {
	ID        ID
	Parent    ID // "" if the delegator is a principal
	From      performatives.Agent
	To        performatives.Agent
	Principal performatives.Agent // at the root of the chain
	Authority Authority
	Scope     string
	Offer     string    // limits it to this proposal and what counters it; "" is any
	Until     time.Time // on the session's clock; zero is the session's end
	Depth     int
	MaxDepth  int
	Status    Status
	Sequence  uint64
	Accepted  uint64 // sequence number of what accepted it; 0 for nothing
	Result    uint64 // sequence number of the delegate's newest INFORM result; 0 for none
}

// Excess explains how an act exceeds a grant.
type Excess struct{ Why string }

func (e *Excess) Error() string { return e.Why }

func excess(format string, args ...any) error { return &Excess{fmt.Sprintf(format, args...)} }

// Narrow derives the grant that a delegator asks for from the one it holds, nil
// for a principal. It refuses a grant that would be wider. Missing bounds are
// inherited. maxDepth counts levels from this grant on, itself included. counters
// reports whether an offer is another one, or counters it.
func Narrow(holds *Grant, ask Grant, maxDepth *int, counters func(id, other string) bool) (Grant, error) {
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
		case holds.Offer != "" && g.Offer != "" && !counters(g.Offer, holds.Offer):
			return Grant{}, excess("its own authority is limited to the proposal %q and its counters", holds.Offer)
		case !holds.Until.IsZero() && g.Until.After(holds.Until):
			return Grant{}, excess("its own authority ends before the validUntil that it asks for")
		}
		if g.Offer == "" {
			g.Offer = holds.Offer
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

// Standing returns nil if the grant and all its ancestors are valid at the time,
// and otherwise an Excess that says why not. grants finds a grant by its id.
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

// StatusAt returns the grant's status at the time: whatever ends an ancestor ends
// it too. grants finds a grant by its id.
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

// Can returns nil if the grant allows the act. offer is what the act refers to, "" if it
// refers to none; counters is as for [Narrow]. Can does not check whether the grant is
// still valid: see [Standing].
func (g Grant) Can(act performatives.Performative, offer string, counters func(id, other string) bool) error {
	if !g.Authority.Allows(act) {
		return excess("%s authority allows %v; %s is not among them", g.Authority, g.Authority.Acts(), act)
	}
	if g.Offer == "" {
		return nil
	}
	if act == performatives.Propose || offer != "" && !counters(offer, g.Offer) {
		return excess("the authority is limited to the proposal %q and its counters", g.Offer)
	}
	return nil
}
