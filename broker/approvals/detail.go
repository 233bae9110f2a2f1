package approvals

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/api/fit"
	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
)

// Bytes of the parts of an approval in detail.
const (
	partBytes  = 128 << 10
	entryBytes = 8 << 10
)

// detail adds what helps to decide: the terms at stake, and for the humans of the organisation who can
// decide, what happens by itself, and what colleagues said. What does not fit one message is cut.
func (a *Approvals) detail(ctx context.Context, item *api.EscalationItem) error {
	if err := a.compare(ctx, item); err != nil {
		return err
	}
	var omitted int
	if item.Changes, omitted = mostTelling(item); omitted > 0 {
		omit(item, api.PartChanges, omitted)
	}
	if item.Route != nil {
		item.Approvers = a.approvers(item)
		if err := a.ifUnanswered(ctx, item); err != nil {
			return err
		}
		comments, err := a.comments(ctx, item)
		if err != nil {
			return err
		}
		if item.Comments, omitted = newest(comments); omitted > 0 {
			omit(item, api.PartComments, omitted)
		}
	}
	fit.To(item, maxDetailBytes)
	return nil
}

func omit(item *api.EscalationItem, part string, n int) {
	if item.Omitted == nil {
		item.Omitted = map[string]int{}
	}
	item.Omitted[part], item.Truncated = n, true
}

// mostTelling are the changes that have room, in their order: first the one at stake and those that
// change something, then the others.
func mostTelling(item *api.EscalationItem) (kept []api.Change, omitted int) {
	if fit.Size(item.Changes) <= partBytes {
		return item.Changes, 0
	}
	keep, size := make([]bool, len(item.Changes)), 0
	short := slices.Clone(item.Changes)
	for _, telling := range []bool{true, false} {
		for n := range short {
			c := &short[n]
			if telling != (c.Kind != api.Same || item.Amount != nil && item.Amount.Path == c.Path) {
				continue
			}
			fit.To(c, entryBytes)
			if size += fit.Size(*c) + 1; size > partBytes {
				break
			}
			keep[n] = true
		}
	}
	for n, c := range short {
		if keep[n] {
			kept = append(kept, c)
		}
	}
	item.Truncated = true
	return kept, len(short) - len(kept)
}

// newest are the last comments that have room.
func newest(comments []api.CaseAction) (kept []api.CaseAction, omitted int) {
	size := 0
	for n := len(comments) - 1; n >= 0; n-- {
		if size += fit.Size(comments[n]) + 1; size > partBytes {
			return comments[n+1:], n + 1
		}
	}
	return comments, 0
}

// comments are what colleagues said, oldest first; outsiders see none.
func (a *Approvals) comments(ctx context.Context, item *api.EscalationItem) (all []api.CaseAction, err error) {
	if item.Route == nil || item.Case.Comments == 0 && item.Case.Assignee == "" && item.Revision == uint64(len(item.Votes)) {
		return nil, nil // nobody has commented on it or transferred it
	}
	for from, next := uint64(0), new(uint64); next != nil; {
		var actions []escalation.Action
		if actions, next, err = a.cases.history(ctx, item.Organisation, item.ID, from); err != nil {
			return nil, err
		}
		if next != nil {
			from = *next
		}
		for _, e := range actions {
			if e.Kind == escalation.Commented || e.Kind == escalation.Transferred && e.Text != "" {
				all = append(all, e)
			}
		}
	}
	return all, nil
}

// approvers are the humans on the route, in the order in which they are asked.
func (a *Approvals) approvers(item *api.EscalationItem) []api.Approver {
	var all []api.Approver
	for _, member := range a.o.Registry.Deciders(item.Organisation) {
		level, asked := levelAsking(item, member.Agent)
		if !asked || slices.Contains(item.Delegates, member.Agent) {
			continue
		}
		card, _ := a.o.Registry.Card(member.Agent)
		all = append(all, api.Approver{
			Agent: member.Agent, Name: card.Name, Level: level, Turn: level <= item.Route.Level, Limits: member.Limits,
			Enough:  !member.Limited || item.Amount != nil && within(member, item.Amount) || item.Route.NonMonetary != "",
			Trigger: member.Agent == item.By, Away: awayNow(card, a.o.Now()),
			Voted: slices.ContainsFunc(item.Votes, func(v api.VoteView) bool { return v.By == member.Agent }),
		})
	}
	slices.SortFunc(all, func(x, y api.Approver) int {
		return cmp.Or(cmp.Compare(x.Level, y.Level), cmp.Compare(x.Agent, y.Agent))
	})
	return all
}

// ifUnanswered words what the clock does next.
func (a *Approvals) ifUnanswered(ctx context.Context, item *api.EscalationItem) error {
	if item.Status != statusOpen {
		return nil
	}
	if next := item.Route.Level + 1; next < len(item.Route.Levels) {
		level := item.Route.Levels[next]
		item.IfUnanswered = &api.IfUnanswered{At: item.Due, Then: fmt.Sprintf("%s is asked, too: %s", levelName(level, next), namesOf(level.Approvers))}
		return nil
	}
	item.IfUnanswered = &api.IfUnanswered{At: item.Deadline}
	switch then := &item.IfUnanswered.Then; {
	case item.Dispute != "":
		*then = "the dispute is unresolved, and nothing is reopened; until then it pauses nothing"
	case item.Reason == performatives.Delivered:
		*then = "the delivery waits for an answer again, and counts as accepted if none comes in time"
	default:
		lapses, err := a.o.Lapses(ctx, item.Session, item.ID)
		if *then = "the session fails, since no human decided in time. The other side is told that, and nothing more."; lapses {
			*then = "nothing is decided, and the session goes on, since something in it is due or disputed"
		}
		return err
	}
	return nil
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

// compare puts all the terms at stake beside those of the offer before, term by term, with what the
// terms schema calls them.
func (a *Approvals) compare(ctx context.Context, item *api.EscalationItem) error {
	if item.Proposal == nil {
		return nil
	}
	if schema, ok := a.o.Schema(item.Proposal.Schema); ok && item.Proposal.Schema != "" {
		item.TermsSchema = schema.Schema
		item.Labels = api.Labels(schema.Schema)
	}
	now, err := a.termsOf(ctx, item.Session, item.Proposal)
	if err != nil {
		return err
	}
	before, err := a.termsOf(ctx, item.Session, item.Previous)
	if err != nil {
		return err
	}
	item.Changes = api.Compare(now, before, item.Labels)
	return nil
}

// termsOf are an offer's terms, all of them also where the approval has a part.
func (a *Approvals) termsOf(ctx context.Context, id performatives.SessionID, o *api.OfferView) (jsontext.Value, error) {
	switch {
	case o == nil:
		return nil, nil
	case !o.Truncated:
		return o.Terms, nil
	}
	return a.o.Terms(ctx, id, cmp.Or(o.Proposal, o.Commitment))
}
