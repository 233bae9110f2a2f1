package client

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/nats-io/nats.go"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/session/agreement"
	"github.com/parley-asp/parley/session/transcript"
)

// Calls are what principals and operators share. A principal sees
// what it takes part in, an operator everything.
type Calls struct {
	link    *link
	subject func(verb string) string
}

// Conn is the NATS connection, for what the client does not do; nil over HTTP.
func (c *Calls) Conn() *nats.Conn { return c.link.nc }

// A Caller calls verbs: a [Client] or an [Operator].
type Caller interface {
	Call(ctx context.Context, verb string, request []byte) ([]byte, error)
}

// Do calls any verb of package api, as in
//
//	page, err := client.Do(ctx, c, api.CheckList, api.ListChecks{Status: api.AllChecks})
//
// Most requests are repeated until they are answered or the context ends: see [Calls.Call].
func Do[Q, A any](ctx context.Context, c Caller, verb api.VerbOf[Q, A], request Q) (reply A, err error) {
	err = exchange(verb.Name, request, &reply, func(data []byte) ([]byte, error) { return c.Call(ctx, verb.Name, data) })
	return reply, err
}

// Call calls a verb by its name, with a request and a reply in JSON, for programs that pass both
// on. It repeats the request as the other calls do, unless the verb waits for something, or does
// what a repeat would do again.
func (c *Calls) Call(ctx context.Context, verb string, request []byte) ([]byte, error) {
	switch v := api.VerbNamed(verb); {
	case v.Waits:
		return c.link.once(ctx, c.subject(verb), request, api.LongestWait+c.link.timeout)
	case v.Once:
		return c.link.once(ctx, c.subject(verb), request, c.link.timeout)
	}
	return c.repeated(ctx, verb, request)
}

// repeated sends a request until it is answered or the context ends. What is gone after an attempt
// to remove it whose answer was lost, that attempt has removed.
func (c *Calls) repeated(ctx context.Context, verb string, request []byte) ([]byte, error) {
	reply, maybe, err := c.link.insist(ctx, c.subject(verb), request)
	gone := errors.Is(err, Refused(session.UnknownAgent)) || errors.Is(err, Refused(session.SchemaUnsupported))
	if maybe && gone && strings.HasSuffix(verb, ".rm") {
		return []byte("{}"), nil
	}
	return reply, err
}

// call calls a verb, and repeats the request until it is answered or the
// context ends.
func call[Q, A any](ctx context.Context, c *Calls, verb api.VerbOf[Q, A], request Q) (reply A, err error) {
	err = exchange(verb.Name, request, &reply, func(data []byte) ([]byte, error) { return c.repeated(ctx, verb.Name, data) })
	return reply, err
}

// once calls a verb a single time.
func once[Q, A any](ctx context.Context, c *Calls, verb api.VerbOf[Q, A], request Q, within time.Duration) (reply A, err error) {
	one, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	err = exchange(verb.Name, request, &reply, func(data []byte) ([]byte, error) { return c.link.request(one, c.subject(verb.Name), data) })
	return reply, err
}

// exchange writes the request, sends it, and reads the reply.
func exchange(verb string, request, reply any, send func([]byte) ([]byte, error)) error {
	data, err := json.Marshal(request, json.Deterministic(true))
	if err != nil {
		return fmt.Errorf("%s: %w", verb, err)
	}
	answer, err := send(data)
	if err != nil {
		return fmt.Errorf("%s: %w", verb, err)
	}
	if err := json.Unmarshal(answer, reply); err != nil {
		return fmt.Errorf("%s: the answer cannot be read: %w", verb, err)
	}
	return nil
}

// pages goes through the pages of a list.
func pages[P, E any](turn func(cursor string) (P, error), open func(P) (items []E, next string)) iter.Seq2[E, error] {
	return func(yield func(E, error) bool) {
		for cursor := ""; ; {
			page, err := turn(cursor)
			if err != nil {
				var none E
				yield(none, err)
				return
			}
			var items []E
			items, cursor = open(page)
			for _, item := range items {
				if !yield(item, nil) {
					return
				}
			}
			if cursor == "" {
				return
			}
		}
	}
}

// Sessions are the sessions that the filter names, newest first; its Limit is
// the length of a page. An error ends them.
func (c *Calls) Sessions(ctx context.Context, filter api.ListSessions) iter.Seq2[api.SessionSummary, error] {
	return pages(func(cursor string) (api.Sessions, error) {
		filter.Cursor = cursor
		return call(ctx, c, api.SessionList, filter)
	}, func(p api.Sessions) ([]api.SessionSummary, string) { return p.Sessions, p.Next })
}

// View is a session as it stands. One that is too large for a message has Truncated set, and Omitted says how
// many entries of which part are left out: [Client.Proposals] and the like read all of a part.
func (c *Calls) View(ctx context.Context, id performatives.SessionID) (api.SessionView, error) {
	return call(ctx, c, api.SessionGet, api.GetSession{Session: id})
}

// Transcript is every entry of a session so far, from the first, in the form
// that package transcript verifies and exports.
func (c *Calls) Transcript(ctx context.Context, id performatives.SessionID) ([]transcript.Entry, error) {
	var all []transcript.Entry
	for e, err := range c.entries(ctx, id, 0) {
		if err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	return all, nil
}

// entries are those of a transcript from one place on.
func (c *Calls) entries(ctx context.Context, id performatives.SessionID, since uint64) iter.Seq2[transcript.Entry, error] {
	return func(yield func(transcript.Entry, error) bool) {
		for page, err := range c.messages(ctx, id, since) {
			if err != nil {
				yield(transcript.Entry{}, err)
				return
			}
			for _, raw := range page.Messages {
				e, err := transcript.ReadOpened(raw, page.Sealed)
				if !yield(e, err) || err != nil {
					return
				}
			}
		}
	}
}

// Envelopes are the entries of a session from one place on, byte for byte as the
// broker delivered them: what verifies is the spelling. An error ends them.
func (c *Calls) Envelopes(ctx context.Context, id performatives.SessionID, since uint64) iter.Seq2[jsontext.Value, error] {
	return func(yield func(jsontext.Value, error) bool) {
		for page, err := range c.messages(ctx, id, since) {
			if err != nil {
				yield(nil, err)
				return
			}
			for _, raw := range page.Messages {
				if !yield(raw, nil) {
					return
				}
			}
		}
	}
}

// Sealed are what opens the sealed members of a session's envelopes from one place on, as far as they
// are the caller's own organisation's (PROTOCOL.md §7).
func (c *Calls) Sealed(ctx context.Context, id performatives.SessionID, since uint64) (map[performatives.MessageID]performatives.SealedParts, error) {
	all := map[performatives.MessageID]performatives.SealedParts{}
	for page, err := range c.messages(ctx, id, since) {
		if err != nil {
			return nil, err
		}
		maps.Copy(all, page.Sealed)
	}
	return all, nil
}

// messages are the pages of a transcript from one place on.
func (c *Calls) messages(ctx context.Context, id performatives.SessionID, since uint64) iter.Seq2[api.Messages, error] {
	return func(yield func(api.Messages, error) bool) {
		for {
			page, err := call(ctx, c, api.SessionMessages, api.ListMessages{Session: id, Since: since, Limit: api.MaxPage})
			if !yield(page, err) || err != nil || page.Next == nil {
				return
			}
			since = *page.Next
		}
	}
}

// Agents are the cards of the principals that the filter names, by URI; its
// Limit is the length of a page. An error ends them.
func (c *Calls) Agents(ctx context.Context, filter api.ListAgents) iter.Seq2[api.Card, error] {
	return pages(func(cursor string) (api.Agents, error) {
		filter.Cursor = cursor
		return call(ctx, c, api.AgentList, filter)
	}, func(p api.Agents) ([]api.Card, string) { return p.Agents, p.Next })
}

// Agreement reads an agreement, with its position in the public log.
func (c *Calls) Agreement(ctx context.Context, q api.GetAgreement) (agreement.Document, error) {
	return call(ctx, c, api.AgreementGet, q)
}

// Agreements lists what the caller's sessions have agreed on, the newest session first.
func (c *Calls) Agreements(ctx context.Context, q api.ListAgreements) iter.Seq2[api.AgreementRow, error] {
	return pages(func(cursor string) (api.Agreements, error) {
		q.Cursor = cursor
		return call(ctx, c, api.AgreementList, q)
	}, func(page api.Agreements) ([]api.AgreementRow, string) { return page.Agreements, page.Next })
}

// Card is what a principal says of itself, and the registry of it.
func (c *Calls) Card(ctx context.Context, a performatives.Agent) (api.Card, error) {
	return call(ctx, c, api.AgentGet, api.AgentRef{Agent: a})
}

// UserJWT is what a NATS credentials file (.creds) of a principal has beside the
// seed of a key; no principal is the client's own, no key the one that it is
// registered with. It is no secret, and lets nobody in by itself. Where the
// broker's NATS server is not in operator mode the error is a refusal.
func (c *Calls) UserJWT(ctx context.Context, a performatives.Agent, key performatives.Key) (string, error) {
	reply, err := call(ctx, c, api.AgentJWT, api.AskUserJWT{Agent: a, Key: key})
	return reply.JWT, err
}

// Escalations are the items of the escalation inbox, the one due first at the
// top; by default those that are open. An error ends them.
func (c *Calls) Escalations(ctx context.Context, filter api.ListEscalations) iter.Seq2[api.EscalationItem, error] {
	return pages(func(cursor string) (api.Escalations, error) {
		filter.Cursor = cursor
		return call(ctx, c, api.EscalationList, filter)
	}, func(p api.Escalations) ([]api.EscalationItem, string) { return p.Escalations, p.Next })
}

// Escalation is one item of the escalation inbox, with the transcript. What was too large for a message
// is cut, and Truncated set: a request for a part has it in full.
func (c *Calls) Escalation(ctx context.Context, id string) (api.EscalationItem, error) {
	return call(ctx, c, api.EscalationGet, api.GetEscalation{Escalation: id})
}

// Broker says who the broker is.
func (c *Calls) Broker(ctx context.Context) (api.Broker, error) {
	return call(ctx, c, api.BrokerInfo, struct{}{})
}

// BrokerKey is the key that verifies receipts and transcripts.
func (c *Calls) BrokerKey(ctx context.Context) (performatives.Key, error) {
	b, err := c.Broker(ctx)
	return b.Key, err
}

// BrokerKeys are all keys that the broker's receipts may have, for a caller who trusts one of them, such as a
// key that it noted before the broker rotated it; "" trusts the one that the broker says. The error is a
// [*performatives.HistoryError] or [performatives.ErrUntrusted] if the broker's history is not genuine, or does
// not lead to the trusted key.
func (c *Calls) BrokerKeys(ctx context.Context, trusted performatives.Key) (performatives.TrustedKeys, error) {
	b, err := c.Broker(ctx)
	if err != nil {
		return performatives.TrustedKeys{}, err
	}
	return b.TrustedKeys(trusted)
}

// partOf goes through the pages of a part.
func partOf[E any](ctx context.Context, c *Calls, id performatives.SessionID, part string, of func(api.SessionView) []E) iter.Seq2[E, error] {
	return pages(func(cursor string) (api.SessionView, error) {
		return call(ctx, c, api.SessionGet, api.GetSession{Session: id, Part: part, Limit: api.MaxPage, Cursor: cursor})
	}, func(v api.SessionView) ([]E, string) { return of(v), v.Next })
}

// Participants are all parties of a session, however many there are. An error ends them.
func (c *Calls) Participants(ctx context.Context, id performatives.SessionID) iter.Seq2[api.PartyView, error] {
	return partOf(ctx, c, id, "participants", func(v api.SessionView) []api.PartyView { return v.Participants })
}

// Proposals are all proposals of a session in the order of the transcript. An error ends them.
func (c *Calls) Proposals(ctx context.Context, id performatives.SessionID) iter.Seq2[api.OfferView, error] {
	return partOf(ctx, c, id, "proposals", func(v api.SessionView) []api.OfferView { return v.Proposals })
}

// Commitments are all commitments of a session in the order of the transcript. An error ends them.
func (c *Calls) Commitments(ctx context.Context, id performatives.SessionID) iter.Seq2[api.OfferView, error] {
	return partOf(ctx, c, id, "commitments", func(v api.SessionView) []api.OfferView { return v.Commitments })
}

// Delegations are all delegations of a session in the order of the transcript. An error ends them.
func (c *Calls) Delegations(ctx context.Context, id performatives.SessionID) iter.Seq2[api.GrantView, error] {
	return partOf(ctx, c, id, "delegations", func(v api.SessionView) []api.GrantView { return v.Delegations })
}
