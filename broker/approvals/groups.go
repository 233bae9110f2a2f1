package approvals

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/store"
)

// groupExpiry is how long the consumer of a group stays that the rules do not name any more. A broker
// that was started with other rules by mistake, or before the others, loses no group's position.
const groupExpiry = 24 * time.Hour

// openGroups makes the durable consumers by which groups of approvers follow their organisation's
// escalations with tools of their own. Those of other groups expire: nobody may pull from one, so the
// server finds it inactive.
func (a *Approvals) openGroups(ctx context.Context, rules *escalation.Rules) (err error) {
	named := map[string]bool{}
	rules.Groups(func(org performatives.Organisation, group string, _ []performatives.Agent) {
		if err != nil {
			return
		}
		name := api.GroupConsumer(org, group)
		named[name] = true
		err = a.o.Store.EnsureConsumer(ctx, store.Consumer{
			Stream: api.EscalationsStream, Name: name, Subject: api.EscalationsOf(org), Description: group + " of " + string(org),
		})
	})
	if err != nil {
		return err
	}
	return a.o.Store.ExpireConsumers(ctx, api.EscalationsStream, groupExpiry, func(name string) bool {
		return api.IsGroupConsumer(name) && !named[name]
	})
}

// Groups are the consumers of the groups that a human is in who may decide.
func (a *Approvals) Groups(human performatives.Agent) []string {
	member, known := a.o.Registry.Member(human)
	if !known || member.Authority != performatives.AuthorityDecide {
		return nil
	}
	return groupsOf(a.rules.Load(), human)
}

// SetRules has other rules for new escalations, already checked; nil asks everybody who may decide. It
// returns the humans whose Groups are others than before. After an error, the rules are those before.
func (a *Approvals) SetRules(ctx context.Context, rules *escalation.Rules) (moved []performatives.Agent, err error) {
	if err := a.openGroups(ctx, rules); err != nil {
		return nil, fmt.Errorf("groups of approvers: %w", err)
	}
	before := a.rules.Swap(rules)
	members := map[performatives.Agent]bool{}
	for _, of := range []*escalation.Rules{before, rules} {
		of.Groups(func(_ performatives.Organisation, _ string, group []performatives.Agent) {
			for _, human := range group {
				members[human] = true
			}
		})
	}
	for human := range members {
		if !slices.Equal(groupsOf(before, human), groupsOf(rules, human)) {
			moved = append(moved, human)
		}
	}
	return moved, nil
}

// groupsOf are the consumers of the groups that a human is in.
func groupsOf(rules *escalation.Rules, human performatives.Agent) (consumers []string) {
	rules.Groups(func(org performatives.Organisation, group string, members []performatives.Agent) {
		if slices.Contains(members, human) {
			consumers = append(consumers, api.GroupConsumer(org, group))
		}
	})
	slices.Sort(consumers)
	return consumers
}
