package negotiator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// A Broker has turns that wait, such as *client.Client.
type Broker interface {
	PickUp(ctx context.Context, q api.PickUpTurn) (api.Turn, error)
	RespondTurn(ctx context.Context, q api.RespondTurn) (api.Acceptance, error)
}

// An Agent takes the turns of one principal, or those that it may take as a standby.
type Agent struct {
	Self   performatives.Agent
	Policy *Policy
	Model  *Model // proposes within the policy; nil: the policy decides alone
	Broker Broker
	Worker string
	Lease  int64    // of a claim, in ms: a turn that is left waits again after it
	Modes  []string // whose turns it takes; nil is all

	left int             // turns left so far: a worker keeps what it has claimed
	done map[string]bool // answers so far, each to be said once
}

// mostDone are the answers that an agent remembers, at most.
const mostDone = 10_000

// ErrLeft means that a turn was left for later, or for others.
var ErrLeft = errors.New("left")

// Step takes the turn that has waited longest, and says what it did. It returns "" when no
// turn waits, and ErrLeft for one that it left.
func (a *Agent) Step(ctx context.Context) (did string, err error) {
	worker := fmt.Sprintf("%s-%d", a.Worker, a.left)
	turn, err := a.Broker.PickUp(ctx, api.PickUpTurn{Worker: worker, Lease: a.Lease, Modes: a.Modes})
	if err != nil || turn.Claim == nil {
		return "", err
	}
	refused := refusals{}
	for err == nil {
		var act string
		var body map[string]any
		if act, body, err = a.answer(ctx, turn, refused); err != nil {
			break
		}
		if why, again := refused[act]; again {
			err = why
			break
		}
		answer := strings.Join([]string{string(turn.Session), turn.Reference, act}, "\n")
		if final := act == Accept || act == Reject; final && a.done[answer] { // a mode that has the turn come again must not have it said again
			err = errNotOurs
			break
		}
		if err = a.respond(ctx, turn, worker, act, body); err == nil {
			if len(a.done) >= mostDone || a.done == nil {
				a.done = map[string]bool{}
			}
			a.done[answer] = true
			return fmt.Sprintf("%s in %s", act, turn.Session), nil
		}
		if refusal, is := errors.AsType[*session.Refusal](err); is { // something else may be allowed
			refused[act], err = refusal, nil
		}
	}
	a.left++
	return "", fmt.Errorf("the turn in %s: %w: %w", turn.Session, ErrLeft, err)
}

// refusals are those of the acts of a turn so far, each of which is said once.
type refusals map[string]*session.Refusal

// by reports whether an act was refused with a code.
func (r refusals) by(act string, code session.Code) bool { return r[act] != nil && r[act].Code == code }

// capped reports whether the mode allows no more offers.
func (r refusals) capped() bool { return r.says(Counter, "rule") == "max_rounds" }

// byRuling reports whether an ACCEPT is more than what a human has approved, and not more than what a card, a delegation
// or a standby's time allows, which another approval would change.
func (r refusals) byRuling() bool { return r.says(Accept, "escalationId") != nil }

// says is a detail of an act's refusal.
func (r refusals) says(act, name string) any {
	if r[act] == nil {
		return nil
	}
	var details map[string]any
	data, err := json.Marshal(r[act].Details)
	if err != nil || json.Unmarshal(data, &details) != nil {
		return nil
	}
	return details[name]
}

func (a *Agent) respond(ctx context.Context, turn api.Turn, worker, act string, body map[string]any) error {
	if turn.Mode == bilateral && act != "INFORM" && act != Escalate && turn.View.State > session.Invited {
		reason, _ := body["reason"].(string)
		if _, has := body["assessment"]; !has {
			body["assessment"] = assess(cmp.Or(reason, "by policy"), peerRole, peerRole)
		}
	}
	if act == Propose { // it has no reason
		delete(body, "reason")
	}
	raw, err := json.Marshal(body, json.Deterministic(true))
	if err != nil {
		return err
	}
	_, err = a.Broker.RespondTurn(ctx, api.RespondTurn{ID: turn.Claim.ID, Session: turn.Session, Worker: worker, Performative: act, Body: raw})
	return err
}

var errNotOurs = errors.New("nothing that a policy answers")

// answer decides what to say.
func (a *Agent) answer(ctx context.Context, turn api.Turn, refused refusals) (act string, body map[string]any, err error) {
	view := turn.View
	if view == nil { // a delegation that is offered
		return "", nil, errNotOurs
	}
	if view.State == session.Invited {
		switch {
		case view.Publish != nil && !a.Policy.Publish:
			return Reject, rejection(turn, "no mandate to publish terms"), nil
		case refused.by(Accept, session.ModeViolation): // its card forbids the session, which is nobody else's business
			return Reject, rejection(turn, "declined"), nil
		}
		return Accept, map[string]any{"referenceId": turn.Reference}, nil
	}
	side := sideOf(turn, a.Self)
	offer, ours := offerOf(view, turn.Reference, side)
	switch {
	case turn.CounterpartyAct == performatives.Query.String():
		return "", nil, errNotOurs
	case turn.Reference == "":
	case offer == nil && commits(view, turn.Reference, side):
		unknown := Decision{Act: Escalate, Code: "policy-ambiguous", Reason: "the policy does not know commitments"}
		d := a.within(view, turn.Reference, side, Situation{Last: true}, unknown, refused)
		return d.Act, bodyOf(turn, a.Policy, d), nil
	case offer == nil:
		return "", nil, errNotOurs
	case offer.From == side && len(offer.Pending) > 0:
		return answersOf(offer)
	case answered(view, offer.Proposal, side): // it waits for others, or for a COMMIT
		return "", nil, errNotOurs
	case offer.From == side && offer.Status == "open" && turn.Mode == convergent && (view.Publish == nil || a.Policy.Publish): // whose sides accept their own
		return Accept, map[string]any{"referenceId": turn.Reference}, nil
	case offer.From == side && offer.Status == "open":
		return "", nil, errNotOurs
	}
	s, err := situation(turn, offer, side, ours, a.Policy.Rounds)
	if err != nil {
		return "", nil, err
	}
	s.Last = s.Last || refused.capped()
	d, matched := a.Policy.match(turn, offer, s, ours)
	if !matched {
		d = a.Policy.Decide(s)
	}
	switch {
	case !matched && d.Act == Propose && ours >= a.Policy.Rounds:
		return "", nil, errNotOurs
	case d.Act != Accept:
	case view.Publish != nil && !a.Policy.Publish: // whoever accepts consents
		d = Decision{Act: Escalate, Code: "policy-ambiguous", Reason: "the public log would show the terms, and the policy does not say publish"}
	case Another(view, offer, side):
		d = Decision{Act: Escalate, Code: "policy-ambiguous", Reason: "the counter-offer has another subject, type or schema than our offer"}
	case refused.by(Accept, session.AuthorityExceeded):
		d = Decision{Act: Escalate, Code: "authority-limit", Reason: "the policy accepts it, and the agent's authority does not"}
	}
	d = a.within(view, turn.Reference, side, s, d, refused)
	if matched {
		return d.Act, assessed(turn, bodyOf(turn, a.Policy, d), d), nil
	}
	if d, err = a.modelled(ctx, s, d); err != nil {
		return "", nil, err
	}
	return d.Act, bodyOf(turn, a.Policy, d), nil
}

// within keeps to what a human has decided, and to what was refused.
func (a *Agent) within(view *api.SessionView, id string, side performatives.Agent, s Situation, d Decision, refused refusals) Decision {
	d = a.ruled(view, id, side, s, d)
	if d.Act == Accept && refused.by(Accept, session.AuthorityExceeded) && refused.byRuling() { // what a human has approved is less
		d = a.denied(s)
	}
	switch {
	case d.Act == Counter && refused.by(Counter, session.AuthorityExceeded):
		d = Decision{Act: Reject, Reason: "no mandate for other terms"}
	case d.Act == Escalate && refused.by(Escalate, session.Unauthorized):
		d = Decision{Act: Reject, Reason: "no mandate for these terms, and nobody to ask"}
	}
	return d
}

// Another reports whether a counter-offer is of something else than the offer of a side that it replaces.
func Another(view *api.SessionView, offer *api.OfferView, side performatives.Agent) bool {
	return slices.ContainsFunc(view.Proposals, func(o api.OfferView) bool {
		return o.Proposal == offer.Supersedes && o.From == side && (o.Subject != offer.Subject || o.Type != offer.Type || o.Schema != "" && o.Schema != offer.Schema)
	})
}

// answered reports whether a side has accepted or rejected a proposal of convergent/1, in which others have yet to speak.
func answered(view *api.SessionView, id string, side performatives.Agent) bool {
	type rejection struct {
		Agent    performatives.Agent `json:"agentId"`
		Proposal string              `json:"proposalId"`
	}
	var mode struct {
		Projection struct {
			Accepts    map[performatives.Agent]string `json:"accepts"`
			Rejections []rejection                    `json:"rejections"`
			Terminal   []rejection                    `json:"terminalRejections"`
		} `json:"projection"`
	}
	if json.Unmarshal(view.ModePart, &mode) != nil {
		return false
	}
	p := mode.Projection
	return p.Accepts[side] == id || slices.Contains(append(p.Rejections, p.Terminal...), rejection{side, id})
}

// commits reports whether something is a commitment of another than a side.
func commits(view *api.SessionView, id string, side performatives.Agent) bool {
	return slices.ContainsFunc(view.Commitments, func(c api.OfferView) bool { return c.Commitment == id && c.From != side })
}

// offerOf finds an offer, and counts those of a side.
func offerOf(view *api.SessionView, id string, side performatives.Agent) (offer *api.OfferView, ours int) {
	for i, o := range view.Proposals {
		if o.From == side {
			ours++
		}
		if o.Proposal == id {
			offer = &view.Proposals[i]
		}
	}
	return offer, ours
}

// answersOf answers what was asked about our offer: what it says there.
func answersOf(offer *api.OfferView) (string, map[string]any, error) {
	var terms map[string]any
	if err := json.Unmarshal(offer.Terms, &terms); err != nil {
		return "", nil, err
	}
	var answers []map[string]any
	for _, field := range offer.Pending {
		value, has := terms[strings.TrimPrefix(field, "terms.")]
		if !has {
			value = "as offered"
		}
		answers = append(answers, map[string]any{"field": field, "answer": value})
	}
	return "INFORM", map[string]any{"type": performatives.Fact, "data": map[string]any{"referenceId": offer.Proposal, "answers": answers}}, nil
}

// situation is how the negotiation stands.
func situation(turn api.Turn, offer *api.OfferView, side performatives.Agent, ours, rounds int) (s Situation, err error) {
	if offer != nil && offer.From != side {
		if offer.Truncated {
			return s, errors.New("the offer is too long to judge")
		}
		if err := json.Unmarshal(offer.Terms, &s.Offer); err != nil {
			return s, err
		}
		if s.Offer == nil {
			s.Offer = map[string]any{}
		}
	}
	s.Time, s.Last = float64(ours)/float64(rounds), ours >= rounds
	if limit := turn.Turn.Cap; limit > 1 {
		s.Time, s.Last = float64(turn.Turn.Number)/float64(limit-1), turn.Turn.Number >= limit-1
	}
	return s, nil
}

// ruled keeps to what a human has decided about the offer.
func (a *Agent) ruled(view *api.SessionView, id string, side performatives.Agent, s Situation, d Decision) Decision {
	e := view.Escalation
	if d.Act != Escalate || e == nil || e.Reference != id || e.OnBehalfOf != side || e.Status == "open" {
		return d
	}
	if e.Status == performatives.Approved || e.Status == performatives.Modified {
		return Decision{Act: Accept, Reason: "a human has approved it"}
	}
	return a.denied(s)
}

// denied is what to say to an offer that a human has not approved.
func (a *Agent) denied(s Situation) Decision {
	if s.Last || len(a.Policy.Issues) == 0 {
		return Decision{Act: Reject, Reason: "a human has not approved it"}
	}
	return Decision{Act: Counter, Terms: a.Policy.offer(nil, a.Policy.target(s.Time)), Reason: "a human has not approved it"}
}

// assessed adds to a body what bilateral/1 wants of a turn.
func assessed(turn api.Turn, body map[string]any, d Decision) map[string]any {
	if turn.Mode == bilateral && d.assessment.Reasoning != "" {
		body["assessment"] = d.assessment
	}
	return body
}

// Modes that a negotiator treats in their own way.
const (
	bilateral  = "bilateral/1" // turns carry assessments
	convergent = "convergent/1"
)

func rejection(turn api.Turn, why string) map[string]any {
	return map[string]any{"referenceId": turn.Reference, "code": "policy_violation", "reason": why, "retryable": false}
}

// bodyOf is the body of an act.
func bodyOf(turn api.Turn, p *Policy, d Decision) map[string]any {
	id := fmt.Sprintf("offer-%d", turn.View.Head.Next.Sequence)
	switch d.Act {
	case Propose:
		return map[string]any{"proposalId": id, "type": p.Type, "subject": p.Subject, "terms": d.Terms, "reason": d.Reason}
	case Counter:
		body := map[string]any{"proposalId": id, "referenceId": turn.Reference, "terms": d.Terms, "reason": d.Reason}
		if offer, _ := offerOf(turn.View, turn.Reference, ""); offer != nil { // else it takes on the subject of what it answers
			for _, o := range turn.View.Proposals {
				if o.Proposal == offer.Supersedes && (o.Subject != offer.Subject || o.Type != offer.Type) {
					body["subject"], body["type"] = o.Subject, o.Type
				}
			}
		}
		return body
	case Escalate:
		return map[string]any{
			"reason": d.Code, "urgency": "medium", "context": map[string]string{"why": d.Reason}, "referenceId": turn.Reference,
		}
	case Reject:
		return rejection(turn, d.Reason)
	default:
		return map[string]any{"referenceId": turn.Reference, "reason": d.Reason}
	}
}
