package session_test

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/schemas"
	"github.com/parley-asp/parley/session"
)

// moves are those of the sender before it says something.
func (s *stage) moves(m *performatives.Message) []session.Move {
	e := session.Event{At: s.now, Route: s.event(m).Route}
	e.Known.Add(s.registry[m.Sender])
	return s.state.Moves(m.Sender, e)
}

// keepsTo asserts that what was accepted was a move, and that what was refused for the state it
// met was none: whatever is said in conversations, by anybody, in all modes (GATEWAYS.md G9).
func (s *stage) keepsTo(moves []session.Move, m *performatives.Message, err error) {
	s.t.Helper()
	about, optional, rules, named, amends := m.Body.Refers(), false, false, "", false
	switch body := m.Body.(type) {
	case *performatives.InformBody:
		ruling, is := body.Ruling()
		if about, optional, rules = body.Query(), !is, is; rules {
			about = ruling.EscalationID
		} else if of, names := carriedOut(body); names != "" && (s.state.Executing() || !plain[body.Kind()]) {
			about, optional, named = of, false, names
			_, rules = body.Decides()
		}
	case *performatives.ProposeBody:
		amends = body.Type == performatives.Amendment // of what is still due

	case *performatives.EscalateBody, *performatives.DelegateBody, *performatives.ObserveBody:
		optional = true // of what a reference names, or of nothing
	}
	is := func(of string) bool {
		return slices.ContainsFunc(moves, func(move session.Move) bool {
			return move.Act == m.Performative && move.Reference == of && (move.To == "" || move.To == m.Recipient) &&
				strings.Contains(string(move.Body), `"`+performatives.Resolution+`"`) == rules && // a fact about an escalation decides nothing
				strings.Contains(string(move.Body), named)
		})
	}
	if refused, is := errors.AsType[*session.Refusal](err); is && s.state.Phase != session.Idle {
		s.teaches(refused, moves)
	}
	switch {
	case err == nil && s.state.Phase != session.Idle && !is(about) && (!optional || !is("")):
		s.t.Errorf("%s %s of %s was accepted while %s and was none of its moves: %v", m.Performative, m.RawBody, m.Sender, s.state.Phase, brief(moves))
	case err != nil && ofState[refusal(err)] && is(about) && !opensAgain(m) && !amends:
		s.t.Errorf("%s %s of %s was a move while %s, and was refused: %v", m.Performative, m.RawBody, m.Sender, s.state.Phase, err)
	}
}

// plain are the types of an INFORM that mean nothing more where nothing is carried out.
var plain = map[string]bool{performatives.Result: true, performatives.Progress: true}

// carriedOut is the commitment or the dispute that an INFORM is about, and what a move of it names.
func carriedOut(b *performatives.InformBody) (of, names string) {
	result, _ := b.Delivery()
	progress, _ := b.Progress()
	waiver, _ := b.Waiver()
	reply, _ := b.Reply()
	decision, _ := b.Decides()
	_, files := b.Dispute()
	switch {
	case files:
		return "", `"type":"dispute"`
	case cmp.Or(reply.DisputeID, decision.DisputeID) != "":
		return cmp.Or(reply.DisputeID, decision.DisputeID), cmp.Or(reply.Position, decision.Decision)
	}
	if of = cmp.Or(result.CommitmentID, progress.CommitmentID, waiver.CommitmentID); of == "" {
		return "", ""
	}
	return fmt.Sprintf("%s/%s", of, cmp.Or(result.Obligation, progress.Obligation, waiver.Obligation)), fmt.Sprintf(`"type":%q`, b.Kind())
}

// teaches asserts that a refusal names as allowed the performatives of the sender's moves.
func (s *stage) teaches(refused *session.Refusal, moves []session.Move) {
	s.t.Helper()
	details, _ := refused.Details.(map[string]any)
	says, lists := details["allowed"].([]string)
	if _, over := s.state.Passed(s.now); !lists || over {
		return
	}
	var acts []performatives.Performative
	for _, m := range moves {
		acts = append(acts, m.Act)
	}
	slices.Sort(acts)
	want := []string{}
	for _, act := range slices.Compact(acts) {
		want = append(want, act.String())
	}
	if !slices.Equal(says, want) {
		s.t.Errorf("a refusal while %s says that %v are allowed; the moves are %v", s.state.Phase, says, brief(moves))
	}
}

// ofState are the refusals that nothing which is filled in would have avoided.
var ofState = map[session.Code]bool{
	session.WrongState: true, session.WrongTurn: true, session.OwnProposal: true, session.ProposalNotOpen: true,
	session.ClarificationPending: true, session.SessionEscalated: true, session.EscalationResolved: true,
}

// opensAgain reports whether somebody proposes a session in a session.
func opensAgain(m *performatives.Message) bool {
	body, proposes := m.Body.(*performatives.ProposeBody)
	return proposes && body.Type == performatives.SessionInvitation
}

func brief(moves []session.Move) (all []string) {
	for _, m := range moves {
		all = append(all, m.Act.String()+" "+m.Reference)
	}
	return all
}

// fits asserts that a move with nothing to fill in has a body that its schema takes.
func (s *stage) fits(moves []session.Move) {
	s.t.Helper()
	for _, move := range moves {
		if len(move.Fill) > 0 {
			continue
		}
		if faults := schemas.Validate(move.Act, move.Body); len(faults) > 0 {
			s.t.Errorf("%s %s: %v", move.Act, move.Body, faults)
		}
	}
}
