package broker

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/nats-io/nats.go/micro"

	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/wire"
)

// A caller is who calls the api: a principal, or, with everything in sight, an
// operator.
type caller struct {
	agent    performatives.Agent
	operator bool
}

// verb answers one call.
type verb struct {
	operatorOnly bool
	answer       func(*Broker, context.Context, caller, []byte) (any, error)
}

var api = map[string]verb{
	wire.SessionGet:      {false, typed((*Broker).sessionGet)},
	wire.SessionList:     {false, typed((*Broker).sessionList)},
	wire.SessionMessages: {false, typed((*Broker).sessionMessages)},
	wire.AgentRegister:   {false, typed((*Broker).agentRegister)},
	wire.AgentGet:        {false, typed((*Broker).agentGet)},
	wire.AgentList:       {false, typed((*Broker).agentList)},
	wire.AgentAdd:        {true, typed((*Broker).agentAdd)},
	wire.AgentRemove:     {true, typed((*Broker).agentRemove)},
	wire.SchemaPut:       {false, typed((*Broker).schemaPut)},
	wire.SchemaGet:       {false, typed((*Broker).schemaGet)},
	wire.SchemaList:      {false, typed((*Broker).schemaList)},
	wire.EscalationList:  {false, typed((*Broker).escalationList)},
	wire.EscalationGet:   {false, typed((*Broker).escalationGet)},
	wire.BrokerInfo:      {false, typed((*Broker).brokerInfo)},
}

func verbs(operator bool) []string {
	var names []string
	for name, v := range api {
		if operator || !v.operatorOnly {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// typed reads a request into its type. A request that is empty is {}.
func typed[Q, A any](answer func(*Broker, context.Context, caller, Q) (A, error)) func(*Broker, context.Context, caller, []byte) (any, error) {
	return func(b *Broker, ctx context.Context, c caller, data []byte) (any, error) {
		var request Q
		if len(data) > 0 {
			canonical, err := performatives.Canonical(data)
			if err != nil {
				return nil, unreadable(err)
			}
			if err := json.Unmarshal(canonical, &request); err != nil {
				return nil, session.Refuse(session.MalformedEnvelope, "the request is not what the verb takes; see docs/PROTOCOL.md")
			}
		}
		return answer(b, ctx, c, request)
	}
}

func (b *Broker) onCall(r micro.Request) {
	if unanswerable(r) {
		return
	}
	agent, name, err := wire.ParseCall(r.Subject())
	if err != nil {
		b.refuse(r, session.Refuse(session.MalformedEnvelope, "the subject is not asp.agent.<token>.api.<verb>"))
		return
	}
	b.call(r, name, caller{agent: agent})
}

func (b *Broker) onOperator(r micro.Request) {
	if unanswerable(r) {
		return
	}
	b.call(r, strings.TrimPrefix(r.Subject(), wire.OperatorCall("")), caller{operator: true})
}

// callTimeout bounds one api call.
const callTimeout = 10 * time.Second

func (b *Broker) call(r micro.Request, name string, c caller) {
	v, known := api[name]
	if !known || v.operatorOnly && !c.operator {
		b.refuse(r, session.Refuse(session.MalformedEnvelope, "there is no verb %.40q; there is %s", name, strings.Join(verbs(c.operator), ", ")))
		return
	}
	if _, registered := b.registry.member(c.agent); !c.operator && !registered {
		b.refuse(r, session.Refuse(session.UnknownAgent, "you are not registered"))
		return
	}
	if !b.sessions.begin() {
		b.refuse(r, unavailable())
		return
	}
	go func() {
		defer b.sessions.busy.Done()
		ctx, cancel := context.WithTimeout(b.ctx, callTimeout)
		defer cancel()
		answer, err := v.answer(b, ctx, c, r.Data())
		if err != nil {
			b.refuse(r, err)
			return
		}
		b.reply(r, answer)
	}()
}

// seen runs a reading of a session that the caller may read.
func (b *Broker) seen(ctx context.Context, c caller, id performatives.SessionID, read func(*live) error) error {
	if _, err := performatives.ParseSessionID(string(id)); err != nil {
		return session.NoSuchSession()
	}
	var refusal error
	if err := b.look(ctx, id, func(l *live) {
		party, has := l.state.Party(c.agent)
		switch {
		case l.state.Phase == session.Idle, !c.operator && !has:
			refusal = session.NoSuchSession()
		case !c.operator && !l.state.MayRead(c.agent, b.clock(l)):
			refusal = b.mayNotRead(l, party)
		default:
			refusal = read(l)
		}
	}); err != nil {
		return err
	}
	return refusal
}

// listed runs a reading of what session.list shows, which also a delegate sees
// who is invited and has not joined.
func (b *Broker) listed(ctx context.Context, c caller, id performatives.SessionID, read func(*live) error) error {
	var err error
	if looked := b.look(ctx, id, func(l *live) {
		if c.operator || l.state.HasPart(c.agent) {
			err = read(l)
		}
	}); looked != nil {
		return looked
	}
	return err
}

// mayNotRead words why a delegate cannot read: not yet, or no longer.
func (b *Broker) mayNotRead(l *live, p session.Party) error {
	grant, _ := l.state.Grant(p.Grant)
	if grant.Status.String() == "declined" {
		return session.NoSuchSession()
	}
	if grant.Status.String() == "offered" {
		return session.Refuse(session.AuthorityExceeded, "join the session first: ACCEPT the DELEGATE %s, or send what its authority allows", grant.ID)
	}
	return session.Refuse(session.AuthorityExceeded, "your delegation in this session has ended")
}

func (b *Broker) sessionGet(ctx context.Context, c caller, q wire.SessionRef) (v session.View, err error) {
	err = b.seen(ctx, c, q.Session, func(l *live) error {
		v = l.state.ViewAt(b.clock(l))
		return nil
	})
	return v, err
}

// page bounds a page's length.
func page(limit int) int {
	if limit <= 0 {
		return wire.DefaultPage
	}
	return min(limit, wire.MaxPage)
}

func (b *Broker) sessionList(ctx context.Context, c caller, q wire.ListSessions) (wire.Sessions, error) {
	if q.State != "" {
		if _, ok := session.ParsePhase(q.State); !ok {
			return wire.Sessions{}, session.Refuse(session.MalformedEnvelope, "there is no state %.40q", q.State)
		}
	}
	if q.Awaiting != "" && q.Awaiting != "me" {
		return wire.Sessions{}, session.Refuse(session.MalformedEnvelope, `awaiting is "me" or absent`)
	}
	found := wire.Sessions{Sessions: []session.Summary{}}
	for _, id := range b.index.of(c.agent, q.State, q.Cursor) {
		if len(found.Sessions) == page(q.Limit) {
			found.Next = string(found.Sessions[len(found.Sessions)-1].Session)
			break
		}
		err := b.listed(ctx, c, id, func(l *live) error {
			s := l.state.SummaryFor(c.agent, b.clock(l))
			if (q.State == "" || s.State.String() == q.State) && (q.Awaiting == "" || s.Awaiting) {
				found.Sessions = append(found.Sessions, s)
			}
			return nil
		})
		if err != nil && !isRefusal(err) {
			return found, err
		}
	}
	return found, nil
}

func (b *Broker) sessionMessages(ctx context.Context, c caller, q wire.ListMessages) (wire.Messages, error) {
	var places []uint64
	if err := b.seen(ctx, c, q.Session, func(l *live) error {
		places = l.places
		return nil
	}); err != nil {
		return wire.Messages{}, err
	}
	return b.messages(ctx, places, q)
}

// messages reads a page of a transcript whose entries stand at these positions.
func (b *Broker) messages(ctx context.Context, places []uint64, q wire.ListMessages) (wire.Messages, error) {
	found := wire.Messages{Messages: []jsontext.Value{}}
	if q.Since >= uint64(len(places)) {
		return found, nil
	}
	next, size := q.Since, 0
	err := b.log.read(ctx, wire.Session(q.Session), places[q.Since], func(e stored) error {
		if len(found.Messages) == page(q.Limit) || size+len(e.data) > maxPageBytes && size > 0 {
			found.Next = &next
			return errPageFull
		}
		found.Messages = append(found.Messages, e.data)
		size += len(e.data)
		next++
		return nil
	})
	if err != nil && !errors.Is(err, errPageFull) {
		return found, err
	}
	return found, nil
}

// maxPageBytes keeps a page below the server's largest message, 1 MiB.
const maxPageBytes = 700 << 10

var errPageFull = errors.New("the page is full")

func (b *Broker) brokerInfo(context.Context, caller, struct{}) (wire.Broker, error) {
	return wire.Broker{Key: b.Signer.Key(), Version: Version, NATS: b.Conn.ConnectedServerVersion(), Dev: b.Dev}, nil
}

func (b *Broker) schemaPut(ctx context.Context, c caller, q wire.PutSchema) (wire.Schema, error) {
	return b.terms.put(ctx, c.agent, q)
}

func (b *Broker) schemaGet(_ context.Context, _ caller, q wire.SchemaRef) (wire.Schema, error) {
	s, ok := b.terms.get(q.Name)
	if !ok {
		return s, session.Refuse(session.SchemaUnsupported, "there is no schema %.128q", q.Name)
	}
	return s, nil
}

func (b *Broker) schemaList(context.Context, caller, struct{}) (wire.SchemaNames, error) {
	return wire.SchemaNames{Schemas: b.terms.list()}, nil
}

func (b *Broker) agentList(_ context.Context, _ caller, q wire.ListAgents) (wire.Agents, error) {
	found := wire.Agents{Agents: []wire.Card{}}
	for _, c := range b.registry.list(func(c wire.Card) bool {
		return string(c.Agent) > q.Cursor &&
			(q.Organization == "" || string(c.Agent.Organisation()) == q.Organization) &&
			(q.Capability == "" || slices.Contains(c.Capabilities, q.Capability)) &&
			(q.Kind == "" || c.Kind == q.Kind)
	}) {
		if len(found.Agents) == page(q.Limit) {
			found.Next = string(found.Agents[len(found.Agents)-1].Agent)
			break
		}
		found.Agents = append(found.Agents, c)
	}
	return found, nil
}

func (b *Broker) agentGet(_ context.Context, _ caller, q wire.AgentRef) (wire.Card, error) {
	c, ok := b.registry.card(q.Agent)
	if !ok {
		return wire.Card{}, session.Refuse(session.UnknownAgent, "%.300s is not registered", q.Agent)
	}
	return c, nil
}

// agentRegister replaces the caller's own card. What the registry says of it,
// and outside --dev its key, it cannot change.
func (b *Broker) agentRegister(ctx context.Context, c caller, q wire.RegisterAgent) (wire.Card, error) {
	if c.operator {
		return b.agentAdd(ctx, c, q)
	}
	card := q.Card
	card.Agent = cmp.Or(card.Agent, c.agent)
	if card.Agent != c.agent {
		return wire.Card{}, session.Refuse(session.Unauthorized, "a card is its principal's own: agentId is not the principal of your subject")
	}
	old, known := b.registry.card(c.agent)
	if !known {
		old = strangersCard(c.agent)
	}
	card.Registry = old.Registry
	card.Key = cmp.Or(card.Key, old.Key)
	if card.Key != old.Key && !b.Dev {
		return wire.Card{}, session.Refuse(session.Unauthorized, "a card does not change a principal's key; an operator does")
	}
	return b.register(ctx, card)
}

func (b *Broker) agentAdd(ctx context.Context, _ caller, q wire.RegisterAgent) (wire.Card, error) {
	if q.Card.Key == "" && !b.Dev {
		return wire.Card{}, cardFault("/card/key", "key is required: the principal's public nkey (U…)")
	}
	return b.register(ctx, q.Card)
}

func (b *Broker) register(ctx context.Context, card wire.Card) (wire.Card, error) {
	if err := b.checkCard(&card); err != nil {
		return wire.Card{}, err
	}
	card, err := b.registry.put(ctx, card)
	return card, err
}

// AddAgent registers a principal, or replaces its card and key, as agent.add does.
func (b *Broker) AddAgent(ctx context.Context, card wire.Card) (wire.Card, error) {
	return b.agentAdd(ctx, caller{operator: true}, wire.RegisterAgent{Card: card})
}

func cardFault(path, message string) error {
	return session.RefuseSchema(session.Fault{Path: path, Rule: "card", Message: message})
}

func (b *Broker) checkCard(c *wire.Card) error {
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
	case c.Registry.TrustScore != nil && (*c.Registry.TrustScore < 0 || *c.Registry.TrustScore > 100):
		return cardFault("/card/registry/trustScore", "trustScore is 0 to 100")
	case c.MaxTransactionValue != nil && *c.MaxTransactionValue < 0:
		return cardFault("/card/maxTransactionValue", "maxTransactionValue is at least 0")
	}
	if other, taken := b.registry.byKey(c.Key); c.Key != "" && taken && other != a {
		return session.Refuse(session.Duplicate, "the key belongs to another principal")
	}
	return nil
}

func (b *Broker) agentRemove(ctx context.Context, _ caller, q wire.AgentRef) (wire.Card, error) {
	card, _ := b.registry.card(q.Agent)
	return card, b.registry.remove(ctx, q.Agent)
}

// escalationList is for humans who may decide; agents see those of their sessions.
func (b *Broker) escalationList(ctx context.Context, c caller, q wire.ListEscalations) (wire.Escalations, error) {
	switch q.Status {
	case "", "open", "resolved", "all":
	default:
		return wire.Escalations{}, session.Refuse(session.MalformedEnvelope, "status is open, resolved or all")
	}
	found := wire.Escalations{Escalations: []wire.EscalationItem{}}
	for _, item := range b.items.of("", q.Status) {
		if item.Deadline+string(item.ID) <= q.Cursor || !b.maySeeItem(ctx, c, item) {
			continue
		}
		if len(found.Escalations) == page(q.Limit) {
			last := found.Escalations[len(found.Escalations)-1]
			found.Next = last.Deadline + string(last.ID)
			break
		}
		found.Escalations = append(found.Escalations, item)
	}
	return found, nil
}

func (b *Broker) maySeeItem(ctx context.Context, c caller, item wire.EscalationItem) bool {
	if c.operator {
		return true
	}
	if member, ok := b.registry.member(c.agent); ok && member.Authority == performatives.AuthorityDecide && c.agent.Organisation() == item.Organisation {
		return true
	}
	return b.seen(ctx, c, item.Session, func(*live) error { return nil }) == nil
}

func (b *Broker) escalationGet(ctx context.Context, c caller, q wire.EscalationRef) (wire.EscalationItem, error) {
	unknown := session.Refuse(session.UnknownSession, "there is no such escalation, or you have no part in it")
	var found wire.EscalationItem
	for _, item := range b.items.of("", "all") {
		if string(item.ID) == q.Escalation && b.maySeeItem(ctx, c, item) {
			found = item
		}
	}
	if found.ID == "" {
		return found, unknown
	}
	messages, err := b.sessionMessages(ctx, caller{operator: true}, wire.ListMessages{Session: found.Session, Limit: wire.MaxPage})
	found.Transcript, found.Next = messages.Messages, messages.Next
	return found, err
}
