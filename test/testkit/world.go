package testkit

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/performatives"
)

// A World is a broker and those who speak to it.
type World struct {
	testing.TB
	*Broker
	Ctx    context.Context                //nolint:containedctx // the test's own; it ends after Patience
	Tokens map[performatives.Agent]string // of hosted agents

	principals map[performatives.Agent]*Principal
	operator   *client.Operator
}

// NewWorld starts a broker and nobody else.
func NewWorld(t testing.TB, o Options) *World {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*Patience)
	t.Cleanup(cancel)
	return &World{
		TB: t, Broker: StartBroker(t, o), Ctx: ctx,
		Tokens: map[performatives.Agent]string{}, principals: map[performatives.Agent]*Principal{},
	}
}

// Principal is a principal, registered with a new key when it is first asked for, and again
// when change says how its card differs. Under Dev it has no key and signs nothing.
func (w *World) Principal(a performatives.Agent, change ...func(*api.Card)) *Principal {
	w.Helper()
	p := w.principals[a]
	if p != nil && len(change) == 0 {
		return p
	}
	if p == nil {
		p = &Principal{TB: w.TB, Agent: a, URL: w.URL}
		w.principals[a] = p
	}
	if !w.options.Dev {
		p.SetKey(w.Register(a, change...))
	}
	return p
}

// Operates is the operator as one who speaks over a plain connection, and has no name.
func (w *World) Operates() *Principal {
	w.Helper()
	key := w.Operator()
	return &Principal{TB: w.TB, Key: key, Signer: Signer(w, key), URL: w.URL, Inbox: "_INBOX.operator"}
}

// Client is a new connection of a principal by the Go SDK.
func (w *World) Client(a performatives.Agent, options ...client.Option) *client.Client {
	w.Helper()
	how := []client.Option{client.Unsigned()}
	if p := w.Principal(a); p.Key != nil {
		how = Keys(w, p.Signer)
	}
	c, err := client.Connect(w.Ctx, w.URL, a, append(how, options...)...)
	Must(w, err)
	w.Cleanup(func() { c.Close() })
	return c
}

// OperatorClient is the operator's connection by the Go SDK. There is one, made with the options
// of the first call.
func (w *World) OperatorClient(options ...client.Option) *client.Operator {
	w.Helper()
	if w.operator == nil {
		how := client.Unsigned()
		if !w.options.Dev {
			how = client.Login(Signer(w, w.Operator()))
		}
		var err error
		w.operator, err = client.ConnectOperator(w.Ctx, w.URL, append([]client.Option{how}, options...)...)
		Must(w, err)
		w.Cleanup(func() { w.operator.Close() })
	}
	return w.operator
}

// Open opens a session by plain acts: the first invites the others, who accept. It is CONVERSING.
func (w *World) Open(inviter *Principal, invited ...*Principal) performatives.SessionID {
	w.Helper()
	id, with := NewSession(), []performatives.Agent{}
	for _, p := range invited {
		with = append(with, p.Agent)
	}
	inviter.Say(id, Invitation(with...))
	for _, p := range invited {
		p.Say(id, &performatives.AcceptBody{ReferenceID: "inv"})
	}
	inviter.Say(id, Fact("hello"))
	return id
}

// Invitation invites participants, as proposal "inv".
func Invitation(with ...performatives.Agent) performatives.Body {
	terms, err := json.Marshal(map[string]any{"participants": with})
	if err != nil {
		panic(err)
	}
	return &performatives.ProposeBody{ProposalID: "inv", Type: performatives.SessionInvitation, Subject: "a deal", Terms: terms}
}

// Offer proposes a price.
func Offer(id string, price int) performatives.Body {
	return &performatives.ProposeBody{ProposalID: id, Type: "service-agreement", Subject: "support " + id, Terms: fmt.Appendf(nil, `{"price":%d}`, price)}
}

// Fact tells a fact.
func Fact(text string) performatives.Body {
	return &performatives.InformBody{Type: performatives.Fact, Data: fmt.Appendf(nil, "%q", text)}
}

// Ruling is a human's decision on an escalation.
func Ruling(escalation performatives.MessageID, decision string) performatives.Body {
	return &performatives.InformBody{
		Type: performatives.Resolution, Data: fmt.Appendf(nil, `{"escalationId":%q,"decision":%q}`, escalation, decision),
	}
}
