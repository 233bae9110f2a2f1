package broker

import (
	"context"
	"slices"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/wire"
)

// openGroups makes the durable consumers by which groups of approvers follow
// their organisation's escalations with tools of their own.
func (b *Broker) openGroups(ctx context.Context) (err error) {
	b.Escalations.Groups(func(org performatives.Organisation, group string, _ []performatives.Agent) {
		if err != nil {
			return
		}
		_, err = b.js.CreateOrUpdateConsumer(ctx, wire.EscalationsStream, jetstream.ConsumerConfig{
			Durable: wire.GroupConsumer(org, group), FilterSubject: wire.EscalationsOf(org), Description: group + " of " + string(org),
			AckPolicy: jetstream.AckExplicitPolicy, AckWait: ackWait, DeliverPolicy: jetstream.DeliverAllPolicy,
		})
	})
	return err
}

// Groups are the consumers of the groups that a human is in, who may decide.
func (b *Broker) Groups(a performatives.Agent) []string {
	var consumers []string
	member, known := b.registry.member(a)
	if !known || member.Authority != performatives.AuthorityDecide {
		return nil
	}
	b.Escalations.Groups(func(org performatives.Organisation, group string, members []performatives.Agent) {
		if slices.Contains(members, a) {
			consumers = append(consumers, wire.GroupConsumer(org, group))
		}
	})
	slices.Sort(consumers)
	return consumers
}
