package broker

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go/micro"
	"go.uber.org/zap"

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
	writes       bool // more than the caller's key: not for auditors
	answer       func(*Broker, context.Context, caller, []byte) (any, error)
}

var api = map[string]verb{
	wire.SessionGet:      {false, false, typed((*Broker).sessionGet)},
	wire.SessionList:     {false, false, typed((*Broker).sessionList)},
	wire.SessionMessages: {false, false, typed((*Broker).sessionMessages)},
	wire.AgentRegister:   {false, true, typed((*Broker).agentRegister)},
	wire.AgentGet:        {false, false, typed((*Broker).agentGet)},
	wire.AgentList:       {false, false, typed((*Broker).agentList)},
	wire.AgentAdd:        {true, true, typed((*Broker).agentAdd)},
	wire.AgentRemove:     {true, true, typed((*Broker).agentRemove)},
	wire.AgentRotate:     {false, false, typed((*Broker).agentRotate)},
	wire.HumanEnrol:      {true, true, typed((*Broker).humanEnrol)},
	wire.HumanUnenrol:    {true, true, typed((*Broker).humanUnenrol)},
	wire.AgentJWT:        {false, false, typed((*Broker).agentJWT)},
	wire.SchemaPut:       {false, true, typed((*Broker).schemaPut)},
	wire.SchemaGet:       {false, false, typed((*Broker).schemaGet)},
	wire.SchemaList:      {false, false, typed((*Broker).schemaList)},
	wire.BrokerInfo:      {false, false, typed((*Broker).brokerInfo)},
	wire.AuditSessions:   {true, false, typed((*Broker).auditSessions)},
	wire.AuditSession:    {true, false, typed((*Broker).auditSession)},
	wire.AuditMessages:   {true, false, typed((*Broker).auditMessages)},

	wire.EscalationList:     {false, false, typed((*Broker).escalationList)},
	wire.EscalationGet:      {false, false, typed((*Broker).escalationGet)},
	wire.EscalationClaim:    {false, true, typed((*Broker).escalationClaim)},
	wire.EscalationRelease:  {false, true, typed((*Broker).escalationRelease)},
	wire.EscalationAssign:   {false, true, typed((*Broker).escalationAssign)},
	wire.EscalationComment:  {false, true, typed((*Broker).escalationComment)},
	wire.EscalationTransfer: {false, true, typed((*Broker).escalationTransfer)},
	wire.EscalationHistory:  {false, false, typed((*Broker).escalationHistory)},
	wire.EscalationWatch:    {false, false, typed((*Broker).escalationWatch)},
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
	leave, err := b.gate.enter(agent)
	if err != nil {
		b.tellLimited(agent, noSession, err)
		b.tellLater(r.Reply(), err)
		return
	}
	b.call(r, name, caller{agent: agent}, leave)
}

func (b *Broker) onOperator(r micro.Request) {
	if unanswerable(r) {
		return
	}
	b.call(r, strings.TrimPrefix(r.Subject(), wire.OperatorCall("")), caller{operator: true}, func() {})
}

// callTimeout bounds one api call.
const callTimeout = 10 * time.Second

// maxCalls bounds those that are answered at once.
const maxCalls = 16

// call answers one call, and leaves when that is done.
func (b *Broker) call(r micro.Request, name string, c caller, leave func()) {
	v, known := api[name]
	if !known || v.operatorOnly && !c.operator {
		leave()
		b.refuse(r, session.Refuse(session.MalformedEnvelope, "there is no verb %.40q; there is %s", name, strings.Join(verbs(c.operator), ", ")))
		return
	}
	if _, registered := b.registry.member(c.agent); !c.operator && !registered {
		leave()
		b.refuse(r, session.Refuse(session.UnknownAgent, "you are not registered"))
		return
	}
	if v.writes && b.audits(c) {
		leave()
		b.refuse(r, auditorsRead())
		return
	}
	if !b.sessions.begin() {
		leave()
		b.refuse(r, unavailable())
		return
	}
	go func() {
		defer b.sessions.busy.Done()
		defer leave()
		within := callTimeout
		if name == wire.EscalationWatch { // it waits and works little: it takes nobody's place
			leave()
			within = longestWatch + callTimeout
		} else {
			defer b.calls.enter(c.agent).done()
		}
		ctx, cancel := context.WithTimeout(b.ctx, within)
		defer cancel()
		answer, err := v.answer(b, ctx, c, r.Data())
		if err == nil && (v.writes || name == wire.AgentRotate) {
			err = b.keep()
		}
		leave() // whoever has the answer may ask the next
		if err != nil {
			b.refuse(r, err)
			return
		}
		if l, ok := answer.(last); ok {
			b.reply(r, l.answer)
			if err := b.Conn.FlushWithContext(ctx); err != nil {
				b.Log.Debug("answer not flushed", zap.Error(err))
			}
			l.goes()
			return
		}
		b.reply(r, answer)
	}()
}

// keep makes what a call wrote as safe as an accepted act: what no transcript has.
func (b *Broker) keep() error {
	for _, stream := range []string{wire.StreamOf(wire.AgentsBucket), wire.StreamOf(wire.SchemasBucket)} {
		if err := b.durable(stream, 0); err != nil {
			return err
		}
	}
	return nil
}

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
