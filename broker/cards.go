package broker

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

func (b *Broker) agentList(_ context.Context, who api.Caller, q api.ListAgents) (api.Agents, error) {
	found := api.Agents{Agents: []api.Card{}}
	for _, c := range b.registry.list(func(c api.Card) bool {
		return string(c.Agent) > q.Cursor &&
			(q.Organization == "" || string(c.Agent.Organisation()) == q.Organization) &&
			(q.Capability == "" || slices.Contains(c.Capabilities, q.Capability)) &&
			(q.Kind == "" || c.Kind == q.Kind)
	}) {
		if len(found.Agents) == page(q.Limit) {
			found.Next = string(found.Agents[len(found.Agents)-1].Agent)
			break
		}
		found.Agents = append(found.Agents, forCaller(c, who))
	}
	return found, nil
}

func (b *Broker) agentGet(_ context.Context, c api.Caller, q api.AgentRef) (api.Card, error) {
	card, ok := b.registry.Card(q.Agent)
	if !ok {
		return api.Card{}, session.Refuse(session.UnknownAgent, "%.300s is not registered", q.Agent)
	}
	return forCaller(card, c), nil
}

// forCaller leaves out of a card what is its organisation's own affair: how much a human may
// decide on is what the other side of a negotiation would like to know.
func forCaller(card api.Card, c api.Caller) api.Card {
	if !c.Operator && c.Agent.Organisation() != card.Agent.Organisation() {
		card.Registry.Limits, card.Registry.Devices = nil, nil
	}
	return card
}

// agentJWT is what a principal's NATS credentials file has beside the seed of its key. It is no
// secret, and says nothing but which key it is for: who has it must prove that key, and be
// registered with it, like everybody.
func (b *Broker) agentJWT(_ context.Context, c api.Caller, q api.AskUserJWT) (api.UserJWT, error) {
	if !c.Operator && q.Agent != "" && q.Agent != c.Agent {
		return api.UserJWT{}, session.Refuse(session.Unauthorized, "credentials are their principal's own: agentId is not the principal of your subject")
	}
	agent, err := performatives.ParseAgent(string(cmp.Or(c.Agent, q.Agent)))
	if err != nil {
		return api.UserJWT{}, session.RefuseSchema(session.Fault{Path: "/agentId", Rule: "agent", Message: err.Error()})
	}
	if q.Key == "" {
		card, ok := b.registry.Card(agent)
		if !ok || card.Key == "" {
			return api.UserJWT{}, session.Refuse(session.UnknownAgent, "%.300s is not registered with a key", agent)
		}
		q.Key = card.Key
	}
	if !q.Key.Valid() {
		return api.UserJWT{}, session.RefuseSchema(session.Fault{Path: "/key", Rule: "key", Message: "key is a public user nkey (U…)"})
	}
	if owner, taken := b.registry.Owner(q.Key); taken && owner != agent {
		return api.UserJWT{}, session.Refuse(session.Duplicate, "the key belongs to another principal")
	}
	if b.Credentials == nil {
		return api.UserJWT{}, session.Refuse(session.Unauthorized,
			"the NATS server of this broker is not in operator mode and looks at no .creds files; log in with the nkey itself")
	}
	token, err := b.Credentials(agent, q.Key)
	return api.UserJWT{Agent: agent, Key: q.Key, JWT: token}, err
}

// agentRegister replaces the caller's own card. What the registry says of it,
// and outside --dev its key, it cannot change.
func (b *Broker) agentRegister(ctx context.Context, c api.Caller, q api.RegisterAgent) (api.Card, error) {
	if c.Operator {
		return b.agentAdd(ctx, c, q)
	}
	if q.Card == nil {
		return api.Card{}, noCard()
	}
	card := *q.Card
	if card.Agent != "" && card.Agent != c.Agent {
		return api.Card{}, session.Refuse(session.Unauthorized, "a card is its principal's own: agentId is not the principal of your subject")
	}
	card.Agent = c.Agent
	complete := func(old api.Card) error {
		card.Registry = old.Registry
		card.Key = cmp.Or(card.Key, old.Key)
		if card.Key != old.Key && !b.Dev {
			return session.Refuse(session.Unauthorized, "a card does not change a principal's key; agent.rotate does")
		}
		return b.checkCard(&card)
	}
	if _, known := b.registry.Card(c.Agent); known {
		return b.registry.change(ctx, c.Agent, func(old *api.Card) error {
			card = *q.Card
			card.Agent = c.Agent
			err := complete(*old)
			*old = card
			return err
		})
	}
	if err := complete(strangersCard(c.Agent)); err != nil {
		return api.Card{}, err
	}
	return b.registry.put(ctx, card)
}

func (b *Broker) agentAdd(ctx context.Context, _ api.Caller, q api.RegisterAgent) (api.Card, error) {
	if q.Card == nil {
		return api.Card{}, noCard()
	}
	if q.Card.Key == "" && !b.Dev {
		return api.Card{}, cardFault("/card/key", "key is required: the principal's public nkey (U…)")
	}
	return b.register(ctx, *q.Card)
}

func (b *Broker) register(ctx context.Context, card api.Card) (api.Card, error) {
	if err := b.checkCard(&card); err != nil {
		return api.Card{}, err
	}
	card, err := b.registry.put(ctx, card)
	return card, err
}

// AddAgent registers a principal, or replaces its card and key, as agent.add does.
func (b *Broker) AddAgent(ctx context.Context, card api.Card) (api.Card, error) {
	return b.agentAdd(ctx, api.Caller{Operator: true}, api.RegisterAgent{Card: &card})
}

func noCard() error {
	return session.Refuse(session.MalformedEnvelope, "/card: is missing").With(map[string]string{"path": "/card"})
}

func cardFault(path, message string) error {
	return session.RefuseSchema(session.Fault{Path: path, Rule: "card", Message: message})
}

func (b *Broker) checkCard(c *api.Card) error {
	a, err := performatives.ParseAgent(string(c.Agent))
	if err != nil {
		return cardFault("/card/agentId", err.Error())
	}
	c.Kind = cmp.Or(c.Kind, defaultKind(a))
	human := c.Kind == performatives.KindHuman
	switch {
	case human != a.IsHuman(), !human && c.Kind != performatives.KindSystem && c.Kind != performatives.KindPersonal:
		return cardFault("/card/kind", "kind is system or personal; of a human:// it is human")
	case c.Key != "" && !c.Key.Valid():
		return cardFault("/card/key", "key is a public user nkey (U…)")
	case c.Registry.Auditor && (!human || c.Registry.MayDecide):
		return cardFault("/card/registry/auditor", "an auditor is a human who may not decide")
	case c.Registry.TrustScore != nil && (*c.Registry.TrustScore < 0 || *c.Registry.TrustScore > 100):
		return cardFault("/card/registry/trustScore", "trustScore is 0 to 100")
	case c.MaxTransactionValue != nil && *c.MaxTransactionValue < 0:
		return cardFault("/card/maxTransactionValue", "maxTransactionValue is at least 0")
	case len(c.Registry.Limits) > 0 && !human:
		return cardFault("/card/registry/limits", "limits are of a human who may decide")
	}
	seen := map[string]bool{}
	for i, l := range c.Registry.Limits {
		if len(l.Currency) != 3 || l.Currency != strings.ToUpper(l.Currency) || l.MaxAmount < 0 || seen[l.Currency] {
			return cardFault(fmt.Sprintf("/card/registry/limits/%d", i), "a limit is a currency such as USD, each once, and a maxAmount of at least 0")
		}
		seen[l.Currency] = true
	}
	if other, taken := b.registry.Owner(c.Key); c.Key != "" && taken && other != a {
		return session.Refuse(session.Duplicate, "the key belongs to another principal")
	}
	return nil
}

func (b *Broker) agentRemove(ctx context.Context, _ api.Caller, q api.AgentRef) (api.Card, error) {
	card, _ := b.registry.Card(q.Agent)
	return card, b.registry.remove(ctx, q.Agent)
}
