package registry

import (
	"context"
	"time"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// longestAway bounds how long a human is away.
const longestAway = 366 * 24 * time.Hour

// HumanAway answers human.away, of an operator or of the human: who stands in for the
// human, and for how long. Without a stand-in the human is back. The stand-in gets no
// right by it.
func (r *Registry) HumanAway(ctx context.Context, c api.Caller, q api.SetAway) (api.Card, error) {
	if !c.Operator {
		if q.Agent != "" && q.Agent != c.Agent {
			return api.Card{}, session.Refuse(session.Unauthorized, "who stands in for a human is their own word: agentId is not the principal of your subject")
		}
		q.Agent = c.Agent
	}
	if _, err := r.human(q.Agent); err != nil {
		return api.Card{}, err
	}
	away, err := r.away(q)
	if err != nil {
		return api.Card{}, err
	}
	return r.change(ctx, q.Agent, func(card *api.Card) error {
		card.Registry.Away = away
		return nil
	})
}

// away is what a request says, nil if the human is back.
func (r *Registry) away(q api.SetAway) (*api.Away, error) {
	if q.To == "" {
		return nil, nil
	}
	now := r.o.Now().UTC()
	from := q.From.UTC()
	if from.Before(now) {
		from = now // what was opened before stays with whom it was opened for
	}
	org := q.Agent.Organisation()
	for _, human := range []performatives.Agent{q.Agent, q.To} {
		if member, known := r.Member(human); !known || member.Authority != performatives.AuthorityDecide || human.Organisation() != org {
			return nil, session.Refuse(session.Unauthorized, "%.300s may not decide the escalations of %s, so nobody stands in here", human, org)
		}
	}
	switch {
	case q.To == q.Agent:
		return nil, faultAt("/to", "a stand-in is somebody else")
	case !q.Until.After(from):
		return nil, faultAt("/until", "until is after from, and not over yet")
	case q.Until.Sub(from) > longestAway:
		return nil, faultAt("/until", "an absence lasts at most 366 days")
	}
	return &api.Away{To: q.To, From: from, Until: q.Until.UTC()}, nil
}

func faultAt(path, why string) error {
	return session.Refuse(session.MalformedEnvelope, "%s: %s", path, why).With(map[string]string{"path": path})
}
