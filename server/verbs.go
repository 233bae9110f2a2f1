package server

import (
	"context"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker/verbs"
)

// answers is what the broker answers: every verb of the table, once.
func (b *Broker) answers() []verbs.Answer {
	return []verbs.Answer{
		verbs.Handle(api.SessionGet, b.Parts.Reads.SessionGet),
		verbs.Handle(api.SessionSnapshot, b.Parts.Reads.SessionSnapshot),
		verbs.HandleAct(api.SessionSay, b.Hosted.Say),
		verbs.Handle(api.SessionList, b.Parts.Reads.SessionList),
		verbs.Handle(api.SessionMessages, b.Parts.Reads.SessionMessages),
		verbs.Handle(api.SessionConsumer, b.Parts.Reads.SessionConsumer),
		verbs.Handle(api.TurnPickup, b.Turns.Pickup),
		verbs.HandleAct(api.TurnRespond, b.Turns.Respond),
		verbs.Handle(api.TurnRelease, b.Turns.Release),
		verbs.Handle(api.TurnWait, b.Turns.Wait),
		verbs.Handle(api.WakeupSet, b.Wakeups.Set),
		verbs.Handle(api.InsightsGet, b.Insights.Get),
		verbs.Handle(api.CheckList, b.Parts.Reads.CheckList),
		verbs.Handle(api.CheckGet, b.Parts.Reads.CheckGet),
		verbs.Handle(api.InboxMessages, b.Parts.Reads.InboxMessages),
		verbs.Handle(api.SessionEvidence, b.Parts.Reads.SessionEvidence),
		verbs.Handle(api.AgreementGet, b.Parts.Reads.AgreementGet),
		verbs.Handle(api.AgreementList, b.Parts.Reads.AgreementList),
		verbs.Handle(api.ObligationList, b.Parts.Reads.ObligationList),
		verbs.Handle(api.DisputeList, b.Parts.Reads.DisputeList),
		verbs.Handle(api.AgentRegister, b.Parts.Registry.AgentRegister),
		verbs.HandleThen(api.AgentRotate, b.Custody.AgentRotate),
		verbs.Handle(api.HumanUnenrol, b.Parts.Registry.HumanUnenrol),
		verbs.Handle(api.HumanAway, b.Parts.Registry.HumanAway),
		verbs.Handle(api.AgentVerify, b.Parts.Registry.AgentVerify),
		verbs.Handle(api.AgentJWT, b.Parts.Registry.AgentJWT),
		verbs.Handle(api.AgentGet, b.Parts.Registry.AgentGet),
		verbs.Handle(api.AgentList, b.Parts.Registry.AgentList),
		verbs.Handle(api.AgentSearch, b.Parts.Registry.AgentSearch),
		verbs.Handle(api.DiscoveryCall, b.Proposals.Call),
		verbs.Handle(api.DiscoveryAnswer, b.Proposals.Answer),
		verbs.Handle(api.SchemaPut, b.Parts.Terms.Put),
		verbs.Handle(api.SchemaGet, b.Parts.Terms.Get),
		verbs.Handle(api.SchemaList, b.Parts.Terms.List),
		verbs.Handle(api.EscalationList, b.Parts.Approvals.List),
		verbs.Handle(api.EscalationGet, b.Parts.Approvals.Get),
		verbs.Handle(api.EscalationClaim, b.Parts.Approvals.Claim),
		verbs.Handle(api.EscalationRelease, b.Parts.Approvals.Release),
		verbs.Handle(api.EscalationAssign, b.Parts.Approvals.Assign),
		verbs.Handle(api.EscalationComment, b.Parts.Approvals.Comment),
		verbs.Handle(api.EscalationUnseal, b.Parts.Approvals.Unseal),
		verbs.Handle(api.EscalationTransfer, b.Parts.Approvals.Transfer),
		verbs.Handle(api.EscalationHistory, b.Parts.Approvals.History),
		verbs.Handle(api.EscalationWatch, b.Parts.Approvals.Watch),
		verbs.Handle(api.BrokerInfo, b.brokerInfo),
		verbs.Handle(api.BrokerStatus, b.brokerStatus),
		verbs.Handle(api.AgentAdd, b.Custody.AgentAdd),
		verbs.Handle(api.AgentHost, b.Custody.AgentHost),
		verbs.Handle(api.AgentUnhost, b.Custody.AgentUnhost),
		verbs.Handle(api.AgentRemove, b.agentRemove),
		verbs.Handle(api.TokenAdd, b.Custody.TokenAdd),
		verbs.Handle(api.TokenList, b.Custody.TokenList),
		verbs.Handle(api.TokenRemove, b.Custody.TokenRemove),
		verbs.Handle(api.SchemaRemove, b.Parts.Terms.Remove),
		verbs.Handle(api.AuditSessions, b.Parts.Reads.AuditSessions),
		verbs.Handle(api.AuditMessages, b.Parts.Reads.AuditMessages),
		verbs.Handle(api.AuditSession, b.Parts.Reads.AuditSession),
		verbs.Handle(api.SessionErase, b.archiver.SessionErase),
		verbs.Handle(api.HumanEnrol, b.Parts.Registry.HumanEnrol),
	}
}

// agentRemove answers agent.rm. What the agent had called goes with it.
func (b *Broker) agentRemove(ctx context.Context, c api.Caller, q api.AgentRef) (api.Card, error) {
	if err := b.Wakeups.Forget(ctx, q.Agent); err != nil {
		return api.Card{}, err
	}
	return b.Custody.AgentRemove(ctx, c, q)
}

func (b *Broker) brokerInfo(_ context.Context, c api.Caller, _ struct{}) (api.Broker, error) {
	inbox := api.InboxStreamOf(c.Agent, b.Parts.Store.Shards())
	if c.Operator || inbox == api.InboxStream {
		inbox = ""
	}
	since := ""
	if at := b.Options.KeySince; !at.IsZero() {
		since = api.Timestamp(at)
	}
	return api.Broker{Key: b.Command.Key(), Keys: b.Options.Keys, Since: since, Version: api.Version, NATS: b.Options.Conn.ConnectedServerVersion(), Dev: b.Options.Dev, Log: api.LogKey{Origin: b.Parts.Ledger.Origin(), Key: b.Parts.Ledger.VerifierKey(), Receipts: b.Parts.Ledger.ReceiptKey()}, Now: api.Timestamp(b.Options.Now()), Inbox: inbox}, nil
}
