// Package ledger is the public log: one leaf for each agreement and for each session that
// has ended, in a Merkle tree whose signed checkpoints anybody may keep.
//
//	l, err := ledger.Open(ctx, ledger.Options{Store: s, Secret: secret})
//	if err != nil { … }
//	defer l.Close()
//	err = l.Append(ctx, inclusion.Agreement, id, session, leaf) // once, however often it is called
//	proof, err := l.Proof(ctx, inclusion.Agreement, id)
//
// The order of the leaves is that of one stream. Each leaf has a subject of its own, which
// takes one message: whoever appends first wins, and the leaf is there once, whatever
// crashes. Every broker follows the stream and makes the same tree, tiles and checkpoints of
// it, alike to the byte. None of them is stored, but the newest checkpoint if witnesses
// cosign it.
package ledger

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/go-json-experiment/json"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/internal/background"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session/agreement/inclusion"
	"github.com/parley-asp/parley/store"
)

// Options say what log it is.
type Options struct {
	Store  *store.Store
	Secret []byte            // of the installation: the log's key derives from it; nil publishes nothing
	Key    performatives.Key // of the installation, for the default origin
	Origin string            // the log's name; "" is parley/ and Key
	Log    *zap.Logger       // nil is silent

	// Published keeps the newest checkpoint where no restore of the store reaches it; nil keeps none.
	Published Published

	// Resume is the newest checkpoint that was published of a log that was restored from a
	// backup. If the log has all of it, it grows again.
	Resume string

	// Witnesses cosign checkpoints before they are published; none by default.
	Witnesses Witnesses

	// Failpoint, if there is one, is called at each of Failpoints.
	Failpoint func(name string)
}

// Published is where the newest checkpoint is kept outside the store.
type Published interface {
	Load() (checkpoint string, err error) // "" for none
	Save(checkpoint string) error
}

// The failpoints, in the order in which a checkpoint passes them.
const (
	leafIntegrated     = "after a leaf is in the tree"
	checkpointMade     = "after a checkpoint is signed"
	checkpointCosigned = "after a checkpoint is cosigned"
	checkpointSaved    = "after a checkpoint is saved"
)

// Failpoints are the names with which Options.Failpoint is called.
func Failpoints() []string {
	return []string{leafIntegrated, checkpointMade, checkpointCosigned, checkpointSaved}
}

// publishInterval is how long new leaves wait for a checkpoint that has them.
const publishInterval = 200 * time.Millisecond

var (
	errNoTile = errors.New("the log has no such tile")
	errTorn   = errors.New("the stream of the log lacks leaves")
)

// A Ledger follows the log until it is closed.
type Ledger struct {
	o      Options
	origin string
	signer note.Signer
	key    string // the verifier key

	receipts inclusion.ReceiptKey
	prior    *inclusion.Checkpoint
	before   string // the checkpoint that was published before the start, "" if there is none

	verifier  note.Verifier
	witnesses []*cosigner
	keys      []note.Verifier // of the witnesses
	revision  uint64          // of the checkpoint that brokers share

	most  atomic.Int64 // of a restored log that may not grow
	state *store.Bucket
	http  http.Handler
	work  *background.Group

	mu     sync.Mutex
	tree   tree
	behind time.Time // since when leaves wait for a checkpoint; zero if none do

	published atomic.Pointer[published]
	refused   atomic.Pointer[Refusal] // why nothing is published
}

// published is what is served: the newest checkpoint.
type published struct {
	size   int64
	signed string
	root   inclusion.SignedRoot
	before bool // the start: another one takes its place, with the cosignatures of now
}

// suffices reports whether another checkpoint of this size is not needed.
func (p *published) suffices(size int64) bool {
	return p != nil && (p.size > size || p.size == size && !p.before)
}

// Open starts to follow the log. It is served once all its leaves are read.
func Open(ctx context.Context, o Options) (l *Ledger, err error) {
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	if o.Failpoint == nil {
		o.Failpoint = func(string) {}
	}
	l = &Ledger{o: o, work: background.New()}
	l.most.Store(unbounded)
	l.refuse(errStarting)
	if err := l.openKey(); err != nil {
		return nil, err
	}
	if err := l.openWitnesses(); err != nil {
		return nil, err
	}
	if err := l.openPrior(); err != nil {
		return nil, err
	}
	if err := l.openRestored(ctx); err != nil {
		return nil, err
	}
	if err := l.openResume(); err != nil {
		return nil, err
	}
	l.http = l.handler()
	caughtUp, err := o.Store.Follow(ctx, l.work, store.Feed{Stream: api.LogStream}, l.integrate)
	if err != nil {
		l.work.Close()
		return nil, err
	}
	if l.signer == nil {
		l.refuse(errNoKey)
	} else {
		l.work.Go(func(ctx context.Context) {
			if background.Await(ctx, caughtUp) == nil {
				l.run(ctx)
			}
		})
	}
	return l, nil
}

// Close ends the ledger's goroutines.
func (l *Ledger) Close() { l.work.Close() }

// Append adds a leaf to the log, unless it has the leaf of this agreement or session already.
func (l *Ledger) Append(ctx context.Context, kind inclusion.Kind, id string, session performatives.SessionID, leaf []byte) error {
	sent, err := l.o.Store.Send(api.LogStream, store.Message{
		Subject: api.Leaf(string(kind), id), Data: leaf, Header: store.Header{api.SessionHeader: {string(session)}},
	}, 0)
	if err != nil {
		return err
	}
	if _, err := sent.Stored(); err != nil && !errors.Is(err, store.ErrConflict) {
		return fmt.Errorf("leaf of the log: %w", err)
	}
	return ctx.Err()
}

// Ended reports whether the log has the end of a session, and when that was.
func (l *Ledger) Ended(ctx context.Context, id performatives.SessionID) (at time.Time, ended bool, err error) {
	end, err := l.o.Store.Last(ctx, api.LogStream, api.Leaf(string(inclusion.Session), string(id)))
	if err != nil || end == nil {
		return at, false, err
	}
	var leaf inclusion.Leaf
	if err := json.Unmarshal(end.Data, &leaf); err != nil {
		return at, false, err
	}
	at, err = time.Parse(performatives.TimeFormat, leaf.At)
	return at, true, err
}

// integrate adds the next leaf of the stream to the tree.
func (l *Ledger) integrate(m store.Message, _ bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch at := int64(m.Sequence) - 1; { //nolint:gosec // far below 2^63
	case at < l.tree.size:
		return // it comes again after a reconnection
	case at > l.tree.size:
		l.broken(fmt.Errorf("%w: after the one at %d comes %d", errTorn, l.tree.size-1, at))
		return
	}
	if err := l.tree.add(m.Data); err != nil {
		l.broken(err)
		return
	}
	if l.behind.IsZero() {
		l.behind = time.Now()
	}
	l.o.Failpoint(leafIntegrated)
}

func (l *Ledger) now() tree {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tree.snapshot()
}

// run publishes checkpoints.
func (l *Ledger) run(ctx context.Context) {
	interval, before := publishInterval, ""
	if len(l.witnesses) > 0 {
		interval = witnessInterval
	}
	for {
		why := ""
		if err := l.publish(ctx); err != nil && ctx.Err() == nil {
			if why = err.Error(); why != before {
				l.o.Log.Warn("the log's checkpoint is published later", zap.Error(err))
			}
		}
		before = why
		if background.Pause(ctx, interval) != nil {
			return
		}
	}
}

// publish signs a checkpoint of the leaves that are there, once they are on disk.
func (l *Ledger) publish(ctx context.Context) error {
	t := l.now()
	if l.agrees(ctx, &t) != nil {
		return nil //nolint:nilerr // it was said
	}
	if len(l.witnesses) > 0 {
		if err := l.shared(ctx, &t); err != nil {
			return err
		}
		if err := l.serveBefore(&t); err != nil {
			return err
		}
	}
	size := l.bounded(t.size)
	if l.published.Load().suffices(size) {
		return nil
	}
	if err := l.o.Store.Sync(api.LogStream, uint64(size)); err != nil { //nolint:gosec // not negative
		return err
	}
	c := inclusion.Checkpoint{Origin: l.origin, Tree: tlog.Tree{N: size}}
	var err error
	if c.Tree.Hash, err = tlog.TreeHash(size, &t); err != nil {
		return err
	}
	signed, err := note.Sign(&note.Note{Text: c.Text()}, l.signer)
	if err != nil {
		return err
	}
	l.o.Failpoint(checkpointMade)
	if len(l.witnesses) > 0 {
		cosigned, err := l.cosigned(ctx, c, string(signed), &t)
		if err != nil {
			return err
		}
		l.o.Failpoint(checkpointCosigned)
		if err := l.share(ctx, cosigned); errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrKeyExists) {
			return nil // another broker was faster, whose checkpoint is published next
		} else if err != nil {
			return err
		}
		signed = []byte(cosigned)
	}
	return l.serve(c, string(signed))
}

// serve publishes a checkpoint.
func (l *Ledger) serve(c inclusion.Checkpoint, signed string) error {
	root, err := l.receipts.Sign(c)
	if err != nil {
		return err
	}
	if l.o.Published != nil {
		if err := l.o.Published.Save(signed); err != nil {
			return err
		}
	}
	l.o.Failpoint(checkpointSaved)
	l.prior = &c
	l.published.Store(&published{size: c.Tree.N, signed: signed, root: root})
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.behind = (time.Time{}); l.tree.size > c.Tree.N {
		l.behind = time.Now()
	}
	return nil
}

// Leaves are how many a checkpoint has that is published, how many wait for one, and how long the first of them
// has waited.
func (l *Ledger) Leaves() (published, waiting int64, since time.Duration) {
	if p := l.published.Load(); p != nil {
		published = p.size
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if waiting = max(0, l.tree.size-published); waiting > 0 {
		since = time.Since(l.behind)
	}
	return published, waiting, since
}
