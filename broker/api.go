package broker

import (
	"context"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/verbs"
)

func (b *Broker) openVerbs(context.Context) (err error) {
	b.verbs, err = verbs.New(verbs.Options{
		Answers: b.answers(), Registry: b.registry, Begin: b.sessions.begin, End: b.sessions.busy.Done, Work: b.work,
	})
	return err
}

// Call calls a verb and answers once, after release. A last answer must have left
// when answer returns: what follows may close the caller's connection.
func (b *Broker) Call(c api.Caller, verb string, request []byte, release func(), answer func(reply any, last bool, err error)) {
	b.verbs.Call(c, verb, request, release, answer)
}

// answers is what the broker answers: every verb of the table, once.
func (b *Broker) answers() []verbs.Answer {
	return []verbs.Answer{
		verbs.Handle(api.SessionGet, b.queries.SessionGet),
		verbs.Handle(api.SessionList, b.queries.SessionList),
		verbs.Handle(api.SessionMessages, b.queries.SessionMessages),
		verbs.Handle(api.SessionConsumer, b.queries.SessionConsumer),
		verbs.Handle(api.TurnPickup, b.turns.Pickup),
		verbs.Handle(api.TurnRespond, b.turns.Respond),
		verbs.Handle(api.TurnRelease, b.turns.Release),
		verbs.Handle(api.TurnWait, b.turns.Wait),
		verbs.Handle(api.InsightsGet, b.insights.Get),
		verbs.Handle(api.CheckList, b.queries.CheckList),
		verbs.Handle(api.CheckGet, b.queries.CheckGet),
		verbs.Handle(api.InboxMessages, b.queries.InboxMessages),
		verbs.Handle(api.AgreementGet, b.agreements.Get),
		verbs.Handle(api.AgreementList, b.agreements.List),
		verbs.Handle(api.AgentRegister, b.registry.AgentRegister),
		verbs.HandleThen(api.AgentRotate, b.registry.AgentRotate),
		verbs.Handle(api.HumanUnenrol, b.registry.HumanUnenrol),
		verbs.Handle(api.HumanAway, b.registry.HumanAway),
		verbs.Handle(api.AgentVerify, b.registry.AgentVerify),
		verbs.Handle(api.AgentJWT, b.registry.AgentJWT),
		verbs.Handle(api.AgentGet, b.registry.AgentGet),
		verbs.Handle(api.AgentList, b.registry.AgentList),
		verbs.Handle(api.AgentSearch, b.registry.AgentSearch),
		verbs.Handle(api.DiscoveryCall, b.proposals.Call),
		verbs.Handle(api.DiscoveryAnswer, b.proposals.Answer),
		verbs.Handle(api.SchemaPut, b.terms.Put),
		verbs.Handle(api.SchemaGet, b.terms.Get),
		verbs.Handle(api.SchemaList, b.terms.List),
		verbs.Handle(api.EscalationList, b.approvals.List),
		verbs.Handle(api.EscalationGet, b.approvals.Get),
		verbs.Handle(api.EscalationClaim, b.approvals.Claim),
		verbs.Handle(api.EscalationRelease, b.approvals.Release),
		verbs.Handle(api.EscalationAssign, b.approvals.Assign),
		verbs.Handle(api.EscalationComment, b.approvals.Comment),
		verbs.Handle(api.EscalationTransfer, b.approvals.Transfer),
		verbs.Handle(api.EscalationHistory, b.approvals.History),
		verbs.Handle(api.EscalationWatch, b.approvals.Watch),
		verbs.Handle(api.BrokerInfo, b.brokerInfo),
		verbs.Handle(api.AgentAdd, b.custody.AgentAdd),
		verbs.Handle(api.AgentHost, b.custody.AgentHost),
		verbs.Handle(api.AgentUnhost, b.custody.AgentUnhost),
		verbs.Handle(api.AgentRemove, b.custody.AgentRemove),
		verbs.Handle(api.TokenAdd, b.custody.TokenAdd),
		verbs.Handle(api.TokenList, b.custody.TokenList),
		verbs.Handle(api.TokenRemove, b.custody.TokenRemove),
		verbs.Handle(api.SchemaRemove, b.terms.Remove),
		verbs.Handle(api.AuditSessions, b.audits.Sessions),
		verbs.Handle(api.AuditMessages, b.audits.Messages),
		verbs.Handle(api.AuditSession, b.audits.Session),
		verbs.Handle(api.HumanEnrol, b.registry.HumanEnrol),
	}
}

func (b *Broker) brokerInfo(context.Context, api.Caller, struct{}) (api.Broker, error) {
	return api.Broker{Key: b.Signer.Key(), Version: api.Version, NATS: b.Conn.ConnectedServerVersion(), Dev: b.Dev, Log: api.LogKey{Origin: b.ledger.Origin(), Key: b.ledger.VerifierKey()}}, nil
}
