package approvals

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
)

// detail adds what is for the humans of the organisation: who can decide, what happens by itself, and
// what colleagues said.
func (a *Approvals) detail(ctx context.Context, item *api.EscalationItem) error {
	if item.Route == nil {
		return nil
	}
	item.Approvers = a.approvers(item)
	item.IfUnanswered = ifUnanswered(item)
	if item.Case.Comments == 0 && item.Case.Assignee == "" && item.Revision == uint64(len(item.Votes)) {
		return nil // nobody has commented on it or transferred it
	}
	actions, err := a.cases.history(ctx, item.Organisation, item.ID)
	if err != nil {
		return err
	}
	for _, e := range actions {
		if e.Kind == escalation.Commented || e.Kind == escalation.Transferred && e.Text != "" {
			item.Comments = append(item.Comments, e)
		}
	}
	return nil
}

// approvers are the humans on the route, in the order in which they are asked.
func (a *Approvals) approvers(item *api.EscalationItem) []api.Approver {
	var all []api.Approver
	for _, member := range a.o.Registry.Deciders(item.Organisation) {
		level, asked := levelAsking(item, member.Agent)
		if !asked {
			continue
		}
		card, _ := a.o.Registry.Card(member.Agent)
		all = append(all, api.Approver{
			Agent: member.Agent, Name: card.Name, Level: level, Turn: level <= item.Route.Level, Limits: member.Limits,
			Enough:  !member.Limited || item.Amount != nil && within(member, item.Amount) || item.Route.NonMonetary != "",
			Trigger: member.Agent == item.By,
			Voted:   slices.ContainsFunc(item.Votes, func(v api.VoteView) bool { return v.By == member.Agent }),
		})
	}
	slices.SortFunc(all, func(x, y api.Approver) int {
		return cmp.Or(cmp.Compare(x.Level, y.Level), cmp.Compare(x.Agent, y.Agent))
	})
	return all
}

// ifUnanswered words what the clock does next.
func ifUnanswered(item *api.EscalationItem) *api.IfUnanswered {
	if item.Status != statusOpen {
		return nil
	}
	if next := item.Route.Level + 1; next < len(item.Route.Levels) {
		level := item.Route.Levels[next]
		return &api.IfUnanswered{At: item.Due, Then: fmt.Sprintf("%s is asked, too: %s", levelName(level, next), namesOf(level.Approvers))}
	}
	return &api.IfUnanswered{At: item.Deadline, Then: "the session ends: FAILED, escalation_expired. The other side is told that no decision was made, and nothing more."}
}

func levelName(l api.Level, n int) string {
	if l.Name != "" {
		return l.Name
	}
	return fmt.Sprintf("level %d", n+1)
}

func namesOf(approvers []performatives.Agent) string {
	if len(approvers) == 0 {
		return "every human who may decide"
	}
	names := make([]string, len(approvers))
	for n, a := range approvers {
		names[n] = string(a)
	}
	return strings.Join(names, ", ")
}

// compare puts the terms at stake beside those of the offer before, term by term, with what the terms
// schema calls them.
func (a *Approvals) compare(item *api.EscalationItem) {
	if item.Proposal == nil {
		return
	}
	if schema, ok := a.o.Schema(item.Proposal.Schema); ok && item.Proposal.Schema != "" {
		item.TermsSchema = schema.Schema
		item.Labels = api.Labels(schema.Schema)
	}
	var before jsontext.Value
	if item.Previous != nil {
		before = item.Previous.Terms
	}
	item.Changes = api.Compare(item.Proposal.Terms, before, item.Labels)
}
