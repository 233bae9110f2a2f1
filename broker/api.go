package broker

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go/micro"
	"go.uber.org/zap"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
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

var callable = map[string]verb{
	api.SessionGet:      {false, false, typed((*Broker).sessionGet)},
	api.SessionList:     {false, false, typed((*Broker).sessionList)},
	api.SessionMessages: {false, false, typed((*Broker).sessionMessages)},
	api.AgentRegister:   {false, true, typed((*Broker).agentRegister)},
	api.AgentGet:        {false, false, typed((*Broker).agentGet)},
	api.AgentList:       {false, false, typed((*Broker).agentList)},
	api.AgentAdd:        {true, true, typed((*Broker).agentAdd)},
	api.AgentRemove:     {true, true, typed((*Broker).agentRemove)},
	api.AgentRotate:     {false, false, typed((*Broker).agentRotate)},
	api.HumanEnrol:      {true, true, typed((*Broker).humanEnrol)},
	api.HumanUnenrol:    {true, true, typed((*Broker).humanUnenrol)},
	api.AgentJWT:        {false, false, typed((*Broker).agentJWT)},
	api.SchemaPut:       {false, true, typed((*Broker).schemaPut)},
	api.SchemaGet:       {false, false, typed((*Broker).schemaGet)},
	api.SchemaList:      {false, false, typed((*Broker).schemaList)},
	api.BrokerInfo:      {false, false, typed((*Broker).brokerInfo)},
	api.AuditSessions:   {true, false, typed((*Broker).auditSessions)},
	api.AuditSession:    {true, false, typed((*Broker).auditSession)},
	api.AuditMessages:   {true, false, typed((*Broker).auditMessages)},

	api.EscalationList:     {false, false, typed((*Broker).escalationList)},
	api.EscalationGet:      {false, false, typed((*Broker).escalationGet)},
	api.EscalationClaim:    {false, true, typed((*Broker).escalationClaim)},
	api.EscalationRelease:  {false, true, typed((*Broker).escalationRelease)},
	api.EscalationAssign:   {false, true, typed((*Broker).escalationAssign)},
	api.EscalationComment:  {false, true, typed((*Broker).escalationComment)},
	api.EscalationTransfer: {false, true, typed((*Broker).escalationTransfer)},
	api.EscalationHistory:  {false, false, typed((*Broker).escalationHistory)},
	api.EscalationWatch:    {false, false, typed((*Broker).escalationWatch)},
}

func verbs(operator bool) []string {
	var names []string
	for name, v := range callable {
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
	agent, name, err := api.ParseCall(r.Subject())
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
	b.call(r, strings.TrimPrefix(r.Subject(), api.OperatorCall("")), caller{operator: true}, func() {})
}

// callTimeout bounds one api call.
const callTimeout = 10 * time.Second

// maxCalls bounds those that are answered at once.
const maxCalls = 16

// call answers one call, and leaves when that is done.
func (b *Broker) call(r micro.Request, name string, c caller, leave func()) {
	v, known := callable[name]
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
		if name == api.EscalationWatch { // it waits and works little: it takes nobody's place
			leave()
			within = longestWatch + callTimeout
		} else {
			defer b.calls.enter(c.agent).done()
		}
		ctx, cancel := context.WithTimeout(b.ctx, within)
		defer cancel()
		answer, err := v.answer(b, ctx, c, r.Data())
		if err == nil && (v.writes || name == api.AgentRotate) {
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
	for _, stream := range []string{api.StreamOf(api.AgentsBucket), api.StreamOf(api.SchemasBucket)} {
		if err := b.durable(stream, 0); err != nil {
			return err
		}
	}
	return nil
}

func (b *Broker) brokerInfo(context.Context, caller, struct{}) (api.Broker, error) {
	return api.Broker{Key: b.Signer.Key(), Version: Version, NATS: b.Conn.ConnectedServerVersion(), Dev: b.Dev}, nil
}

func (b *Broker) schemaPut(ctx context.Context, c caller, q api.PutSchema) (api.Schema, error) {
	return b.terms.put(ctx, c.agent, q)
}

func (b *Broker) schemaGet(_ context.Context, _ caller, q api.SchemaRef) (api.Schema, error) {
	s, ok := b.terms.get(q.Name)
	if !ok {
		return s, session.Refuse(session.SchemaUnsupported, "there is no schema %.128q", q.Name)
	}
	return s, nil
}

func (b *Broker) schemaList(context.Context, caller, struct{}) (api.SchemaNames, error) {
	return api.SchemaNames{Schemas: b.terms.list()}, nil
}
