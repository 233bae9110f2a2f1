package broker

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/scheduler"
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
		handle(api.SessionConsumer, b.sessionConsumer),
		handle(api.TurnPickup, b.turns.Pickup),
		handle(api.TurnRespond, b.turns.Respond),
		handle(api.TurnRelease, b.turns.Release),
		handle(api.TurnWait, b.turns.Wait),
		handle(api.InsightsGet, b.insightsGet),
		handle(api.CheckList, b.checkList),
		handle(api.CheckGet, b.checkGet),
		handle(api.InboxMessages, b.inboxMessages),
		handle(api.AgreementGet, b.agreementGet),
		handle(api.AgreementList, b.agreementList),
		handle(api.AgentRegister, b.registry.AgentRegister),
		handleThen(api.AgentRotate, b.registry.AgentRotate),
		handle(api.HumanUnenrol, b.registry.HumanUnenrol),
		handle(api.HumanAway, b.registry.HumanAway),
		handle(api.AgentVerify, b.registry.AgentVerify),
		handle(api.AgentJWT, b.registry.AgentJWT),
		handle(api.AgentGet, b.registry.AgentGet),
		handle(api.AgentList, b.registry.AgentList),
		handle(api.AgentSearch, b.registry.AgentSearch),
		handle(api.DiscoveryCall, b.proposals.Call),
		handle(api.DiscoveryAnswer, b.proposals.Answer),
		handle(api.SchemaPut, b.terms.Put),
		handle(api.SchemaGet, b.terms.Get),
		handle(api.SchemaList, b.terms.List),
		handle(api.EscalationList, b.approvals.List),
		handle(api.EscalationGet, b.approvals.Get),
		handle(api.EscalationClaim, b.approvals.Claim),
		handle(api.EscalationRelease, b.approvals.Release),
		handle(api.EscalationAssign, b.approvals.Assign),
		handle(api.EscalationComment, b.approvals.Comment),
		handle(api.EscalationTransfer, b.approvals.Transfer),
		handle(api.EscalationHistory, b.approvals.History),
		handle(api.EscalationWatch, b.approvals.Watch),
		handle(api.BrokerInfo, b.brokerInfo),
		handle(api.AgentAdd, b.custody.AgentAdd),
		handle(api.AgentHost, b.custody.AgentHost),
		handle(api.AgentUnhost, b.custody.AgentUnhost),
		handle(api.AgentRemove, b.custody.AgentRemove),
		handle(api.TokenAdd, b.custody.TokenAdd),
		handle(api.TokenList, b.custody.TokenList),
		handle(api.TokenRemove, b.custody.TokenRemove),
		handle(api.SchemaRemove, b.terms.Remove),
		handle(api.AuditSessions, b.auditSessions),
		handle(api.AuditMessages, b.auditMessages),
		handle(api.AuditSession, b.auditSession),
		handle(api.HumanEnrol, b.registry.HumanEnrol),
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

// callTimeout bounds one api call.
const callTimeout = 10 * time.Second

// Bounds of api calls.
const (
	maxCalls        = 16   // that are answered at once
	maxWaitingCalls = 1024 // that wait for that; then one more of each principal may
)

// Call calls a verb and answers once, after release. A last answer must have left
// when answer returns: what follows may close the caller's connection.
func (b *Broker) Call(c api.Caller, verb string, request []byte, release func(), answer func(reply any, last bool, err error)) {
	v, wait, err := b.begin(c, verb)
	if err != nil {
		release()
		answer(nil, false, err)
		return
	}
	go func() {
		defer b.sessions.busy.Done()
		b.answer(c, v, request, wait, release, answer)
	}()
}

// begin counts a call as work, unless the caller may not make it, or too many wait for their
// turn. wait waits for the call's own.
func (b *Broker) begin(c api.Caller, verb string) (v answer, wait func() *scheduler.Slot, err error) {
	if v, err = b.callable(c, verb); err != nil {
		return v, nil, err
	}
	if !b.sessions.begin() {
		return v, nil, session.Busy()
	}
	if v.Waits { // it works little, so it takes nobody's slot
		return v, nil, nil
	}
	wait, joined := b.calls.Join(c.Agent)
	if !joined {
		b.sessions.busy.Done()
		return v, nil, session.Busy()
	}
	return v, wait, nil
}

// callable finds what answers a verb that the caller may call.
func (b *Broker) callable(c api.Caller, verb string) (answer, error) {
	role := api.Principal
	if c.Operator {
		role = api.Operator
	}
	v, known := b.verbs[verb]
	if !known || v.Role == api.Operator && !c.Operator {
		return v, session.Refuse(session.MalformedEnvelope, "there is no verb %.40q; there is %s", verb, strings.Join(api.VerbNames(role), ", "))
	}
	if _, registered := b.registry.Member(c.Agent); !c.Operator && !registered {
		return v, session.Refuse(session.UnknownAgent, "you are not registered")
	}
	if !v.Auditors && b.registry.Audits(c) {
		return v, auditorsRead()
	}
	return v, nil
}

func (b *Broker) answer(c api.Caller, v answer, request []byte, wait func() *scheduler.Slot, release func(), tell func(reply any, last bool, err error)) {
	defer release()
	within := callTimeout
	if wait == nil {
		release()
		within = api.LongestWait + callTimeout
	} else {
		defer wait().Done()
	}
	ctx, cancel := context.WithTimeout(b.work.Context(), within)
	defer cancel()
	reply, then, err := v.call(ctx, c, request)
	if then != nil {
		defer then()
	}
	release() // whoever has the answer may ask the next
	tell(reply, then != nil, err)
}

func (b *Broker) brokerInfo(context.Context, api.Caller, struct{}) (api.Broker, error) {
	return api.Broker{Key: b.Signer.Key(), Version: api.Version, NATS: b.Conn.ConnectedServerVersion(), Dev: b.Dev, Log: api.LogKey{Origin: b.ledger.Origin(), Key: b.ledger.VerifierKey()}}, nil
}
