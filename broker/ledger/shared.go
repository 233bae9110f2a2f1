package ledger

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/session/agreement/inclusion"
	"github.com/parley-asp/parley/store"
)

// Cosignatures have a time, so those of two requests differ. The first broker to have enough
// of them stores the checkpoint, and all serve its bytes.

// shared reads the stored checkpoint, and publishes it if it is newer than what is published.
func (l *Ledger) shared(ctx context.Context, t *tree) error {
	e, err := l.state.Get(ctx, api.CheckpointKey)
	if errors.Is(err, store.ErrNoKey) {
		l.revision = 0
		return nil
	}
	if err != nil {
		return err
	}
	l.revision = e.Revision
	c, err := inclusion.Open(string(e.Value), l.verifier)
	if err != nil {
		return nil //nolint:nilerr // it is of another origin, and is replaced
	}
	lines, err := inclusion.Cosignatures(string(e.Value), l.keys)
	if err != nil || len(lines) < l.o.Witnesses.Quorum {
		return nil //nolint:nilerr // it is of other witnesses, and is replaced
	}
	if c.Tree.N > l.bounded(t.size) || l.published.Load().suffices(c.Tree.N) {
		return nil
	}
	root, err := tlog.TreeHash(c.Tree.N, t)
	if err != nil {
		return err
	}
	if root != c.Tree.Hash {
		l.broken(fmt.Errorf("%w: its first %d leaves are others", ErrContradiction, c.Tree.N))
		return l.Refused()
	}
	return l.serve(c, string(e.Value))
}

// share stores a checkpoint, unless another broker has stored one since shared.
func (l *Ledger) share(ctx context.Context, signed string) (err error) {
	if l.revision == 0 {
		_, err = l.state.Create(ctx, api.CheckpointKey, []byte(signed))
	} else {
		_, err = l.state.Update(ctx, api.CheckpointKey, []byte(signed), l.revision)
	}
	return err
}
