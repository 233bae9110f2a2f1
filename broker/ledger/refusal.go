package ledger

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/go-json-experiment/json"
	"go.uber.org/zap"
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/session/agreement/inclusion"
	"github.com/parley-asp/parley/store"
)

// A Refusal is why the log is not served.
type Refusal struct{ Why error }

var (
	errStarting = errors.New("the log is being read")
	errNoKey    = errors.New("this broker has no secret to derive the log's key from")

	// ErrContradiction means that the log is not the one of which a checkpoint was published.
	ErrContradiction = errors.New("the log contradicts a checkpoint that was published, so it is not served")
)

// Refused is why the log is not served, nil if it is.
func (l *Ledger) Refused() error {
	if r := l.refused.Load(); r != nil {
		return r.Why
	}
	return nil
}

var errRestored = errors.New("the public log was restored from a backup, and grows no further until 'parley serve --log-resume' is given the newest checkpoint that was published")

// Trouble is why the log is not served, or does not grow, if only an operator can mend it.
func (l *Ledger) Trouble() error {
	if why := l.Refused(); errors.Is(why, ErrContradiction) || errors.Is(why, errTorn) {
		return why
	}
	if l.most.Load() != unbounded && l.o.Resume == "" {
		return errRestored
	}
	return nil
}

func (l *Ledger) refuse(why error) { l.refused.Store(&Refusal{why}) }

// broken is for what only an operator can mend.
func (l *Ledger) broken(why error) {
	if now := l.Refused(); now == nil || errors.Is(now, errStarting) {
		l.o.Log.Error("the log is not served", zap.Error(why))
	}
	l.refuse(why)
}

// openPrior reads the checkpoint that was published last.
func (l *Ledger) openPrior() error {
	if l.o.Published == nil || l.signer == nil {
		return nil
	}
	signed, err := l.o.Published.Load()
	if err != nil || signed == "" {
		return err
	}
	c, err := inclusion.Open(signed, l.verifier)
	if _, unsigned := errors.AsType[*note.UnverifiedNoteError](err); unsigned {
		return nil // of another origin or key: another log
	}
	if err != nil {
		return fmt.Errorf("the last checkpoint of the log: %w", err)
	}
	l.prior, l.before = &c, signed
	return nil
}

// serveBefore serves the checkpoint that was published before the start: the witnesses of now may not have cosigned it
// yet, and may be away.
func (l *Ledger) serveBefore(t *tree) error {
	if l.before == "" || l.published.Load() != nil {
		return nil
	}
	c, err := inclusion.Open(l.before, l.verifier)
	if err != nil || c.Tree.N > l.bounded(t.size) {
		return err
	}
	if hash, err := tlog.TreeHash(c.Tree.N, t); err != nil || hash != c.Tree.Hash {
		return err // a newer one, of --log-resume, says what the log is
	}
	root, err := l.receipts.Sign(c)
	if err == nil {
		l.published.Store(&published{size: c.Tree.N, signed: l.before, root: root, before: true})
	}
	return err
}

// openResume takes the checkpoint that an operator gives, if it is newer. One that is older than the backup does not let the
// log grow: it says nothing of what was published after the backup.
func (l *Ledger) openResume() error {
	if l.o.Resume == "" {
		return nil
	}
	if l.verifier == nil {
		return errNoKey
	}
	c, err := inclusion.Open(l.o.Resume, l.verifier)
	if err != nil {
		return fmt.Errorf("the checkpoint to resume the log from: %w", err)
	}
	if l.prior == nil || l.prior.Tree.N < c.Tree.N {
		l.prior = &c
	}
	if bound := l.most.Load(); bound != unbounded && c.Tree.N < bound {
		l.o.Resume = ""
		l.o.Log.Error("the checkpoint of --log-resume is older than the backup, so the log grows no further: give the newest one that was published, or this broker's own",
			zap.Int64("leaves", c.Tree.N), zap.Int64("backup", bound))
	}
	return nil
}

const unbounded = math.MaxInt64

// bounded is the size up to which the log may be served.
func (l *Ledger) bounded(size int64) int64 { return min(size, l.most.Load()) }

// About describes [api.LedgerBucket].
const About = "what the public log was restored from, and the broker's keys"

// restored is the record of a log that a backup had.
type restored struct {
	Size int64 `json:"size"`
}

// openRestored notes how long the log was in the backup that it comes from. More leaves
// may have been published since, so a longer log may contradict one that others have.
func (l *Ledger) openRestored(ctx context.Context) (err error) {
	l.state, err = l.o.Store.Bucket(ctx, api.LedgerBucket, About, 0)
	if err != nil {
		return err
	}
	e, err := l.state.Get(ctx, api.RestoredKey)
	if errors.Is(err, store.ErrNoKey) {
		return nil
	}
	if err != nil {
		return err
	}
	var r restored
	if err := json.Unmarshal(e.Value, &r); err != nil {
		return err
	}
	l.most.Store(r.Size)
	if l.o.Resume != "" {
		return nil // openResume decides it
	}
	l.o.Log.Warn(errRestored.Error(), zap.Int64("leaves", r.Size))
	return nil
}

// agrees reports whether a tree extends the last checkpoint, and serves it if it does.
func (l *Ledger) agrees(ctx context.Context, t *tree) error {
	before := l.refused.Load()
	switch {
	case before == nil:
		return nil
	case errors.Is(before.Why, errTorn):
		return before.Why
	}
	if p := l.prior; p != nil {
		if t.size < p.Tree.N {
			l.broken(fmt.Errorf("%w: it has %d leaves, the checkpoint %d", ErrContradiction, t.size, p.Tree.N))
			return l.Refused()
		}
		root, err := tlog.TreeHash(p.Tree.N, t)
		if err != nil {
			return err
		}
		if root != p.Tree.Hash {
			l.broken(fmt.Errorf("%w: its first %d leaves are others", ErrContradiction, p.Tree.N))
			return l.Refused()
		}
	}
	if l.o.Resume != "" && l.most.Load() != unbounded {
		if err := l.state.Delete(ctx, api.RestoredKey); err != nil {
			return err
		}
		l.most.Store(unbounded)
	}
	l.refused.CompareAndSwap(before, nil) // unless it was found torn meanwhile
	return l.Refused()
}
