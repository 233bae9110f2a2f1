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

// The closed list of acts, in the protocol's order. Acts is one past the last,
// for tables indexed by act. A further act is one row here and a file of its own.
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

// A Category groups acts by what they are for.
type Category string

// The categories of acts.
const (
	Negotiation Category = "negotiation"
	Information Category = "information"
	Action      Category = "action"
	Lifecycle   Category = "lifecycle"
)

// A Body is the typed content of one act. It speaks for its act, so that no code
// outside the act's own file has to tell acts apart to identify, follow or draw
// one. What only some acts have is in the interfaces below.
type Body interface {
	// Act names the performative that the body belongs to.
	Act() Performative
	// ID is what a later act calls this one: its own id, or its messageId; "" if
	// nothing can refer to it.
	ID(MessageID) string
	// Refers is the id of the thing in the session that the act is about, "" for
	// none.
	Refers() string
	// Text is how the act reads.
	Text() Text
}

type (
	// Named bodies have an id of their sender's making.
	Named interface{ SetID(id string) }
	// Offering bodies offer terms.
	Offering interface{ Offer() Offer }
	// Binder bodies may make an agreement of what they offer.
	Binder interface{ Binds() *Binding }
	// Explained bodies may give a reason.
	Explained interface{ Because(reason string) }
	// Remarked bodies may have remarks.
	Remarked interface{ Remark() *Remarks }
	// Naming bodies name principals whom the broker has to know.
	Naming interface{ Names() []Agent }
)

// A row is one act in the table of acts.
type row struct {
	name     string
	category Category
	newBody  func() Body
}

// The table of acts. Each act's own file enters itself, so that deleting the
// file deletes the act.
var table [Acts]row

func enter(name string, category Category, newBody func() Body) Performative {
	p := newBody().Act()
	table[p] = row{name, category, newBody}
	return p
}

// All lists the acts in the protocol's order.
func All() []Performative {
	all := make([]Performative, 0, Acts)
	for p := Propose; p < Acts; p++ {
		if table[p].newBody != nil {
			all = append(all, p)
		}
	}
	return all
}

// Parse finds the act of a name such as "PROPOSE"; an unknown name is Unknown.
func Parse(name string) Performative {
	for p := Propose; p < Acts; p++ {
		if table[p].name == name && name != "" {
			return p
		}
	}
	return Unknown
}

// NewBody returns an empty body of the act, or nil for Unknown.
func NewBody(p Performative) Body {
	if p >= Acts || table[p].newBody == nil {
		return nil
	}
	return table[p].newBody()
}

func (p Performative) String() string {
	if p >= Acts || table[p].newBody == nil {
		return "UNKNOWN"
	}
	return table[p].name
}

// Category is what the act is for, "" for Unknown.
func (p Performative) Category() Category {
	if p >= Acts {
		return ""
	}
	return table[p].category
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
