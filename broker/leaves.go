package broker

import (
	"context"

	"github.com/parley-asp/parley/agreements"
	"github.com/parley-asp/parley/inclusion"
	"github.com/parley-asp/parley/ledger"
	"github.com/parley-asp/parley/performatives"
)

func (b *Broker) openLedger(ctx context.Context) (err error) {
	b.ledger, err = ledger.Open(ctx, ledger.Options{
		Store: b.store, Secret: b.Secret, Key: b.Key(), Origin: b.LogOrigin, Published: b.Published, Resume: b.LogResume, Witnesses: b.Witnesses, Log: b.Log, Failpoint: b.reach,
	})
	b.agreements = agreements.New(agreements.Options{Access: b.access, Entries: b.entries, Ledger: b.ledger})
	return err
}

// Ledger is the public log.
func (b *Broker) Ledger() *ledger.Ledger { return b.ledger }

// appendLeaves appends to the public log what the unapplied entries have made: agreements,
// and the end of the session.
func (b *Broker) appendLeaves(ctx context.Context, l *cachedSession) error {
	if len(l.unapplied) == 0 {
		return nil
	}
	first := l.unapplied[0].sequence
	for _, a := range l.state.AgreementsAfter(l.leaves) {
		if a.Acceptance >= first { // the leaves of earlier ones were applied
			if err := b.agreements.Append(ctx, b.snapshot(l), a); err != nil {
				return err
			}
		}
		l.leaves++
	}
	if !l.state.Phase.Over() || l.ended {
		return nil
	}
	leaf, err := inclusion.Leaf{
		Type: inclusion.Session, Hash: string(l.state.Head), At: l.state.Updated.UTC().Format(performatives.TimeFormat),
	}.Bytes()
	if err == nil {
		err = b.ledger.Append(ctx, inclusion.Session, string(l.id), l.id, leaf)
	}
	l.ended = err == nil
	return err
}
