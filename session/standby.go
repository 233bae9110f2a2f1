package session

import (
	"fmt"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/performatives"
)

// A standby is an agent of a principal's organisation, named by its card and pinned when it
// joins. It may take a turn of the principal that has waited for parkedMs on the session's
// clock, or for most of the time that the session had left, as a full delegate would, and
// that turn only (GATEWAYS.md G3).

// DefaultParked is how long a turn waits before its standby may take it.
const DefaultParked = 24 * time.Hour

// ParkedTurn is the deadline after which a standby may take a turn. It ends nothing.
const ParkedTurn = "turn_parked"

// parkedMember is the parameter of every mode that says how long a turn waits for its
// principal alone.
const parkedMember = "parkedMs"

// readParked takes parkedMs out of an invitation's policy; the rest is the mode's own.
func (t *Command) readParked(policy jsontext.Value) (jsontext.Value, error) {
	t.opening.parked = 0
	given := map[string]jsontext.Value{}
	if len(policy) == 0 || json.Unmarshal(policy, &given) != nil {
		return policy, nil //nolint:nilerr // the mode refuses what is no object
	}
	raw, has := given[parkedMember]
	if !has {
		return policy, nil
	}
	var ms float64
	longest := float64(LongestDuration.Milliseconds())
	if raw.Kind() != '0' || json.Unmarshal(raw, &ms) != nil || ms != float64(int64(ms)) || ms < 1 || ms > longest {
		return nil, RefuseSchema(Fault{
			Path: "/terms/policy/" + parkedMember, Rule: "range", Message: fmt.Sprintf("policy.parkedMs must be a whole number of 1 to %.0f", longest),
		})
	}
	t.opening.parked = time.Duration(ms) * time.Millisecond
	delete(given, parkedMember)
	return json.Marshal(given, json.Deterministic(true))
}

// Parked is how long a turn waits before a standby may take it.
func (s *State) Parked() time.Duration {
	if s.Agreed != nil && s.Agreed.parked > 0 {
		return s.Agreed.parked
	}
	return time.Duration(s.Policy.ParkedTimeout) * time.Millisecond
}

// parked reports whether a standby may take a turn.
func (s *State) parked(turn Turn, at time.Time) bool {
	return s.Parked() > 0 && !s.clock(at).Before(s.parkedUntil(turn))
}

// parkedUntil is when a standby may take a turn, on the session's clock: once the turn has
// waited for Parked, or for three quarters of the time that the session had left, whichever
// comes first. The rest is the standby's, before the session ends by itself.
func (s *State) parkedUntil(turn Turn) time.Time {
	until := turn.Since.Add(s.Parked())
	if end := s.endsAt(); s.Policy.Format >= 4 {
		if sooner := turn.Since.Add(end.Sub(turn.Since) / 4 * 3); sooner.Before(until) {
			return sooner
		}
	}
	return until
}

// A Waiting turn is one that has a standby.
type Waiting struct {
	Turn
	Standby performatives.Agent
}

// Waiting are the turns that have a standby; overdue are those that it may take now.
func (s *State) Waiting(at time.Time) (all, overdue []Waiting) {
	if s.standbys == 0 || s.Phase.Over() || s.Phase == Escalated {
		return nil, nil
	}
	for _, a := range s.order {
		p, _ := s.parties.Get(a)
		if p.Role != Standby {
			continue
		}
		if turn, waits := s.turnOf(p.StandsFor, at); waits {
			w := Waiting{turn, a}
			all = append(all, w)
			if s.parked(turn, at) {
				overdue = append(overdue, w)
			}
		}
	}
	return all, overdue
}

// StandsInAt is when an agent may take a turn that waits for whom it stands in.
func (s *State) StandsInAt(a performatives.Agent, at time.Time) (due time.Time, later bool) {
	waiting, _ := s.Waiting(at)
	for _, w := range waiting {
		if w.Standby == a {
			return s.wall(s.parkedUntil(w.Turn), at), true
		}
	}
	return due, false
}

// parkedDeadlines are when standbys may take the turns that wait.
func (s *State) parkedDeadlines(all []Deadline, at time.Time) []Deadline {
	waiting, _ := s.Waiting(at)
	for _, w := range waiting {
		all = append(all, Deadline{Code: ParkedTurn, At: s.wall(s.parkedUntil(w.Turn), at), Ref: w.Reference})
	}
	return all
}

// pinStandbys gives the standbys of the principals their part.
func (t *Command) pinStandbys() {
	for _, a := range slices.Clone(t.order) {
		p, _ := t.parties.Get(a)
		m, ok := t.event.Known.Get(p.Standby)
		if _, taken := t.parties.Get(p.Standby); !ok || taken || p.Standby == "" {
			continue
		}
		m.Authority = performatives.AuthorityStandby
		t.enter(Party{Member: m, Role: Standby, StandsFor: a})
		t.standbys++
	}
}

// standby leaves out of a principal's member a standby that cannot be one.
func (t *Command) standby(m performatives.Member) performatives.Member {
	s, ok := t.event.Known.Get(m.Standby)
	if !ok || s.Kind != performatives.KindSystem || s.Agent.Organisation() != m.Agent.Organisation() || t.Before(2) {
		m.Standby = ""
	}
	return m
}

// standsIn holds a standby to the turn that waits.
func (t *Command) standsIn() error {
	turn, waits := t.turnOf(t.Side, t.At)
	switch {
	case !waits:
		return Refuse(AuthorityExceeded, "you are the standby of %s, for whom no turn waits", t.Side)
	case !t.parked(turn, t.At):
		due := stamp(t.wall(t.parkedUntil(turn), t.At))
		return Refuse(AuthorityExceeded, "the turn is its principal's until %s; then you may take it", due).With(map[string]string{"parkedUntil": due})
	case !standbyActs[t.Act]:
		return Refuse(AuthorityExceeded, "a standby takes one turn: it may send PROPOSE, COUNTER, ACCEPT, REJECT, CLARIFY, INFORM and ESCALATE")
	case turn.Reference == "" || t.answersTurn(turn) || t.Act == performatives.Escalate:
		return nil
	}
	return Refuse(AuthorityExceeded, "the turn that waits is about %q; a standby answers that and nothing else", turn.Reference).
		With(map[string]string{"referenceId": turn.Reference})
}

var standbyActs = map[performatives.Performative]bool{
	performatives.Propose: true, performatives.Counter: true, performatives.Accept: true, performatives.Reject: true,
	performatives.Clarify: true, performatives.Inform: true, performatives.Escalate: true,
}

// answersTurn reports whether the act is about what a turn waits for.
func (t *Command) answersTurn(turn Turn) bool {
	if t.Act == performatives.Inform {
		inform, _ := t.Message.Body.(*performatives.InformBody)
		_, queried := t.queries.Get(turn.Reference)
		return slices.ContainsFunc(t.answerings, func(a answering) bool { return a.question.Offer == turn.Reference }) ||
			inform.Query() == turn.Reference && (queried || t.Before(8))
	}
	return t.Offer != nil && t.Offer.ID == turn.Reference
}
