package reads

import (
	"context"
	"errors"
	"hash/fnv"
	"slices"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/store"
)

// maxAhead is the most messages that a session consumer hands out before one is acknowledged.
const maxAhead = 1000

// maxRaces is how often a name for a consumer is looked for again because another call took it.
const maxRaces = 16

// SessionConsumer answers session.consumer. The consumers themselves are all that is kept: one that
// has the session's filter is the session's, and a name without a consumer is free.
func (x *Reads) SessionConsumer(ctx context.Context, c api.Caller, q api.AskConsumer) (api.Consumer, error) {
	if c.Operator {
		return api.Consumer{}, session.Refuse(session.Unauthorized, "an operator has no inbox; ask as a principal of the session")
	}
	if q.Ahead < 0 || q.Ahead > maxAhead {
		return api.Consumer{}, session.Refuse(session.MalformedEnvelope, "/ahead: want 1 to %d", maxAhead).With(map[string]string{"path": "/ahead"})
	}
	if err := x.hasInbox(ctx, c, q.Session); err != nil {
		return api.Consumer{}, err
	}
	for range maxRaces {
		name, pending, err := x.consumerOf(ctx, c.Agent, q.Session, max(q.Ahead, 1))
		if errors.Is(err, store.ErrConflict) {
			continue // another call was faster to take the name
		}
		if err != nil {
			return api.Consumer{}, err
		}
		return api.Consumer{
			Stream: api.InboxStreamOf(c.Agent, x.o.Store.Shards()), Name: name, Pending: pending,
			AckWait: store.InboxAckWait.Milliseconds(), Inactive: store.SessionConsumerIdle.Milliseconds(),
		}, nil
	}
	return api.Consumer{}, session.Busy()
}

// hasInbox refuses whoever has no part in a session. A delegate has an inbox before it joins.
func (x *Reads) hasInbox(ctx context.Context, c api.Caller, id performatives.SessionID) error {
	return x.Existing(ctx, c, id, func(s *Session) error {
		if s.State.HasPart(c.Agent) || x.DecidesIn(c, s) {
			return nil
		}
		return session.NoSuchSession()
	})
}

// mostSilent is how many names may be without an answer before JetStream counts as away.
const mostSilent = 3

// consumerOf finds the session's consumer, or creates it under the first free name from where the
// session's hash points. Calls at the same time agree on that name. The server may have lost a
// consumer whose name it keeps: it neither finds it nor has it made. Such a name is passed over,
// or it would keep its agent from all consumers that come after it.
func (x *Reads) consumerOf(ctx context.Context, a performatives.Agent, id performatives.SessionID, ahead int) (name string, pending uint64, err error) {
	h := fnv.New32a()
	h.Write([]byte(id))
	names := api.SessionConsumers(a.Token())
	first := int(h.Sum32() % api.MaxSessionConsumers)
	subject, silent := api.Inbox(a, id), 0
	var free []string
	for _, name := range slices.Concat(names[first:], names[:first]) {
		found, pending, err := x.o.Store.FindConsumer(ctx, api.InboxStream, subject, name)
		switch {
		case errors.Is(err, store.ErrNoConsumer):
			free = append(free, name)
		case err != nil:
			if silent++; silent > mostSilent || ctx.Err() != nil {
				return "", 0, err
			}
		case found.Subject == subject && found.MaxAckPending == ahead:
			return name, pending, nil
		}
	}
	if len(free) == 0 {
		return "", 0, api.RateLimited("consumers", store.SessionConsumerIdle,
			"you have %d session consumers; one that nobody pulls from is free after %s", len(names), store.SessionConsumerIdle)
	}
	for _, name = range free[:min(len(free), mostSilent)] {
		pending, err = x.o.Store.AddSessionConsumer(ctx, store.Consumer{
			Stream: api.InboxStream, Name: name, Subject: subject, Description: string(a) + " in " + string(id), MaxAckPending: ahead,
		})
		if err == nil || errors.Is(err, store.ErrConflict) || ctx.Err() != nil {
			break
		}
	}
	return name, pending, err
}
