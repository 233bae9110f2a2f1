package ledger

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session/agreement/inclusion"
	"github.com/parley-asp/parley/store"
)

// Proof is the position of a leaf, nil while no checkpoint has it.
func (l *Ledger) Proof(ctx context.Context, kind inclusion.Kind, id string) (*inclusion.Proof, error) {
	p, _, err := l.Receipted(ctx, kind, id)
	return p, err
}

// Receipted is the position of a leaf with a COSE Receipt of it, nil while no checkpoint has it.
func (l *Ledger) Receipted(ctx context.Context, kind inclusion.Kind, id string) (*inclusion.Proof, []byte, error) {
	last := l.published.Load()
	if last == nil || l.Refused() != nil {
		return nil, nil, nil //nolint:nilerr // no proof is an answer
	}
	m, err := l.o.Store.Last(ctx, api.LogStream, api.Leaf(string(kind), id))
	if err != nil || m == nil || int64(m.Sequence) > last.size { //nolint:gosec // far below 2^63
		return nil, nil, err
	}
	index := int64(m.Sequence) - 1 //nolint:gosec // far below 2^63
	t := l.now()
	path, err := tlog.ProveRecord(last.size, index, &t)
	if err != nil {
		return nil, nil, err
	}
	receipt, err := last.root.Receipt(last.size, index, path)
	p := inclusion.New(index, m.Data, last.signed, path)
	return &p, receipt, err
}

// SessionOf is the session that a leaf comes from, "" for none.
func (l *Ledger) SessionOf(ctx context.Context, kind inclusion.Kind, id string) (performatives.SessionID, error) {
	m, err := l.o.Store.Last(ctx, api.LogStream, api.Leaf(string(kind), id))
	if err != nil || m == nil {
		return "", err
	}
	return performatives.SessionID(m.Header.Get(api.SessionHeader)), nil
}

// everything is all that is in the stream: of any other filter the server counts the subjects.
const everything = ">"

// leaves are some leaves from an index on.
func (l *Ledger) leaves(ctx context.Context, from int64, n int) (all [][]byte, err error) {
	full := errors.New("enough")
	err = l.o.Store.Read(ctx, api.LogStream, everything, uint64(from)+1, func(m store.Message) error { //nolint:gosec // not negative
		all = append(all, m.Data)
		if len(all) == n {
			return full
		}
		return nil
	})
	if errors.Is(err, full) {
		return all, nil
	}
	if err == nil {
		err = fmt.Errorf("%w: %d of %d from %d on", errTorn, len(all), n, from)
	}
	return nil, err
}
