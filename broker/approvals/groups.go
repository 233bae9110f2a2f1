package approvals

import (
	"context"
	"slices"
	"time"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/store"
)

// groupExpiry is how long the consumer of a group stays that the rules do not name any more. A broker
// that was started with other rules by mistake, or before the others, loses no group's position.
const groupExpiry = 24 * time.Hour

// openGroups makes the durable consumers by which groups of approvers follow their organisation's
// escalations with tools of their own. Those of other groups expire: nobody may pull from one, so the
// server finds it inactive.
func (a *Approvals) openGroups(ctx context.Context) (err error) {
	named := map[string]bool{}
	a.o.Rules.Groups(func(org performatives.Organisation, group string, _ []performatives.Agent) {
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
	var consumers []string
	member, known := a.o.Registry.Member(human)
	if !known || member.Authority != performatives.AuthorityDecide {
		return nil
	}
	a.o.Rules.Groups(func(org performatives.Organisation, group string, members []performatives.Agent) {
		if slices.Contains(members, human) {
			consumers = append(consumers, api.GroupConsumer(org, group))
		}
	})
	slices.Sort(consumers)
	return consumers
}
