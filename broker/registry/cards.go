package registry

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/api/fit"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/schemas"
	"github.com/parley-asp/parley/session"
)

// AgentList answers agent.list.
func (r *Registry) AgentList(_ context.Context, c api.Caller, q api.ListAgents) (api.Agents, error) {
	if err := checkKind(q.Kind); err != nil {
		return api.Agents{}, err
	}
	page := api.NewPage[api.Card](q.Limit)
	for _, card := range r.cache.list(func(card api.Card) bool {
		return string(card.Agent) > q.Cursor &&
			(q.Organization == "" || string(card.Agent.Organisation()) == q.Organization) &&
			api.HasCapability(card.Capabilities, q.Capability) &&
			(q.Kind == "" || card.Kind == q.Kind) &&
			(q.MinTrust <= 0 || card.Registry.TrustScore != nil && *card.Registry.TrustScore >= q.MinTrust)
	}) {
		row := r.forCaller(card, c)
		fit.To(&row, api.MaxRowBytes)
		if !page.Add(row, fit.Size(row)) {
			return api.Agents{Agents: page.Items, Next: string(page.Items[len(page.Items)-1].Agent)}, nil
		}
	}
	return api.Agents{Agents: page.Items}, nil
}

// checkKind refuses a filter that no principal matches.
func checkKind(kind string) error {
	switch kind {
	case "", performatives.KindSystem, performatives.KindPersonal, performatives.KindHuman:
		return nil
	}
	return session.Refuse(session.MalformedEnvelope, "kind is system, personal or human").With(map[string]string{"path": "/kind"})
}

// AgentGet answers agent.get.
func (r *Registry) AgentGet(_ context.Context, c api.Caller, q api.AgentRef) (api.Card, error) {
	card, ok := r.Card(q.Agent)
	if !ok {
		return api.Card{}, unregistered(q.Agent)
	}
	return r.forCaller(card, c), nil
}

// forCaller leaves out what only the card's own organisation may read: the other side
// of a negotiation would gain from knowing how much a human may decide on. An absence
// that is over is left out, too. An agent's availability is as it is now.
func (r *Registry) forCaller(card api.Card, c api.Caller) api.Card {
	if !c.Operator && c.Agent.Organisation() != card.Agent.Organisation() {
		card.Registry.Limits, card.Registry.Devices, card.Registry.Away, card.CCC = nil, nil, nil, nil
		card.LoginKeys, card.Registry.FormerKeys = nil, nil
	}
	card.DomainVerified = vouched(card)
	if r.o.Available != nil && card.Kind != performatives.KindHuman {
		online, last := r.o.Available(card.Agent)
		card.Availability = api.Availability(card.Availability, online, last)
	}
	if away := card.Registry.Away; away != nil && !r.o.Now().Before(away.Until) {
		card.Registry.Away = nil
	}
	return card
}

// AgentRegister answers agent.register, which replaces the caller's own card. It
// changes neither what the registry says of the caller nor, outside --dev, the key.
func (r *Registry) AgentRegister(ctx context.Context, c api.Caller, q api.RegisterAgent) (api.Card, error) {
	if q.Card == nil {
		return api.Card{}, noCard()
	}
	if c.Operator {
		return r.Add(ctx, *q.Card)
	}
	if q.Card.Agent != "" && q.Card.Agent != c.Agent {
		return api.Card{}, session.Refuse(session.Unauthorized, "a card is its principal's own: agentId is not the principal of your subject")
	}
	return r.update(ctx, c.Agent, func(card *api.Card, registered bool) error {
		switch {
		case !registered && !r.o.Dev:
			return unregistered(c.Agent)
		case !registered:
			*card = r.newcomer(c.Agent)
		}
		old := *card
		if err := claims(*q.Card, old); err != nil {
			return err
		}
		*card = *q.Card
		card.Agent, card.Registry = c.Agent, old.Registry
		card.Key = cmp.Or(card.Key, old.Key)
		if card.LoginKeys == nil {
			card.LoginKeys = old.LoginKeys
		}
		if (card.Key != old.Key || !slices.Equal(card.LoginKeys, old.LoginKeys)) && !r.o.Dev {
			return session.Refuse(session.Unauthorized, "a card does not change a principal's keys; agent.rotate does")
		}
		if err := r.check(card); err != nil || registered {
			return err
		}
		return r.openInbox(ctx, c.Agent)
	})
}

// Add registers a principal, or replaces its card and key, as agent.add does. Devices
// that a human enrolled stay.
func (r *Registry) Add(ctx context.Context, card api.Card) (api.Card, error) {
	return r.add(ctx, card)
}

func (r *Registry) add(ctx context.Context, card api.Card, hosted ...api.Device) (api.Card, error) {
	if card.Key == "" && len(hosted) == 0 && !r.o.Dev {
		return api.Card{}, cardFault("/card/key", "key is required: the principal's public nkey (U…)")
	}
	claimed := card.DomainVerified
	if err := r.check(&card); err != nil {
		return api.Card{}, err
	}
	if err := r.checkDID(ctx, &card); err != nil {
		return api.Card{}, err
	}
	if err := r.openInbox(ctx, card.Agent); err != nil {
		return api.Card{}, err
	}
	return r.update(ctx, card.Agent, func(stored *api.Card, registered bool) error {
		old := stored.Registry
		*stored = card
		stored.Registry.Away, stored.Registry.Domain, stored.Registry.FormerKeys = old.Away, old.Domain, old.FormerKeys
		if registered {
			stored.Registry.RegisteredAt, stored.Registry.Devices = old.RegisteredAt, old.Devices
		}
		if len(hosted) > 0 {
			stored.Registry.Devices = withHosted(stored.Registry.Devices, hosted...)
		}
		if claimed && !vouched(*stored) { // of a card that was read it is what the registry says
			return errClaimsDomain
		}
		return nil
	})
}

// AgentJWT answers agent.jwt: the user JWT that a NATS credentials file has beside the
// seed of the key. It is no secret. It names a key, and whoever logs in with it still
// has to prove that key and be registered with it.
func (r *Registry) AgentJWT(_ context.Context, c api.Caller, q api.AskUserJWT) (api.UserJWT, error) {
	if !c.Operator && q.Agent != "" && q.Agent != c.Agent {
		return api.UserJWT{}, session.Refuse(session.Unauthorized, "credentials are their principal's own: agentId is not the principal of your subject")
	}
	agent, err := performatives.ParseAgent(string(cmp.Or(c.Agent, q.Agent)))
	if err != nil {
		return api.UserJWT{}, session.RefuseSchema(session.Fault{Path: "/agentId", Rule: "agent", Message: err.Error()})
	}
	if q.Key == "" {
		card, ok := r.Card(agent)
		switch {
		case ok && len(card.LoginKeys) > 0:
			q.Key = card.LoginKeys[0]
		case ok && card.Key != "" && r.o.Shared:
			q.Key = card.Key
		default:
			return api.UserJWT{}, session.Refuse(session.UnknownAgent, "%.300s is not registered with a login key", agent)
		}
	}
	if !q.Key.Valid() {
		return api.UserJWT{}, session.RefuseSchema(session.Fault{Path: "/key", Rule: "key", Message: "key is a public user nkey (U…)"})
	}
	if is, ok := r.cache.login(q.Key); !ok || is != agent {
		if err := r.free(q.Key, agent, logsIn); err != nil {
			return api.UserJWT{}, err
		}
	}
	if r.o.Credentials == nil {
		return api.UserJWT{}, session.Refuse(session.Unauthorized,
			"the NATS server of this broker is not in operator mode and looks at no .creds files; log in with the nkey itself")
	}
	token, err := r.o.Credentials(agent, q.Key)
	return api.UserJWT{Agent: agent, Key: q.Key, JWT: token}, err
}

const maxURL = 2048 // bytes

// check completes a card and refuses one that does not make sense.
func (r *Registry) check(c *api.Card) error {
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
	case c.Standby != "" && (human || c.Standby == c.Agent || c.Standby.IsHuman() || c.Standby.Organisation() != c.Agent.Organisation()):
		return cardFault("/card/standby", "a standby is another agent of the same organisation; its kind is system")
	case c.Registry.Auditor && (!human || c.Registry.MayDecide):
		return cardFault("/card/registry/auditor", "an auditor is a human who may not decide")
	case c.Registry.TrustScore != nil && (*c.Registry.TrustScore < 0 || *c.Registry.TrustScore > 100):
		return cardFault("/card/registry/trustScore", "trustScore is 0 to 100")
	case c.Registry.A2A != "" && (human || !isServer(c.Registry.A2A)):
		return cardFault("/card/registry/a2a", "a2a is the http(s) URL of an agent's server, without user, query and fragment: everybody can read it")
	case c.A2A && human:
		return cardFault("/card/a2a", "a2a is of an agent")
	case c.MaxTransactionValue != nil && *c.MaxTransactionValue < 0:
		return cardFault("/card/maxTransactionValue", "maxTransactionValue is at least 0")
	case len(c.Registry.Limits) > 0 && !human:
		return cardFault("/card/registry/limits", "limits are of a human who may decide")
	}
	if err := r.CheckMACPSender(c.Agent, c.MACPSender); err != nil {
		return err
	}
	if err := checkSkills(c); err != nil {
		return err
	}
	if err := checkExtra(c.Extra); err != nil {
		return err
	}
	if faults := schemas.ValidateCCC(c.CCC); len(faults) > 0 {
		return cardFault("/card/ccc"+faults[0].Path, faults[0].Message)
	}
	c.Availability, c.DomainVerified = api.OwnAvailability(c.Availability), false
	seen := map[string]bool{}
	for i, l := range c.Registry.Limits {
		if len(l.Currency) != 3 || l.Currency != strings.ToUpper(l.Currency) || l.MaxAmount < 0 || seen[l.Currency] {
			return cardFault(fmt.Sprintf("/card/registry/limits/%d", i), "a limit is a currency such as USD, each once, and a maxAmount of at least 0")
		}
		seen[l.Currency] = true
	}
	return r.checkKeys(c)
}

// maxSender is the length of a name in MACP.
const maxSender = 128

// CheckMACPSender refuses a principal's name in MACP that is another's, or that could be
// taken for one.
func (r *Registry) CheckMACPSender(a performatives.Agent, name string) error {
	if name == "" {
		return nil
	}
	owner, taken := r.MACPSender(name)
	if r.o.Named != nil && !taken {
		owner, taken = r.o.Named(name)
	}
	switch {
	case len(name) > maxSender || strings.TrimSpace(name) != name || strings.ContainsFunc(name, func(x rune) bool { return !unicode.IsGraphic(x) }):
		return session.RefuseSchema(session.Fault{
			Path: "/macp_sender", Rule: "format", Message: fmt.Sprintf("macp_sender has 1 to %d bytes, all of them visible", maxSender),
		})
	case strings.Contains(name, "://") && name != string(a):
		return session.RefuseSchema(session.Fault{Path: "/macp_sender", Rule: "format", Message: "macp_sender is no URI but its principal's own"})
	case taken && owner != a:
		return session.Refuse(session.Duplicate, "the macp_sender belongs to another principal")
	}
	return nil
}

// MACPSender finds the principal that MACP knows by this name.
func (r *Registry) MACPSender(name string) (performatives.Agent, bool) { return r.cache.sender(name) }

// free refuses a key that belongs to another than this principal.
func (r *Registry) free(k performatives.Key, a performatives.Agent, want role) error {
	switch owner, is := r.owner(k); {
	case owner == "":
		return nil
	case owner != a:
		return session.Refuse(session.Duplicate, "the key belongs to another principal")
	case is != want:
		return session.Refuse(session.Duplicate, "a key has one purpose: this one of yours %s already, and a NATS server chooses what a login signs", is)
	}
	return nil
}

// maxLogins are the login keys of one principal.
const maxLogins = 16

// checkKeys refuses keys that somebody has, or that the card has twice.
func (r *Registry) checkKeys(c *api.Card) error {
	if len(c.LoginKeys) > maxLogins {
		return cardFault("/card/loginKeys", fmt.Sprintf("loginKeys has at most %d keys", maxLogins))
	}
	for i, k := range c.LoginKeys {
		path := fmt.Sprintf("/card/loginKeys/%d", i)
		switch {
		case !k.Valid():
			return cardFault(path, "a login key is a public user nkey (U…)")
		case k == c.Key:
			return cardFault(path, "a key has one purpose: the one that signs does not log in, since a NATS server chooses what a login signs")
		case slices.Contains(c.LoginKeys[:i], k):
			return cardFault(path, "the key is there twice")
		}
		if err := r.free(k, c.Agent, logsIn); err != nil {
			return err
		}
	}
	if c.Key == "" {
		return nil
	}
	return r.free(c.Key, c.Agent, signs)
}

func noCard() error {
	return session.Refuse(session.MalformedEnvelope, "/card: is missing").With(map[string]string{"path": "/card"})
}

// isServer reports whether a text is the URL of a server, and tells nothing else.
func isServer(text string) bool {
	u, err := url.Parse(text)
	return err == nil && len(text) <= maxURL && (u.Scheme == "https" || u.Scheme == "http") && u.Host != "" && u.User == nil && u.RawQuery == "" && u.Fragment == ""
}

func cardFault(path, message string) error {
	return session.RefuseSchema(session.Fault{Path: path, Rule: "card", Message: message})
}
