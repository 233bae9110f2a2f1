package broker

import (
	"context"
	"fmt"
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

// An answer is a verb and what answers it.
type answer struct {
	api.Verb
	call func(context.Context, api.Caller, []byte) (reply any, then func(), err error)
}

// answers is what this broker answers: every verb of the table, once.
func (b *Broker) answers() []answer {
	return []answer{
		handle(api.SessionGet, b.sessionGet),
		handle(api.SessionList, b.sessionList),
		handle(api.SessionMessages, b.sessionMessages),
		handle(api.AgentRegister, b.registry.AgentRegister),
		handleThen(api.AgentRotate, b.registry.AgentRotate),
		handle(api.AgentJWT, b.registry.AgentJWT),
		handle(api.AgentGet, b.registry.AgentGet),
		handle(api.AgentList, b.registry.AgentList),
		handle(api.SchemaPut, b.terms.Put),
		handle(api.SchemaGet, b.terms.Get),
		handle(api.SchemaList, b.terms.List),
		handle(api.EscalationList, b.escalationList),
		handle(api.EscalationGet, b.escalationGet),
		handle(api.EscalationClaim, b.escalationClaim),
		handle(api.EscalationRelease, b.escalationRelease),
		handle(api.EscalationAssign, b.escalationAssign),
		handle(api.EscalationComment, b.escalationComment),
		handle(api.EscalationTransfer, b.escalationTransfer),
		handle(api.EscalationHistory, b.escalationHistory),
		handle(api.EscalationWatch, b.escalationWatch),
		handle(api.BrokerInfo, b.brokerInfo),
		handle(api.AgentAdd, b.registry.AgentAdd),
		handle(api.AgentRemove, b.registry.AgentRemove),
		handle(api.AuditSessions, b.auditSessions),
		handle(api.AuditMessages, b.auditMessages),
		handle(api.AuditSession, b.auditSession),
		handle(api.HumanEnrol, b.registry.HumanEnrol),
		handle(api.HumanUnenrol, b.registry.HumanUnenrol),
	}
}

// handle has a verb answered. The compiler checks the types of request and reply.
func handle[Q, A any](v api.VerbOf[Q, A], call func(context.Context, api.Caller, Q) (A, error)) answer {
	return handleThen(v, func(ctx context.Context, c api.Caller, q Q) (A, func(), error) {
		reply, err := call(ctx, c, q)
		return reply, nil, err
	})
}

// handleThen is handle for a verb that has something left to do once its reply
// is on its way, or has failed: then, which may be nil.
func handleThen[Q, A any](v api.VerbOf[Q, A], call func(context.Context, api.Caller, Q) (reply A, then func(), err error)) answer {
	return answer{v.Verb, func(ctx context.Context, c api.Caller, data []byte) (any, func(), error) {
		request, err := requestOf[Q](data)
		if err != nil {
			return nil, nil, err
		}
		return call(ctx, c, request)
	}}
}

// requestOf reads a request into its type. An empty one is {}.
func requestOf[Q any](data []byte) (request Q, err error) {
	if len(data) == 0 {
		return request, nil
	}
	canonical, err := performatives.Canonical(data)
	if err != nil {
		return request, unreadable(err)
	}
	if err := json.Unmarshal(canonical, &request); err != nil {
		return request, session.Refuse(session.MalformedEnvelope, "the request is not what the verb takes; see docs/PROTOCOL.md")
	}
	return request, nil
}

// byName holds the answers against a table of verbs: every verb has one answer,
// and there is no other.
func byName(table []api.Verb, answers []answer) (map[string]answer, error) {
	found := make(map[string]answer, len(answers))
	for _, a := range answers {
		if _, twice := found[a.Name]; twice {
			return nil, fmt.Errorf("verb %s has two answers", a.Name)
		}
		found[a.Name] = a
	}
	for _, v := range table {
		if _, answered := found[v.Name]; !answered {
			return nil, fmt.Errorf("verb %s has no answer", v.Name)
		}
	}
	if len(found) > len(table) {
		return nil, fmt.Errorf("there are answers to %d verbs that the table does not have", len(found)-len(table))
	}
	return found, nil
}

// openAPI finds the answer to every verb.
func (b *Broker) openAPI(context.Context) (err error) {
	b.verbs, err = byName(api.Verbs(), b.answers())
	return err
}

// verbNames are those that a caller may use, sorted.
func verbNames(operator bool) []string {
	var names []string
	for _, v := range api.Verbs() {
		if operator || v.Role == api.Principal {
			names = append(names, v.Name)
		}
	}
	slices.Sort(names)
	return names
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
	b.call(r, name, api.Caller{Agent: agent}, leave)
}

func (b *Broker) onOperator(r micro.Request) {
	if unanswerable(r) {
		return
	}
	b.call(r, strings.TrimPrefix(r.Subject(), api.OperatorCall("")), api.Caller{Operator: true}, func() {})
}

// callTimeout bounds one api call.
const callTimeout = 10 * time.Second

// maxCalls bounds those that are answered at once.
const maxCalls = 16

// call answers one call, and leaves when that is done.
func (b *Broker) call(r micro.Request, name string, c api.Caller, leave func()) {
	v, known := b.verbs[name]
	if !known || v.Role == api.Operator && !c.Operator {
		leave()
		b.refuse(r, session.Refuse(session.MalformedEnvelope, "there is no verb %.40q; there is %s", name, strings.Join(verbNames(c.Operator), ", ")))
		return
	}
	if _, registered := b.registry.Member(c.Agent); !c.Operator && !registered {
		leave()
		b.refuse(r, session.Refuse(session.UnknownAgent, "you are not registered"))
		return
	}
	if !v.Auditors && b.registry.Audits(c) {
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
		if v.Waits {
			leave()
			within = longestWatch + callTimeout
		} else {
			defer b.calls.enter(c.Agent).done()
		}
		ctx, cancel := context.WithTimeout(b.work.Context(), within)
		defer cancel()
		reply, then, err := v.call(ctx, c, r.Data())
		if then != nil {
			defer then()
		}
		leave() // whoever has the answer may ask the next
		if err != nil {
			b.refuse(r, err)
			return
		}
		b.reply(r, reply)
		if then == nil {
			return
		}
		if err := b.Conn.FlushWithContext(ctx); err != nil {
			b.Log.Debug("answer not flushed", zap.Error(err))
		}
	}()
}

func (b *Broker) brokerInfo(context.Context, api.Caller, struct{}) (api.Broker, error) {
	return api.Broker{Key: b.Signer.Key(), Version: Version, NATS: b.Conn.ConnectedServerVersion(), Dev: b.Dev}, nil
}
