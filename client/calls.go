package client

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/nats-io/nats.go"

	"github.com/parley-asp/parley/agreement"
	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/transcript"
)

// calls are the api verbs that principals and operators share. A principal sees
// what it takes part in, an operator everything.
type calls struct {
	link    *link
	subject func(verb string) string
}

// Conn is the NATS connection, for what the client does not do; nil over HTTP.
func (c *calls) Conn() *nats.Conn { return c.link.nc }

// call calls a verb, and repeats the request until it is answered or the
// context ends.
func call[Q, A any](ctx context.Context, c *calls, verb api.VerbOf[Q, A], request Q) (A, error) {
	return exchange(c, verb, request, func(subject string, data []byte) ([]byte, error) {
		return c.link.ask(ctx, subject, data)
	})
}

// once calls a verb a single time.
func once[Q, A any](ctx context.Context, c *calls, verb api.VerbOf[Q, A], request Q, within time.Duration) (A, error) {
	one, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	return exchange(c, verb, request, func(subject string, data []byte) ([]byte, error) {
		return c.link.request(one, subject, data)
	})
}

// Call calls a verb by its name, with a request and a reply in JSON, for programs that pass both
// on. It repeats the request as the other calls do, unless the verb waits for something.
func (c *calls) Call(ctx context.Context, verb string, request []byte) ([]byte, error) {
	if waits := slices.ContainsFunc(api.Verbs(), func(v api.Verb) bool { return v.Name == verb && v.Waits }); waits {
		return c.link.once(ctx, c.subject(verb), request, api.LongestWait+c.link.timeout)
	}
	return c.link.ask(ctx, c.subject(verb), request)
}

// exchange writes the request, sends it, and reads the reply.
func exchange[Q, A any](c *calls, verb api.VerbOf[Q, A], request Q, send func(subject string, data []byte) ([]byte, error)) (reply A, err error) {
	data, err := json.Marshal(request, json.Deterministic(true))
	if err != nil {
		return reply, fmt.Errorf("%s: %w", verb.Name, err)
	}
	answer, err := send(c.subject(verb.Name), data)
	if err != nil {
		return reply, fmt.Errorf("%s: %w", verb.Name, err)
	}
	if err := json.Unmarshal(answer, &reply); err != nil {
		return reply, fmt.Errorf("%s: the answer cannot be read: %w", verb.Name, err)
	}
	return reply, nil
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

// SessionPage returns one page of the sessions that the filter selects, newest
// first.
func (c *calls) SessionPage(ctx context.Context, filter api.ListSessions) (api.Sessions, error) {
	return call(ctx, c, api.SessionList, filter)
}

// Sessions are the sessions that the filter names, newest first; its Limit is
// the length of a page. An error ends them.
func (c *calls) Sessions(ctx context.Context, filter api.ListSessions) iter.Seq2[api.SessionSummary, error] {
	return pages(func(cursor string) (api.Sessions, error) {
		filter.Cursor = cursor
		return call(ctx, c, api.SessionList, filter)
	}, func(p api.Sessions) ([]api.SessionSummary, string) { return p.Sessions, p.Next })
}

// View is a session as it stands. One that is too large for a message has Truncated set, and Omitted says how
// many entries of which part are left out: [Client.Proposals] and the like read all of a part.
func (c *calls) View(ctx context.Context, id performatives.SessionID) (api.SessionView, error) {
	return call(ctx, c, api.SessionGet, api.GetSession{Session: id})
}

// Transcript is every entry of a session so far, from the first, in the form
// that package transcript verifies and exports.
func (c *calls) Transcript(ctx context.Context, id performatives.SessionID) ([]transcript.Entry, error) {
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
func (c *calls) entries(ctx context.Context, id performatives.SessionID, since uint64) iter.Seq2[transcript.Entry, error] {
	return func(yield func(transcript.Entry, error) bool) {
		for raw, err := range c.Envelopes(ctx, id, since) {
			var e transcript.Entry
			if err == nil {
				e, err = transcript.Read(raw)
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// Envelopes are the entries of a session from one place on, byte for byte as the
// broker delivered them: what verifies is the spelling. An error ends them.
func (c *calls) Envelopes(ctx context.Context, id performatives.SessionID, since uint64) iter.Seq2[jsontext.Value, error] {
	return func(yield func(jsontext.Value, error) bool) {
		for {
			page, err := call(ctx, c, api.SessionMessages, api.ListMessages{Session: id, Since: since, Limit: api.MaxPage})
			if err != nil {
				yield(nil, err)
				return
			}
			for _, raw := range page.Messages {
				if !yield(raw, nil) {
					return
				}
			}
			if page.Next == nil {
				return
			}
			since = *page.Next
		}
	}
}

// AgentPage returns one page of the cards of the principals that the filter
// selects, sorted by URI.
func (c *calls) AgentPage(ctx context.Context, filter api.ListAgents) (api.Agents, error) {
	return call(ctx, c, api.AgentList, filter)
}

// Agents are the cards of the principals that the filter names, by URI; its
// Limit is the length of a page. An error ends them.
func (c *calls) Agents(ctx context.Context, filter api.ListAgents) iter.Seq2[api.Card, error] {
	return pages(func(cursor string) (api.Agents, error) {
		filter.Cursor = cursor
		return call(ctx, c, api.AgentList, filter)
	}, func(p api.Agents) ([]api.Card, string) { return p.Agents, p.Next })
}

// Agreement reads an agreement, with its position in the public log.
func (c *calls) Agreement(ctx context.Context, q api.GetAgreement) (agreement.Document, error) {
	return call(ctx, c, api.AgreementGet, q)
}

// Agreements lists what the caller's sessions have agreed on, the newest session first.
func (c *calls) Agreements(ctx context.Context, q api.ListAgreements) iter.Seq2[api.AgreementRow, error] {
	return pages(func(cursor string) (api.Agreements, error) {
		q.Cursor = cursor
		return call(ctx, c, api.AgreementList, q)
	}, func(page api.Agreements) ([]api.AgreementRow, string) { return page.Agreements, page.Next })
}

// Card is what a principal says of itself, and the registry of it.
func (c *calls) Card(ctx context.Context, a performatives.Agent) (api.Card, error) {
	return call(ctx, c, api.AgentGet, api.AgentRef{Agent: a})
}

// UserJWT is what a NATS credentials file (.creds) of a principal has beside the
// seed of a key; no principal is the client's own, no key the one that it is
// registered with. It is no secret, and lets nobody in by itself. Where the
// broker's NATS server is not in operator mode the error is a refusal.
func (c *calls) UserJWT(ctx context.Context, a performatives.Agent, key performatives.Key) (string, error) {
	reply, err := call(ctx, c, api.AgentJWT, api.AskUserJWT{Agent: a, Key: key})
	return reply.JWT, err
}

// EscalationPage is a page of the escalation inbox, with counts.
func (c *calls) EscalationPage(ctx context.Context, filter api.ListEscalations) (api.Escalations, error) {
	return call(ctx, c, api.EscalationList, filter)
}

// Escalations are the items of the escalation inbox, the one due first at the
// top; by default those that are open. An error ends them.
func (c *calls) Escalations(ctx context.Context, filter api.ListEscalations) iter.Seq2[api.EscalationItem, error] {
	return pages(func(cursor string) (api.Escalations, error) {
		filter.Cursor = cursor
		return call(ctx, c, api.EscalationList, filter)
	}, func(p api.Escalations) ([]api.EscalationItem, string) { return p.Escalations, p.Next })
}

// Escalation is one item of the escalation inbox, with the transcript. What was too large for a message
// is cut, and Truncated set: EscalationPart has it in full.
func (c *calls) Escalation(ctx context.Context, id string) (api.EscalationItem, error) {
	return call(ctx, c, api.EscalationGet, api.GetEscalation{Escalation: id})
}

// EscalationPart is a page of a part of an item: of api.PartChanges, api.PartComments or api.PartTranscript.
func (c *calls) EscalationPart(ctx context.Context, page api.GetEscalation) (api.EscalationItem, error) {
	return call(ctx, c, api.EscalationGet, page)
}

// Broker says who the broker is.
func (c *calls) Broker(ctx context.Context) (api.Broker, error) {
	return call(ctx, c, api.BrokerInfo, struct{}{})
}

// BrokerKey is the key that verifies receipts and transcripts.
func (c *calls) BrokerKey(ctx context.Context) (performatives.Key, error) {
	b, err := c.Broker(ctx)
	return b.Key, err
}
