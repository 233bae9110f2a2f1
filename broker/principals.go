package broker

import (
	"context"
	"time"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/custody"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/registry"
)

func (b *Broker) openRegistry(ctx context.Context) (err error) {
	b.registry, err = registry.Open(ctx, registry.Options{
		Store: b.store, Broker: b.Key(), Reserved: b.Reserved, Dev: b.Dev, Alone: b.Alone, Now: b.Now, Log: b.Log,
		Timely: b.timely, Disconnect: b.Disconnect, Credentials: b.Credentials,
		Prove: b.Prove, Document: b.DIDDocument,
		Available: func(a performatives.Agent) (online bool, last time.Time) { return b.available.Of(a) },
	})
	return err
}

func (b *Broker) openCustody(ctx context.Context) (err error) {
	b.custody, err = custody.Open(ctx, custody.Options{
		Store: b.store, Registry: b.registry, Secret: b.Secret, Broker: b.Key(), Dev: b.Dev, Alone: b.Alone,
		Now: b.Now, Timely: b.timely, Log: b.Log,
	})
	return err
}

// RemoteAgents lists the cards that name a server elsewhere, if anything changed since a revision.
func (b *Broker) RemoteAgents(since uint64) (cards []api.Card, revision uint64) {
	return b.registry.RemoteAgents(since)
}

// Card finds a principal's card.
func (b *Broker) Card(a performatives.Agent) (api.Card, bool) { return b.registry.Card(a) }

// MACPSender finds the principal that MACP knows by a name: a token's, which an operator has
// given it, or else a card's.
func (b *Broker) MACPSender(name string) (performatives.Agent, bool) {
	if a, known := b.custody.MACPSender(name); known {
		return a, true
	}
	return b.registry.MACPSender(name)
}

// Custody holds the keys of hosted agents, and tokens.
func (b *Broker) Custody() *custody.Custody { return b.custody }

func (b *Broker) openTerms(ctx context.Context) (err error) {
	b.terms, err = registry.OpenSchemas(ctx, registry.SchemasOptions{Store: b.store, Max: b.Limits.Schemas, MaxBytes: b.Limits.SchemaBytes, Log: b.Log})
	return err
}

func (b *Broker) closeRegistry() {
	if b.terms != nil {
		b.terms.Close()
	}
	if b.registry != nil {
		b.registry.Close()
	}
}

// AddAgent registers a principal, or replaces its card and key, as agent.add does.
func (b *Broker) AddAgent(ctx context.Context, card api.Card) (api.Card, error) {
	return b.registry.Add(ctx, card)
}

// Principal finds the principal that logs in with a key.
func (b *Broker) Principal(k performatives.Key) (performatives.Agent, bool) {
	return b.registry.Principal(k)
}

// NameOf returns a principal's display name, or "".
func (b *Broker) NameOf(a performatives.Agent) string {
	card, _ := b.registry.Card(a)
	return card.Name
}

// HostedBesideOwn tells whether an agent has a key of its own and is hosted.
func (b *Broker) HostedBesideOwn(a performatives.Agent) bool { return b.registry.HostedBesideOwn(a) }

// AgentOf is who has registered a DID.
func (b *Broker) AgentOf(did string) (performatives.Agent, bool) { return b.registry.AgentOf(did) }

// KeysOf are the registered key of a principal and the one that the installation holds for it,
// "" for none.
func (b *Broker) KeysOf(a performatives.Agent) (own, hosted performatives.Key) {
	card, _ := b.registry.Card(a)
	hosted, _ = b.registry.HostedKey(a)
	return card.Key, hosted
}

// Redeem enrols a key, such as a browser's, with a code from human.enrol, and returns
// the human whose key it is now.
func (b *Broker) Redeem(ctx context.Context, code string, key performatives.Key, name string) (performatives.Agent, error) {
	return b.registry.Redeem(ctx, code, key, name)
}

// meet registers, under --dev, the principals that an act brings in.
func (b *Broker) meet(ctx context.Context, m *performatives.Message, joined []performatives.Member) error {
	named := []performatives.Agent{m.Sender, m.Recipient}
	for _, member := range joined {
		named = append(named, member.Agent)
	}
	return b.registry.Meet(ctx, named...)
}
