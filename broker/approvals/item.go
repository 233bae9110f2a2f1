package approvals

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/api/fit"
	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

const statusOpen = "open"

// item is an approval: an escalation with what is at stake in the session as it is now, and what
// humans have done about it.
func (a *Approvals) item(s *session.State, of *escalation.Item, at time.Time) api.EscalationItem {
	view := api.ViewSession(s, at)
	view.Escalation = api.ViewEscalation(of)
	now := a.cases.cached(of.ID)
	stake := atStake(&view)
	if o, ok := s.Offer(of.Offer); ok && stake != nil && stake.Commitment == o.ID && of.Terms == "" {
		shown := *stake
		shown.Terms = o.CommitmentTerms()
		stake = &shown
	}
	item := api.EscalationItem{
		EscalationView: *view.Escalation, Session: s.ID, Purpose: view.Purpose, Proposal: stake,
		Previous: previous(&view, stake), Counterparties: counterparties(&view), Head: &view.Head, CCC: view.CCC, Publish: view.Publish, Arbiter: view.Arbiter,
		Route: routeOf(of, now), Revision: now.Revision + uint64(len(of.Votes)),
		Case: api.Case{
			Claim: now.Claim, Assignee: now.Assignee, Comments: now.Comments, Views: len(now.Views), Actions: now.Actions,
		},
		Unsealed: now.Unsealed, Delegates: delegates(s, of.Org, at),
	}
	asOf(&item, at)
	bound(&item)
	return item
}

// delegates are the humans of an organisation who hold a delegation.
func delegates(s *session.State, org performatives.Organisation, at time.Time) (all []performatives.Agent) {
	for _, a := range s.Participants() {
		if a.IsHuman() && a.Organisation() == org && s.Delegated(a, at) {
			all = append(all, a)
		}
	}
	return all
}

// bound bounds an approval, without its transcript. Of the counterparties, those of its own organisation
// come first: they may not decide.
func bound(item *api.EscalationItem) {
	if fit.Size(item) > api.MaxItemBytes {
		ours := func(p performatives.Agent) bool { return p.Organisation() == item.Organisation }
		item.Counterparties = slices.Clone(item.Counterparties)
		slices.SortStableFunc(item.Counterparties, func(a, b performatives.Agent) int {
			switch {
			case ours(a) == ours(b):
				return 0
			case ours(a):
				return -1
			}
			return 1
		})
		fit.To(item, api.MaxItemBytes)
	}
}

// readItem reads an approval as its subject has it, without the transcript.
func readItem(data []byte) (*api.EscalationItem, error) {
	item, err := api.ReadEscalationItem(data)
	if err != nil {
		return nil, err
	}
	item.Transcript, item.Next = nil, nil // the session has them
	bound(item)
	return item, nil
}

// routeOf is who is asked.
func routeOf(of *escalation.Item, now escalation.Case) *api.Route {
	on := *of
	on.Route = now.Route(of.Route)
	r := &api.Route{Rule: now.Plan.Rule, Reasons: now.Plan.Reasons, ReasonToDeny: of.Route != nil && of.Route.ReasonToDeny}
	if of.NonMonetary() {
		r.NonMonetary = of.Route.NonMonetary
	}
	for n, level := range on.Levels() {
		view := api.Level{Approvers: level.Approvers, Quorum: level.Quorum, Approved: on.Approved(level), Due: api.Timestamp(level.Due)}
		if n < len(now.Plan.Names) {
			view.Name = now.Plan.Names[n]
		}
		if n < len(now.Plan.Remind) && !now.Plan.Remind[n].IsZero() {
			view.RemindAt = api.Timestamp(now.Plan.Remind[n])
		}
		r.Levels = append(r.Levels, view)
	}
	return r
}

// atStake is the proposal that an escalation names, else the newest open offer of another side: what
// the agent could not decide.
func atStake(v *api.SessionView) *api.OfferView {
	e := v.Escalation
	for i := len(v.Proposals) - 1; i >= 0; i-- {
		p := &v.Proposals[i]
		if e.Reference == p.Proposal || e.Reference == "" && p.Status == "open" && p.From != e.OnBehalfOf {
			return p
		}
	}
	for i := range v.Commitments {
		if e.Reference == v.Commitments[i].Commitment {
			return &v.Commitments[i]
		}
	}
	return nil
}

// previous is the offer that the one at stake countered.
func previous(v *api.SessionView, stake *api.OfferView) *api.OfferView {
	if stake == nil || stake.Supersedes == "" {
		return nil
	}
	i := slices.IndexFunc(v.Proposals, func(p api.OfferView) bool { return p.Proposal == stake.Supersedes })
	if i < 0 {
		return nil
	}
	return &v.Proposals[i]
}

// counterparties are the participants who do not act for the principal concerned: what they wrote is
// their word. Humans who decide for it are on its side.
func counterparties(v *api.SessionView) []performatives.Agent {
	var them []performatives.Agent
	for _, p := range v.Participants {
		side := cmp.Or(p.OnBehalfOf, p.Agent)
		ours := side == v.Escalation.OnBehalfOf || p.Role == session.Approver.String() && p.Agent.Organisation() == v.Escalation.Organisation
		if !ours {
			them = append(them, p.Agent)
		}
	}
	return them
}

// asOf makes an approval what it is at a time: which level is asked and until when, whether the claim
// holds, and the view hash that a decision on it has to repeat.
func asOf(item *api.EscalationItem, at time.Time) {
	if item.Route == nil {
		return
	}
	route := *item.Route
	now := api.Timestamp(at)
	for route.Level = 0; route.Level < len(route.Levels)-1 && route.Levels[route.Level].Due <= now; {
		route.Level++
	}
	item.Due = route.Levels[route.Level].Due
	if c := item.Case.Claim; c != nil && !at.Before(c.Until) {
		item.Case.Claim = nil
	}
	item.Route = &route
	item.ViewHash = viewHash(item)
}

// viewHash is of what matters to a decision: the question, how far the conversation and the votes
// are, who is asked, and what colleagues said. While people confirm an agreement, the conversation
// moves on only by what the other organisation decides, which matters to nobody else.
func viewHash(item *api.EscalationItem) performatives.Hash {
	var head performatives.Hash
	if item.Reason != performatives.Confirmation {
		head = item.Head.Hash
	}
	data, err := json.Marshal(struct {
		ID       escalation.ID      `json:"escalationId"`
		Status   string             `json:"status"`
		Head     performatives.Hash `json:"head"`
		Due      string             `json:"due"`
		Votes    int                `json:"votes"`
		Revision uint64             `json:"revision"`
	}{item.ID, item.Status, head, item.Due, len(item.Votes), item.Revision})
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(data)
	return performatives.Hash("sha256:" + hex.EncodeToString(sum[:]))
}

// levelAsking is the first level of an approval's route that asks a human.
func levelAsking(item *api.EscalationItem, human performatives.Agent) (level int, asked bool) {
	level = slices.IndexFunc(item.Route.Levels, func(l api.Level) bool {
		return len(l.Approvers) == 0 || slices.Contains(l.Approvers, human)
	})
	return level, level >= 0
}

// maxDetailBytes are for what an approval has in detail: what is left of a page is for its transcript.
const maxDetailBytes = 448 << 10

// addTranscript adds as much of the transcript's beginning as one message holds; the rest is a part.
func addTranscript(item *api.EscalationItem, messages api.Messages) {
	left := api.MaxPageBytes - fit.Size(item)
	item.Next = messages.Next
	for n, m := range messages.Messages {
		if left -= len(m) + 1; left < 0 {
			next := uint64(n)
			messages.Messages, item.Next = messages.Messages[:n], &next
			break
		}
	}
	item.Transcript = messages.Messages
	if left -= fit.Size(messages.Sealed); left >= 0 { // else paging has them
		item.Opens = messages.Sealed
	}
}
