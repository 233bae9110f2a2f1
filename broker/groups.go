package broker

import (
	"context"
	"slices"
	"time"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/store"
)

// goneAfter is how long the consumer of a group that the rules do not name any
// more is kept: a broker that was started with other rules by mistake, or before
// the others, takes no group's place in the stream away.
const goneAfter = 24 * time.Hour

// openGroups makes the durable consumers by which groups of approvers follow
// their organisation's escalations with tools of their own, and lets those go
// that belong to no group any more. Nobody may pull from one of those, so the
// server takes it for unused.
func (b *Broker) openGroups(ctx context.Context) (err error) {
	named := map[string]bool{}
	b.Escalations.Groups(func(org performatives.Organisation, group string, _ []performatives.Agent) {
		if err != nil {
			return
		}
		name := api.GroupConsumer(org, group)
		named[name] = true
		err = b.store.EnsureConsumer(ctx, store.Consumer{
			Stream: api.EscalationsStream, Name: name, Subject: api.EscalationsOf(org), Description: group + " of " + string(org),
		})
	})
	if err != nil {
		return err
	}
	return b.store.ExpireConsumers(ctx, api.EscalationsStream, goneAfter, func(name string) bool {
		return api.IsGroupConsumer(name) && !named[name]
	})
}

// Groups are the consumers of the groups that a human is in, who may decide.
func (b *Broker) Groups(a performatives.Agent) []string {
	var consumers []string
	member, known := b.registry.Member(a)
	if !known || member.Authority != performatives.AuthorityDecide {
		return nil
	}
	b.Escalations.Groups(func(org performatives.Organisation, group string, members []performatives.Agent) {
		if slices.Contains(members, a) {
			consumers = append(consumers, api.GroupConsumer(org, group))
		}
	})
	slices.Sort(consumers)
	return consumers
}
