// Package api is the broker's public contract: subjects, verbs, and the JSON of
// requests, replies and refusals.
//
// Every verb is one row of a table, with the types of its request and reply:
//
//	subject := api.Call("agent://acme.com/alpha", api.SessionGet.Name)
//	fmt.Println(subject) // asp.agent.acme_com~alpha.api.session.get
//	for _, v := range api.Verbs() {
//		if v.Role == api.Operator && v.Access == api.Read {
//			fmt.Println(v.Name, v.Request.Name(), v.Reply.Name())
//		}
//	}
//
// These hold:
//   - A gateway serves what [Verbs] lists and nothing else; [VerbOf] makes the
//     compiler check the types at both ends.
//   - docs/PROTOCOL.md §9 has the same verbs, in the same order, with the same
//     members; a test compares them.
//   - A [SessionView] is derived from a session.State and a time alone, and has
//     the members of the session's mode without knowing any mode.
//   - The package is pure: no IO, no clock.
package api

import (
	"cmp"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
)

// A SessionRef is the request of a verb about one session.
type SessionRef struct {
	Session performatives.SessionID `json:"sessionId"`
}

// GetSession is the request of session.get. With a part it asks for a page of one list of the view.
type GetSession struct {
	Session performatives.SessionID `json:"sessionId"`
	Part    string                  `json:"part,omitzero"`   // participants, proposals, commitments, delegations, authorities or deadlines
	Limit   int                     `json:"limit,omitzero"`  // of a part: 1–1000, by default 100
	Cursor  string                  `json:"cursor,omitzero"` // of a part: next of the page before
}

// Pages are at most this long, and this long by default.
const (
	MaxPage     = 1000
	DefaultPage = 100
)

// PageSize is how many of something a page has, of as many as were asked for.
func PageSize(limit int) int {
	if limit <= 0 {
		return DefaultPage
	}
	return min(limit, MaxPage)
}

// ListSessions is the request of session.list; sessions come newest first.
type ListSessions struct {
	State    string `json:"state,omitzero"`    // only those in this state; open and ended are any that is not over, or is
	Awaiting string `json:"awaiting,omitzero"` // "me": only those that wait for the caller
	With     string `json:"with,omitzero"`     // only those of this principal, or of somebody of this organisation
	Search   string `json:"search,omitzero"`   // only those whose purpose, parties or id have these words
	Since    string `json:"since,omitzero"`    // only those that changed at this time or later
	Until    string `json:"until,omitzero"`    // only those that changed before this time
	Limit    int    `json:"limit,omitzero"`    // 1–1000, by default 100
	Cursor   string `json:"cursor,omitzero"`   // next of the page before
}

// States that session.list takes besides those of a session.
const (
	OpenSessions  = "open"
	EndedSessions = "ended"
)

// Sessions is a page of session.list.
type Sessions struct {
	Sessions []SessionSummary `json:"sessions"`
	Next     string           `json:"next,omitzero"` // cursor of the next page; absent on the last
}

// ListMessages is the request of session.messages.
type ListMessages struct {
	Session performatives.SessionID `json:"sessionId"`
	Since   uint64                  `json:"since,omitzero"` // first sequenceNumber wanted
	Limit   int                     `json:"limit,omitzero"` // 1–1000, by default 100

	Message performatives.MessageID `json:"messageId,omitzero"` // only this one
}

// Messages is a page of a transcript: delivered envelopes in order.
type Messages struct {
	Messages []jsontext.Value `json:"messages"`
	Next     *uint64          `json:"next,omitzero"` // since of the next page; absent on the last

	// Sealed are what opens sealed members of these envelopes, as far as the caller may open them.
	Sealed map[performatives.MessageID]performatives.SealedParts `json:"sealed,omitzero"`
}

// Opens reports whether somebody may open what an organisation has sealed.
type Opens func(owner performatives.Organisation) bool

// Unsealed reports whether somebody, the arbiter, may open what a principal has sealed of an escalation. nil is nothing.
type Unsealed func(of escalation.ID, sealer performatives.Agent) bool

func (u Unsealed) has(of escalation.ID, sealer performatives.Agent) bool {
	return u != nil && u(of, sealer)
}

// ListInbox is the request of inbox.messages.
type ListInbox struct {
	Since *uint64 `json:"since,omitzero"` // cursor of a page before; absent: no messages, and the newest cursor
	Limit int     `json:"limit,omitzero"` // 1–1000, by default 100
}

// An InboxPage is a page of a principal's inbox, over all its sessions, in the order of delivery.
type InboxPage struct {
	Messages []InboxMessage `json:"messages"`
	Cursor   uint64         `json:"cursor"`        // where the next page begins
	More     bool           `json:"more,omitzero"` // there is one now
}

// An InboxMessage is one entry as it was delivered.
type InboxMessage struct {
	Cursor   uint64         `json:"cursor"`
	Envelope jsontext.Value `json:"envelope"`

	Sealed performatives.SealedParts `json:"sealed,omitzero"` // what opens it, where that is the caller's own organisation's
}

// AskConsumer is the request of session.consumer.
type AskConsumer struct {
	Session performatives.SessionID `json:"sessionId"`
	Ahead   int                     `json:"ahead,omitzero"` // messages that may wait for their acknowledgement, 1–1000; by default 1: strictly in order
}

// A Consumer is the reply of session.consumer: a pull consumer of one session's messages for the
// caller.
type Consumer struct {
	Stream   string `json:"stream"`          // ASP_INBOX
	Name     string `json:"consumer"`        // one of SessionConsumers of the caller
	AckWait  int64  `json:"ackWaitMs"`       // a message that is not acknowledged comes again after this time
	Inactive int64  `json:"inactiveAfterMs"` // it is gone after this time without a pull
	Pending  uint64 `json:"pending"`         // messages to acknowledge
}

func canonical(v any) ([]byte, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return performatives.Canonical(data)
}

// A Schema is a body schema or a terms schema by name.
type Schema struct {
	Name    string              `json:"name"`
	Version int                 `json:"version,omitzero"` // the -vN of a terms schema
	Kind    string              `json:"kind"`             // body or terms
	By      performatives.Agent `json:"by,omitzero"`      // who registered it
	Schema  jsontext.Value      `json:"schema,omitzero"`
}

// PutSchema is the request of schema.put.
type PutSchema struct {
	Name   string         `json:"name"`
	Schema jsontext.Value `json:"schema"`
}

// SchemaRef is the request of schema.get.
type SchemaRef struct {
	Name string `json:"name"`
}

// ListSchemas is the request of schema.list.
type ListSchemas struct {
	Limit  int    `json:"limit,omitzero"` // 1–1000, by default 100
	Cursor string `json:"cursor,omitzero"`
}

// SchemaNames is a page of schema.list, without the schemas themselves: the bodies' first, then terms
// schemas by name.
type SchemaNames struct {
	Schemas []Schema `json:"schemas"`
	Next    string   `json:"next,omitzero"`
}

// Broker answers broker.info.
type Broker struct {
	Key performatives.Key `json:"key"` // verifies the receipts
	// Keys are every key that has signed receipts, the first one first, once the key has been rotated.
	Keys    performatives.KeyHistory `json:"keys,omitzero"`
	Since   string                   `json:"keySince,omitzero"` // when the key was made, RFC 3339
	Version string                   `json:"version"`
	NATS    string                   `json:"nats"` // version of the NATS server
	Dev     bool                     `json:"dev,omitzero"`
	Log     LogKey                   `json:"log"`
	Now     string                   `json:"now"`            // the broker's time
	Inbox   string                   `json:"inbox,omitzero"` // the stream of the caller's inbox, if it is not ASP_INBOX
}

// TrustedKeys are the keys whose receipts a verifier accepts who trusts one key of the broker; "" trusts the one that
// it says. The error is as of [performatives.KeyHistory.Trust].
func (b Broker) TrustedKeys(trusted performatives.Key) (performatives.TrustedKeys, error) {
	history := b.Keys
	switch {
	case len(history) > 0:
	case trusted == "" || trusted == b.Key:
		return performatives.Trust(b.Key), nil
	default:
		history = performatives.KeyHistory{{Key: b.Key}}
	}
	return history.Trust(cmp.Or(trusted, b.Key))
}

// A LogKey is what names the installation's public log, and what verifies it.
type LogKey struct {
	Origin string `json:"origin"`
	Key    string `json:"key,omitzero"` // NAME+HASH+KEY, as signed-note has it

	Receipts string `json:"receiptKey,omitzero"` // verifies COSE Receipts of its leaves: Ed25519 as PEM
}

// Version is parley's own. Contract counts the changes of the verbs, over NATS and HTTP, after which a client
// that knew them before fails.
const (
	Version  = "0.1.0"
	Contract = 1
)

// A Caller is who calls a verb: a principal, or an operator, who sees everything.
type Caller struct {
	Agent    performatives.Agent // "" of an operator
	Operator bool
}

// Opens reports whether the caller may open what an organisation has sealed: its own, or an operator.
func (c Caller) Opens(owner performatives.Organisation) bool {
	return c.Operator || c.Agent.Organisation() == owner
}

// A reply is bounded in bytes by construction: rows of lists, items and views are cut to fit (package fit),
// and lists are paged. Sizes are those of the JSON that is sent, escapes included.
const (
	MaxPageBytes = 700 << 10 // of a page: below the server's largest message, 1 MiB
	MaxItemBytes = 64 << 10  // of an item of the escalation inbox, without its transcript
	MaxRowBytes  = 8 << 10   // of a row of a list
)

// A PageOf is a page of a list, as it is filled.
type PageOf[E any] struct {
	Items []E
	limit int
	size  int
}

// NewPage is an empty page of at most limit items, 0 for the default.
func NewPage[E any](limit int) *PageOf[E] { return &PageOf[E]{Items: []E{}, limit: PageSize(limit)} }

// Add adds an item, and reports whether there was room: if not, it is the first of the next page.
func (p *PageOf[E]) Add(item E, size int) bool {
	if len(p.Items) == p.limit || p.size+size > MaxPageBytes && len(p.Items) > 0 {
		return false
	}
	p.Items = append(p.Items, item)
	p.size += size + 1
	return true
}
