package registry

import (
	"cmp"
	"context"
	"math"
	"net/url"
	"time"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/internal/outbound"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// askingBounds are those of the questions to domains that are under way. An organisation has slots of
// its own, so domains that are slow hold up nobody else's.
var askingBounds = outbound.Bounds{All: math.MaxInt, Principal: 2, Host: 2, Server: 2}

// AgentVerify answers agent.verify: it notes that the domain of an agent's URI vouches for
// the agent's key. An operator says so, or the domain itself does.
func (r *Registry) AgentVerify(ctx context.Context, c api.Caller, q api.VerifyDomain) (api.Card, error) {
	agent := cmp.Or(q.Agent, c.Agent)
	if !c.Operator && (agent != c.Agent || q.By == api.ByOperator) {
		return api.Card{}, session.Refuse(session.Unauthorized, "a principal has its own domain asked, by dns or file; only an operator vouches for others")
	}
	if q.By != api.ByOperator && q.By != api.ByDNS && q.By != api.ByFile {
		return api.Card{}, session.RefuseSchema(session.Fault{Path: "/by", Rule: "enum", Message: "by is operator, dns or file"})
	}
	card, registered := r.Card(agent)
	if !registered {
		return api.Card{}, unregistered(agent)
	}
	key := signingKey(card)
	if key == "" {
		return api.Card{}, session.Refuse(session.Unauthorized, "%.300s is registered without a key that its domain could vouch for", agent)
	}
	if q.By != api.ByOperator {
		if err := r.asksDomain(ctx, agent, key, q.By); err != nil {
			return api.Card{}, err
		}
	}
	shown, err := r.change(ctx, agent, func(card *api.Card) error {
		if signingKey(*card) != key {
			return session.Refuse(session.Duplicate, "the key changed meanwhile; verify the new one")
		}
		card.Registry.Domain = &api.DomainProof{Key: key, By: q.By, At: r.o.Now().UTC().Format(time.RFC3339)}
		return nil
	})
	return r.forCaller(shown, c), err
}

func (r *Registry) asksDomain(ctx context.Context, a performatives.Agent, key performatives.Key, by string) error {
	waiting, cancel := context.WithTimeout(ctx, proofTimeout)
	defer cancel()
	domain := string(a.Organisation())
	leave, err := r.asking.Enter(waiting, domain, &url.URL{Host: domain})
	if err != nil {
		return session.Refuse(session.RateLimited, "%s is being asked already, and has not answered; try again in a few seconds", domain)
	}
	defer leave(nil)
	if err := r.o.Prove(ctx, domain, key, by); err != nil {
		return session.Refuse(session.Unauthorized, "the domain does not vouch for the key: %.500s", err)
	}
	return nil
}

// vouched reports whether the domain of a principal's URI vouches for the key that it has now.
func vouched(c api.Card) bool {
	return c.Registry.Domain != nil && c.Registry.Domain.Key == signingKey(c)
}

// signs is the key that a principal signs with.
func signingKey(c api.Card) performatives.Key {
	if key, hosted := hostedKey(c); hosted && c.Key == "" {
		return key
	}
	return c.Key
}
