package session

import (
	"cmp"
	"slices"

	"github.com/parley-asp/parley/delegation"
	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
)

// resolve finds what the act refers to. Whether it has to find something is
// judged later, among the references. An OBSERVE may name anything.
func (t *Command) resolve() {
	if t.Act == performatives.Observe {
		return
	}
	id := t.Message.Body.Refers()
	switch t.named(id) {
	case anInvitation, aProposal, aCommitment:
		t.Offer, _ = t.State.Offer(id)
	case aDelegation:
		if g, ok := t.grants.Get(delegation.ID(id)); ok && answersDelegation(t.Act) {
			t.about = &g
		}
	case aClarification:
		t.question, _ = t.questions.Get(id)
	case anAmendment:
		t.Offer, _ = t.State.Offer(id)
	case aDelivery:
		t.delivery, _ = t.deliveries.Get(id)
	case aRemedy:
		t.remedy, _ = t.remedies.Get(id)
	case nothing, anEscalation, aDispute: // a ruling names it in its data
	}
	t.findAnswers()
}

func answersDelegation(p performatives.Performative) bool {
	return p == performatives.Accept || p == performatives.Reject || p == performatives.Withdraw
}

// asKnown is a party as the registry has it now, else as it is pinned. Its kind and
// what it may do here are pinned; only whether a human may decide is the registry's to
// say, also of one who negotiates as a principal.
func (t *Command) asKnown(p Party) Party {
	m, known := t.event.Known.Get(p.Agent)
	if !known {
		return p
	}
	_, escalated := t.deciders.Get(p.Agent.Organisation())
	switch {
	case p.Role == Approver, p.Role <= Invitee && escalated && escalation.MayDecide(m, p.Agent.Organisation()):
	case p.Role <= Invitee:
		m.Authority = performatives.AuthorityPrincipal
	default:
		m.Authority = p.Authority
	}
	if !t.Before(2) {
		m.Kind = cmp.Or(p.Kind, m.Kind)
	}
	m.Standby, m.Conformance, m.CCC, m.DID = p.Standby, p.Conformance, p.CCC, p.DID
	p.Member = m
	return p
}

// rulesInTime refuses a ruling on an escalation that has ended, whatever the
// state is by then; the same decision again is the first result.
func (t *Command) rulesInTime() error {
	ruling, ok := t.ruling()
	if !ok || !t.From.Agent.IsHuman() {
		return nil
	}
	item, known := t.items.Get(escalation.ID(ruling.EscalationID))
	if !known || !escalation.MayDecide(t.From.Member, item.Org) {
		return nil
	}
	if vote, same := item.SameDecision(t.From.Agent, t.decisionDigest()); same {
		first, _ := t.Seen(vote.Message)
		return &Repeat{first}
	}
	if item.Open() {
		return nil
	}
	return Refuse(EscalationResolved, "the escalation is over: %s by %s", item.End.How, item.End.By).
		With(map[string]any{
			"escalationId": item.ID, "decision": item.End.How, "by": item.End.By,
			"at": stamp(item.End.At), "sequenceNumber": item.End.Sequence,
		})
}

func (t *Command) ruling() (performatives.RulingData, bool) {
	inform, ok := t.Message.Body.(*performatives.InformBody)
	if !ok {
		return performatives.RulingData{}, false
	}
	return inform.Ruling()
}

// rejoin pins the sender anew when the registry knows it otherwise than the
// transcript does, and lets an approver or a delegate in by its first act.
func (t *Command) rejoin() {
	if t.Phase == Idle {
		return
	}
	if old, was := t.parties.Get(t.From.Agent); !was || old.Role != t.From.Role || !sameMember(old.Member, t.From.Member) {
		t.enter(t.From)
	}
	if t.joins() {
		t.join()
	}
}

func sameMember(a, b performatives.Member) bool {
	trust := func(m performatives.Member) float64 {
		if m.TrustScore == nil {
			return 0
		}
		return *m.TrustScore
	}
	return a.Key == b.Key && a.DIDKey == b.DIDKey && a.Custody == b.Custody && a.Kind == b.Kind && a.Authority == b.Authority && a.Limited == b.Limited && trust(a) == trust(b)
}

// enter gives somebody a part, or a new one, and pins it.
func (t *Command) enter(p Party) {
	was, again := t.parties.Get(p.Agent)
	p.Sequence = was.Sequence
	if p.Role > Invitee {
		p.Standby = ""
	}
	if again {
		p.keys = was.keys
	}
	if p.Key != was.Key {
		p.keys = append(slices.Clip(p.keys), p.Key)
	}
	if p.DIDKey != was.DIDKey {
		p.keys = append(slices.Clip(p.keys), p.DIDKey)
	}
	if !again {
		p.Salt = cmp.Or(t.saltOf(p.Agent), p.Salt)
		p.Sequence = t.Next
		t.order = append(t.order[:len(t.order):len(t.order)], p.Agent)
		if p.minimal() && p.Role != Standby && !t.Before(2) {
			t.limited = append(slices.Clip(t.limited), p.Agent)
		}
	}
	t.parties = t.parties.With(p.Agent, p)
	t.Last.Joined = append(t.Last.Joined, p.Member)
}

// actsFor names the principal on every act that a delegate or a standby does for it;
// answering the delegation itself it does for itself.
func (t *Command) actsFor() {
	if t.From.Role == Standby || t.From.Role == Approver && t.Side != t.From.Agent {
		t.Last.OnBehalfOf = t.Side
	}
	if t.Grant == nil || t.about != nil && (t.about.ID == t.Grant.ID || t.about.To == t.From.Agent && !t.Before(2)) {
		return
	}
	t.Last.OnBehalfOf = t.Grant.Principal
}
