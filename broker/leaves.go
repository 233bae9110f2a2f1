package broker

import (
	"context"

	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session/agreement/inclusion"
)

// appendLeaves appends to the public log what the unapplied entries have made: agreements,
// and the end of the session.
func (b *Broker) appendLeaves(ctx context.Context, l *cachedSession) error {
	if len(l.unapplied) == 0 {
		return nil
	}
	first := l.unapplied[0].sequence
	for _, a := range l.state.AgreementsAfter(l.leaves) {
		if a.Made() >= first { // the leaves of earlier ones were applied
			if err := b.parts.Reads.AppendAgreement(ctx, b.snapshot(l), a); err != nil {
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
		err = b.parts.Ledger.Append(ctx, inclusion.Session, string(l.id), l.id, leaf)
	}
	l.ended = err == nil
	return err
}
