package session

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/delegation"
	"github.com/parley-asp/parley/performatives"
)

// A Move is an act that a party may send now (GATEWAYS.md G9). Its body is ready but for what
// Fill names: dotted paths of members that the sender has yet to say.
type Move struct {
	Act       performatives.Performative
	Reference string              // what it answers, asks about, carries out or takes back; "" is nothing
	To        performatives.Agent // its recipient, where it is not allowed without one
	Body      jsontext.Value
	Fill      []string
	OneOf     map[string][]jsontext.Value // by path: what a member that Fill names can be, where that is a list
}

// Moves lists what a party may send now: the drafts that pass Step's own checks. The event is
// one without a message: its time, the party as the registry knows it, and the route of the open
// escalation where it has been transferred. Of very many offers, the newest are looked at.
func (s *State) Moves(you performatives.Agent, e Event) (all []Move) {
	s.eachMove(you, e, nil, func(m Move) { all = append(all, m) })
	return all
}

// Acts lists the performatives of the moves that are not refused, which takes less than to list
// the moves.
func (s *State) Acts(you performatives.Agent, e Event, refused func(Move) bool) []performatives.Performative {
	found := map[performatives.Performative]bool{}
	s.eachMove(you, e, found, func(m Move) {
		if refused == nil || !refused(m) {
			found[m.Act] = true
		}
	})
	return slices.Sorted(maps.Keys(found))
}

// eachMove calls do with each move whose performative is not in found yet.
func (s *State) eachMove(you performatives.Agent, e Event, found map[performatives.Performative]bool, do func(Move)) {
	if s.Phase == Idle || s.Phase.Over() {
		return
	}
	e.Known.Add(performatives.Member{Agent: anybody, Kind: performatives.KindPersonal, Authority: performatives.AuthorityPrincipal})
	has := map[string]bool{} // acts of which a simpler draft is allowed
	for _, d := range s.drafts(you, s.clock(e.At)) {
		key := fmt.Sprint(d.act, " ", d.reference, " ", d.kind)
		for _, to := range s.recipients(&d, you) {
			if !found[d.act] && !has[key] && s.allows(&d, you, to, e) {
				has[key] = to == ""
				do(d.move(to))
			}
		}
	}
}

// recipients are to whom a draft might be allowed: to all, else, beside an agent that does not
// negotiate, to one of the principals.
func (s *State) recipients(d *draft, you performatives.Agent) []performatives.Agent {
	to := []performatives.Agent{""}
	if len(s.limited) == 0 || !asks[d.act] {
		return to
	}
	for _, a := range s.order {
		if p, _ := s.parties.Get(a); p.Role <= Invitee && !p.minimal() && a != you && len(to) <= mostRecipients {
			to = append(to, a)
		}
	}
	return to
}

// Draft reports whether the act is a draft, to find out whether it would be allowed: what its
// sender fills in, such as a signature, is not there yet.
func (t *Command) Draft() bool { return t.draft != nil }

// A draft is an act that might be allowed.
type draft struct {
	act       performatives.Performative
	reference string
	kind      string   // tells drafts with one act and reference apart
	body      members  // what is ready
	fill      members  // a sample of each member that the sender says
	paths     []string // of what the sender says, where that is within members
	oneOf     map[string][]jsontext.Value
	free      bool // the sender says the terms, so rulings bound what may be said, not whether
}

type members map[string]any

const (
	anybody = performatives.Agent("agent://any.example/agent")                // whom a draft delegates to
	draftID = performatives.MessageID("00000000-0000-7000-8000-000000000000") // which no message has
	sample  = "…"

	mostMoved      = 100 // offers, questions and queries of which drafts are made
	mostRecipients = 8
)

func (d *draft) move(to performatives.Agent) Move {
	body, _ := json.Marshal(d.body, json.Deterministic(true))
	if d.paths == nil {
		d.paths = slices.Sorted(maps.Keys(d.fill))
	}
	return Move{Act: d.act, Reference: d.reference, To: to, Body: body, Fill: d.paths, OneOf: d.oneOf}
}

// allows reports whether a draft, filled with samples, passes Step's checks.
func (s *State) allows(d *draft, you, to performatives.Agent, e Event) bool {
	body, err := json.Marshal(with(d.body, d.fill), json.Deterministic(true))
	if err != nil {
		return false
	}
	e.Policy, e.Message = s.Policy, &performatives.Message{
		ID: draftID, Session: s.ID, Timestamp: e.At, Sender: you, Recipient: to, Performative: d.act, RawBody: body,
		Link: &performatives.Link{Sequence: s.Next, PreviousHash: s.Head},
	}
	if e.Message.DecodeBody() != nil {
		return false
	}
	t := newTurn(*s, e)
	t.draft = d
	return t.judge() == nil
}

// drafts are all acts that might be allowed to somebody: of two that differ in what they carry,
// the simpler one first.
func (s *State) drafts(you performatives.Agent, now time.Time) []draft {
	all := []draft{{
		act: performatives.Propose, body: members{"proposalId": s.fresh("offer")}, free: true,
		fill: members{"type": "service-agreement", "subject": sample, "terms": members{"offer": sample}},
	}}
	for _, o := range s.movable(now) {
		all = append(all, s.about(o, you)...)
	}
	all = append(all, s.commitments(members{}, nil, you)...)
	all = append(all, s.ofQuestions()...)
	all = append(all, s.ofDelegations(you)...)
	all = append(all, s.rulings()...)
	all = append(all, s.ofExecution(you)...)
	all = append(all,
		draft{act: performatives.Inform, body: members{"type": performatives.Fact}, fill: members{"data": members{"note": sample}}},
		draft{act: performatives.Query, body: members{"queryId": s.fresh("query")}, fill: members{"queryType": sample, "subject": sample}},
		draft{act: performatives.Observe, fill: members{"subject": sample}},
		draft{
			act: performatives.Escalate, fill: members{"reason": "confidence-low", "urgency": "low", "context": sample},
			oneOf: map[string][]jsontext.Value{
				"reason":  texts("authority-limit", "confidence-low", "policy-ambiguous", "adversarial-detected"),
				"urgency": texts("low", "medium", "high", "critical"),
			},
		},
		draft{act: performatives.Close},
	)
	for i, d := range all {
		if needs := s.mode().Needs; needs != nil {
			all[i].fill = with(d.fill, needs(s, d.act, d.reference))
		}
	}
	return all
}

// movable are the offers that acts may refer to, the newest first.
func (s *State) movable(now time.Time) []*Offer {
	var all []*Offer
	for _, o := range s.live.All() {
		if o.StatusAt(now) == Open {
			all = append(all, o)
		}
	}
	for _, o := range s.past.All() {
		if o.Status == Accepted && o.Kind != anInvitation {
			all = append(all, o)
		}
	}
	slices.SortFunc(all, func(a, b *Offer) int { return cmp.Compare(b.Sequence, a.Sequence) })
	return all[:min(len(all), mostMoved)]
}

// about drafts what may be said of an offer.
func (s *State) about(o *Offer, you performatives.Agent) []draft {
	refers, field, terms := members{"referenceId": o.ID}, "proposalId", any(members{"offer": sample})
	if o.IsCommitment() {
		field = "commitmentId"
	}
	counter := with(refers, members{"proposalId": s.fresh("offer")})
	if len(o.Terms) > 0 {
		counter["terms"], terms = o.Terms, o.Terms
	}
	ask := draft{act: performatives.Clarify, reference: o.ID, body: refers, fill: members{"questions": []members{{"field": field, "question": sample}}}}
	if o.Status == Accepted {
		return append(s.commitments(refers, o, you), ask)
	}
	all := []draft{
		{act: performatives.Accept, reference: o.ID, body: refers},
		{act: performatives.Counter, reference: o.ID, body: counter, fill: members{"terms": terms}, free: true},
		rejection(o.ID),
		ask,
		{act: performatives.Withdraw, reference: o.ID, body: refers},
	}
	if o.IsProposal() {
		all = append(all, s.commitments(refers, o, you)...)
	}
	return all
}

func rejection(id string) draft {
	return draft{
		act: performatives.Reject, reference: id, body: members{"referenceId": id, "code": "unspecified", "retryable": false},
		fill: members{"reason": sample},
	}
}

// commitments drafts a COMMIT about a proposal, or none: as it is, one that only says the outcome, and one with
// obligations, besides those of the proposal. Where nobody accepts it, they are its sender's.
func (s *State) commitments(body members, about *Offer, you performatives.Agent) []draft {
	body = with(body, members{"commitmentId": s.fresh("commitment")})
	reference, party := "", s.inviter
	var agreed struct {
		Obligations []any `json:"obligations"`
	}
	if about != nil {
		reference = about.ID
		if json.Unmarshal(about.Terms, &agreed) == nil && len(agreed.Obligations) > 0 {
			if _, err := obligationsIn(about.Terms); err != nil {
				agreed.Obligations = nil // they could not be carried out
			}
		}
	}
	if s.Mode != nil && !s.Mode.Commits {
		party = you
	}
	return []draft{
		{act: performatives.Commit, reference: reference, body: body},
		{act: performatives.Commit, reference: reference, body: with(body, members{"outcome": "rejected"})},
		{
			act: performatives.Commit, reference: reference, body: body,
			fill:  members{"terms": members{"obligations": append(agreed.Obligations, members{"party": party, "action": sample})}},
			paths: []string{"terms.obligations"},
		},
	}
}

// ofQuestions drafts answers to questions and queries, and what takes a question back.
func (s *State) ofQuestions() []draft {
	var all []draft
	open := s.OpenQuestions()
	for _, q := range open[max(0, len(open)-mostMoved):] {
		asked, answered, oneOf := []members{}, []members{}, map[string][]jsontext.Value{}
		var paths []string
		for i, field := range q.Open {
			path := fmt.Sprintf("data.answers.%d.answer", i)
			answer := jsontext.Value(`"` + sample + `"`)
			for _, option := range slices.Sorted(maps.Keys(q.options[field])) {
				answer, oneOf[path] = jsontext.Value(option), append(oneOf[path], jsontext.Value(option))
			}
			paths = append(paths, path)
			asked, answered = append(asked, members{"field": field}), append(answered, members{"field": field, "answer": answer})
		}
		all = append(all, draft{
			act: performatives.Inform, reference: q.ID, body: members{"type": performatives.Fact, "data": members{"referenceId": q.ID, "answers": asked}},
			fill: members{"data": members{"referenceId": q.ID, "answers": answered}}, paths: paths, oneOf: oneOf,
		}, draft{act: performatives.Withdraw, reference: q.ID, body: members{"referenceId": q.ID}})
	}
	for id := range s.queries.All() {
		all = append(all, draft{
			act: performatives.Inform, reference: id, body: members{"type": performatives.Result, "data": members{"queryId": id}},
			fill: members{"data": members{"queryId": id, "value": sample}}, paths: []string{"data.value"},
		})
	}
	return all
}

// ofDelegations drafts answers to delegations and the result that the sender owes, what takes one
// back, and new ones.
func (s *State) ofDelegations(you performatives.Agent) []draft {
	var all []draft
	for _, id := range s.grantOrder {
		if g, _ := s.grants.Get(id); g.Status <= delegation.Active {
			refers := members{"referenceId": g.ID}
			all = append(all,
				draft{act: performatives.Accept, reference: string(id), body: refers},
				rejection(string(id)),
				draft{act: performatives.Withdraw, reference: string(id), body: refers},
			)
			if g.To == you && g.Result == 0 && g.Authority != delegation.Full {
				all = append(all, draft{
					act: performatives.Inform, reference: string(id), body: members{"type": performatives.Result}, fill: members{"data": members{"result": sample}},
				})
			}
		}
	}
	levels := texts(delegation.Full.String(), delegation.Limited.String(), delegation.Advisory.String())
	for i, level := range levels { // the widest that the sender may give
		all = append(all, draft{
			act: performatives.Delegate, fill: members{"targetAgent": anybody, "scope": sample, "authority": level},
			oneOf: map[string][]jsontext.Value{"authority": levels[i:]},
		})
	}
	return all
}

// rulings drafts what humans may decide.
func (s *State) rulings() []draft {
	var all []draft
	for _, item := range s.asked {
		if !item.Open() {
			continue
		}
		for _, decision := range []string{"approved", "denied", "guidance", "modified"} {
			data := members{"escalationId": item.ID, "decision": decision}
			d := draft{
				act: performatives.Inform, reference: string(item.ID), kind: decision, body: members{"type": performatives.Resolution, "data": data},
			}
			if decision == "modified" {
				d.fill = members{"data": with(data, members{"authority": members{"maxAmount": 1}})}
				d.paths = []string{"data.authority"}
			}
			all = append(all, d)
		}
	}
	return all
}

func with(a, b members) members {
	all := make(members, len(a)+len(b))
	maps.Copy(all, a)
	maps.Copy(all, b)
	return all
}

func texts(all ...string) (values []jsontext.Value) {
	for _, text := range all {
		values = append(values, jsontext.Value(`"`+text+`"`))
	}
	return values
}

// fresh is an id that nothing in the session has.
func (s *State) fresh(what string) string {
	for n := s.Next; ; n++ {
		if id := fmt.Sprintf("%s-%d", what, n); s.named(id) == nothing {
			return id
		}
	}
}
