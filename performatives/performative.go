// Package performatives is what can be said in an ASP session: the closed set of
// thirteen speech acts, their bodies, the envelope around them, and the bytes
// that are signed and hashed.
//
// The package is pure: no network, no clock, no log. Reading an envelope either
// yields a [Message] or a [*Malformed] that says where and why.
package performatives

import "fmt"

// A Performative is one of the thirteen acts of ASP (PROTOCOL.md §4). The zero
// value is no act at all: what an unknown name reads as.
type Performative uint8

// The closed enum. Its order is the protocol's own; Acts is one past the last,
// for tables indexed by act.
const (
	Unknown Performative = iota
	Propose
	Accept
	Reject
	Counter
	Inform
	Query
	Clarify
	Commit
	Delegate
	Escalate
	Withdraw
	Observe
	Close
	Acts
)

var names = [Acts]string{
	Propose: "PROPOSE", Accept: "ACCEPT", Reject: "REJECT", Counter: "COUNTER",
	Inform: "INFORM", Query: "QUERY", Clarify: "CLARIFY",
	Commit: "COMMIT", Delegate: "DELEGATE", Escalate: "ESCALATE",
	Withdraw: "WITHDRAW", Observe: "OBSERVE", Close: "CLOSE",
}

// A Body is the typed content of one act.
type Body interface {
	// Act names the performative that the body belongs to.
	Act() Performative
}

// bodies maps each act to a fresh body of its type; each act's own file enters
// itself, so that deleting the file deletes the act.
var bodies [Acts]func() Body

func enter(newBody func() Body) Performative {
	p := newBody().Act()
	bodies[p] = newBody
	return p
}

// All lists the acts in the protocol's order.
func All() []Performative {
	all := make([]Performative, 0, Acts)
	for p := Propose; p < Acts; p++ {
		if bodies[p] != nil {
			all = append(all, p)
		}
	}
	return all
}

// Parse finds the act of a name such as "PROPOSE"; an unknown name is Unknown.
func Parse(name string) Performative {
	for p := Propose; p < Acts; p++ {
		if names[p] == name && bodies[p] != nil {
			return p
		}
	}
	return Unknown
}

// NewBody returns an empty body of the act, or nil for Unknown.
func NewBody(p Performative) Body {
	if p >= Acts || bodies[p] == nil {
		return nil
	}
	return bodies[p]()
}

func (p Performative) String() string {
	if p == Unknown || p >= Acts {
		return "UNKNOWN"
	}
	return names[p]
}

// MarshalText writes the act's name.
func (p Performative) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText reads an act's name and refuses all others.
func (p *Performative) UnmarshalText(text []byte) error {
	if *p = Parse(string(text)); *p == Unknown {
		return fmt.Errorf("%q is none of the thirteen performatives", text)
	}
	return nil
}
