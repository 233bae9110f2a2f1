// Package broker is the session broker on NATS JetStream: it admits acts into
// transcripts, delivers them to inboxes, keeps deadlines, and answers the api.
//
//	b, err := broker.Open(ctx, broker.Options{Conn: nc, Signer: key})
//	if err != nil { … }
//	defer b.Close(ctx)
//
// The transcript is the only truth: a session's state is a fold over it, and
// whatever else there is (inbox copies, timers, the session list, escalation items) is
// derived from it again after a crash. Order is kept by compare-and-append on
// the session's subject, so that any number of brokers may run.
package broker

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/nats-io/nuid"

	"github.com/parley-asp/parley/access"
	"github.com/parley-asp/parley/agreements"
	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/approvals"
	"github.com/parley-asp/parley/archive"
	"github.com/parley-asp/parley/auditreads"
	"github.com/parley-asp/parley/availability"
	"github.com/parley-asp/parley/cluster"
	"github.com/parley-asp/parley/custody"
	"github.com/parley-asp/parley/entries"
	"github.com/parley-asp/parley/feed"
	"github.com/parley-asp/parley/insights"
	"github.com/parley-asp/parley/internal/background"
	"github.com/parley-asp/parley/ledger"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/proposals"
	"github.com/parley-asp/parley/queries"
	"github.com/parley-asp/parley/ratelimit"
	"github.com/parley-asp/parley/registry"
	"github.com/parley-asp/parley/scheduler"
	"github.com/parley-asp/parley/sessionlist"
	"github.com/parley-asp/parley/store"
	"github.com/parley-asp/parley/timers"
	"github.com/parley-asp/parley/turns"
	"github.com/parley-asp/parley/verbs"
)

// A Broker serves sessions until it is closed.
type Broker struct {
	Options
	id string // of this process among the brokers

	store     *store.Store
	registry  *registry.Registry
	custody   *custody.Custody
	copies    *feed.Feed // of inboxes
	turns     *turns.Turns
	terms     *registry.Schemas
	list      *sessionlist.List
	ledger    *ledger.Ledger
	archive   *archive.Archive
	archiver  *archive.Archiver
	timers    *timers.Timers
	sessions  *sessions
	cluster   *cluster.Membership
	limiter   *ratelimit.Limiter
	judging   *scheduler.Scheduler // of acts, while they keep a core busy
	checking  *scheduler.Scheduler // of terms against their schema, where that takes long
	assessing *scheduler.Scheduler // of cards, for calls for proposals

	access     *access.Access
	entries    *entries.Reader
	queries    *queries.Queries
	audits     *auditreads.Reads
	insights   *insights.Insights
	agreements *agreements.Agreements
	approvals  *approvals.Approvals
	proposals  *proposals.Calls
	available  *availability.Agents

	limitEvents ratelimit.Events
	lag         time.Duration // of timers and session rows

	failpoint atomic.Pointer[func(string)] // set by tests only

	verbs *verbs.Service
	work  *background.Group
}

// Open starts a broker: it makes sure that the streams are there, takes over
// what a broker before it left undone, and then serves.
func Open(ctx context.Context, o Options) (*Broker, error) {
	o = o.withDefaults()
	b := &Broker{Options: o, id: cmp.Or(o.ID, nuid.Next()), lag: max(0, cmp.Or(o.Lag, derivedLag)), work: background.New()}
	b.sessions, b.limiter = newSessions(b), ratelimit.New(o.Limits.ofRequests(), o.Now)
	b.judging, b.checking, b.assessing = scheduler.New(runtime.GOMAXPROCS(0), 0), scheduler.New(1, 0), scheduler.New(max(1, runtime.GOMAXPROCS(0)/2), maxAssessing)
	var err error
	if b.store, err = store.Open(ctx, store.Options{
		Conn: o.Conn, Replicas: o.Replicas, InboxAge: o.InboxAge, Archive: o.Archive.After > 0, ArchiveIfThere: o.Archive.IfThere, Sync: o.Durable, Log: o.Log,
	}); err != nil {
		return nil, err
	}
	if !b.store.Archives() {
		b.Archive = archive.Policy{}
	}
	b.archive = archive.New(b.store, o.Log)
	b.openFeed()
	b.timers = timers.New(timers.Options{Store: b.store, Due: b.due, Work: b.work, Log: o.Log})
	for _, start := range []struct {
		what string
		do   func(context.Context) error
	}{
		{"registry", b.openRegistry},
		{"custody", b.openCustody},
		{"terms schemas", b.openTerms},
		{"turns", b.openTurns},
		{"session list", b.openList},
		{"queries", b.openQueries},
		{"approvals", b.openApprovals},
		{"ledger", b.openLedger},
		{"membership", b.join},
		{"timers", b.timers.Start},
		{"archive", b.openArchiver},
		{"availability", b.openAvailability},
		{"calls for proposals", b.openProposals},
		{"verbs", b.openVerbs},
	} {
		if err := b.store.Patiently(ctx, start.what, start.do); err != nil {
			b.closeParts(ctx)
			return nil, fmt.Errorf("%s: %w", start.what, err)
		}
	}
	return b, nil
}

// Close stops serving, finishes what was accepted, and leaves no work behind.
func (b *Broker) Close(ctx context.Context) error {
	b.approvals.StopWatches()
	b.turns.StopWaits()
	b.closeParts(ctx)
	return nil
}

// closeParts closes the parts that are open, the last one first: what brings work,
// then the work, then what the work needs.
func (b *Broker) closeParts(ctx context.Context) {
	b.copies.Close()
	if b.proposals != nil {
		b.proposals.Close()
	}
	if b.available != nil {
		b.available.Close()
	}
	b.timers.Close(ctx)
	if b.archiver != nil {
		b.archiver.Close()
	}
	b.writeAllPostponed()
	b.sessions.drain(ctx)
	if b.cluster != nil {
		b.cluster.Leave(ctx)
		b.cluster.Close()
	}
	b.work.Close()
	if b.approvals != nil {
		b.approvals.Close()
	}
	if b.ledger != nil {
		b.ledger.Close()
	}
	if b.list != nil {
		b.list.Close()
	}
	if b.custody != nil {
		b.custody.Close()
	}
	if b.turns != nil {
		b.turns.Close()
	}
	b.closeRegistry()
	b.store.Close()
}

// Healthy tells whether the broker reaches its transcripts.
func (b *Broker) Healthy(ctx context.Context) error {
	if b.store.SyncFailed() {
		return store.ErrSyncFailed
	}
	_, err := b.store.Info(ctx, api.SessionsStream)
	return err
}

// Store is the broker's store, for what gateways keep beside it.
func (b *Broker) Store() *store.Store { return b.store }

// Members are this broker and its peers.
func (b *Broker) Members() *cluster.Membership { return b.cluster }

// ID names this broker among its peers.
func (b *Broker) ID() string { return b.id }

// Key verifies the broker's receipts.
func (b *Broker) Key() performatives.Key { return b.Signer.Key() }
