// Package broker is the session broker on NATS JetStream: it admits acts into
// transcripts, delivers them to inboxes, and keeps deadlines.
//
//	parts := &broker.Parts{Store: s, …} // package server opens them
//	b := broker.New(broker.Options{Signer: key}, parts)
//	b.Submit(id, sender, envelope, release, answer)
//
// The transcript is the only truth: a session's state is a fold over it, and
// whatever else there is (inbox copies, timers, the session list, escalation items) is
// derived from it again after a crash. Order is kept by compare-and-append on
// the session's subject, so that any number of brokers may run.
package broker

import (
	"cmp"
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker/approvals"
	"github.com/parley-asp/parley/broker/archive"
	"github.com/parley-asp/parley/broker/cluster"
	"github.com/parley-asp/parley/broker/ledger"
	"github.com/parley-asp/parley/broker/limits"
	"github.com/parley-asp/parley/broker/reads"
	"github.com/parley-asp/parley/broker/registry"
	"github.com/parley-asp/parley/broker/sessionlist"
	"github.com/parley-asp/parley/broker/timers"
	"github.com/parley-asp/parley/internal/background"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/store"
)

// Parts are what the command works with. Whoever opens them fills them in, before the first
// session is submitted to, recovered or read.
type Parts struct {
	Store     *store.Store
	Registry  *registry.Registry
	Terms     *registry.Schemas
	List      *sessionlist.List
	Reader    *archive.Reader // of transcripts
	Reads     *reads.Reads
	Approvals *approvals.Approvals
	Ledger    *ledger.Ledger
	Timers    *timers.Timers
	Members   *cluster.Membership // this broker and its peers
	Work      *background.Group   // in the background; sessions' work ends with it
}

// A Broker is the command: it loads a session, calls Step, appends the entry if the session is
// unchanged, and applies side effects.
type Broker struct {
	o        Options
	parts    *Parts
	sessions *sessions

	limits      atomic.Pointer[limits.Limits]
	accounts    *limits.Accounts
	limitEvents limits.Events
	judging     *limits.Scheduler // of acts, while they keep a core busy
	checking    *limits.Scheduler // of terms against their schema, where that takes long

	expires   atomic.Bool                  // sessions that are over are, or were, deleted after a time: their ids stay taken
	lag       time.Duration                // of timers and session rows
	failpoint atomic.Pointer[func(string)] // set by tests only
}

// Expires says that the store deletes sessions that are over, or did.
func (b *Broker) Expires() { b.expires.Store(true) }

// New makes the broker of parts that are being opened.
func New(o Options, parts *Parts) *Broker {
	o = o.WithDefaults()
	accounts := limits.NewAccounts(o.Limits, o.Now)
	b := &Broker{
		o: o, parts: parts, accounts: accounts,
		judging: accounts.Scheduler(runtime.GOMAXPROCS(0), 0), checking: accounts.Scheduler(1, 0),
		lag: max(0, cmp.Or(o.Lag, derivedLag)),
	}
	b.limits.Store(&o.Limits)
	b.sessions = newSessions(b)
	if o.Metrics != nil {
		accounts.OnRefusal(o.Metrics.Limited)
	}
	return b
}

// SetLimits has other limits from now on. Zero fields are defaults.
func (b *Broker) SetLimits(l limits.Limits) {
	l = l.WithDefaults()
	b.limits.Store(&l)
	b.accounts.SetLimits(l)
}

// Accounts are of what principals cost the broker.
func (b *Broker) Accounts() *limits.Accounts { return b.accounts }

// Drain takes no more work, writes what was put off, and waits for what was accepted.
func (b *Broker) Drain(ctx context.Context) {
	b.writeAllPostponed()
	b.sessions.drain(ctx)
}

// Begin counts a call as work until End, unless the broker is closing.
func (b *Broker) Begin() bool { return b.sessions.begin() }

// End ends what Begin counted.
func (b *Broker) End() { b.sessions.busy.Done() }

// errIsolated means that acts are refused until this broker's record is acknowledged again.
var errIsolated = errors.New("nothing that this broker writes is acknowledged")

// Healthy reports whether an act could be accepted now, and if not, why.
func (b *Broker) Healthy(ctx context.Context) error {
	if err := b.parts.Store.Broken(); err != nil {
		return err
	}
	unwritable := b.parts.Store.Writable(ctx, api.SessionsStream) // in any case: Store.Servers says what it found
	if b.parts.Members.Isolated() {
		return errIsolated
	}
	return cmp.Or(b.parts.Store.AppendFailed(), unwritable)
}

// Key verifies the broker's receipts.
func (b *Broker) Key() performatives.Key { return b.o.Signer.Key() }
