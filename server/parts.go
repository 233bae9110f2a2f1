package server

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker"
	"github.com/parley-asp/parley/broker/approvals"
	"github.com/parley-asp/parley/broker/archive"
	"github.com/parley-asp/parley/broker/availability"
	"github.com/parley-asp/parley/broker/cluster"
	"github.com/parley-asp/parley/broker/custody"
	"github.com/parley-asp/parley/broker/hosted"
	"github.com/parley-asp/parley/broker/insights"
	"github.com/parley-asp/parley/broker/ledger"
	"github.com/parley-asp/parley/broker/proposals"
	"github.com/parley-asp/parley/broker/reads"
	"github.com/parley-asp/parley/broker/registry"
	"github.com/parley-asp/parley/broker/sessionlist"
	"github.com/parley-asp/parley/broker/timers"
	"github.com/parley-asp/parley/broker/turns"
	"github.com/parley-asp/parley/broker/verbs"
	"github.com/parley-asp/parley/broker/wakeups"
	"github.com/parley-asp/parley/internal/publicnet"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/store"
)

// openParts opens the parts in order. Each may use what was opened before it.
func (b *Broker) openParts(ctx context.Context) (err error) {
	o := &b.Options
	if b.Parts.Store, err = store.Open(ctx, store.Options{
		Conn: o.Conn, Bulk: o.Bulk, Feeds: o.Feeds, Replicas: o.Replicas, Shards: o.Shards, InboxAge: o.InboxAge, Archive: o.Archive.After > 0, ArchiveIfThere: o.Archive.IfThere, Dev: o.Dev, Lost: o.Lost, Sync: o.Durable, Broken: o.Broken, Log: o.Log,
	}); err != nil {
		return err
	}
	b.closes(b.Parts.Store.Close)
	if !b.Parts.Store.Archives() {
		o.Archive = archive.Policy{Erasure: o.Archive.Erasure} // so that it says what is in the way of an erasure
	}
	b.Parts.Reader = archive.NewReader(b.Parts.Store, o.Log)
	b.Parts.Timers = timers.New(timers.Options{Store: b.Parts.Store, Due: b.Command.Due, Work: b.Parts.Work, Log: o.Log})
	for _, part := range []struct {
		what string
		open func(context.Context) error
	}{
		{"keys", b.recordKeys},
		{"registry", b.openRegistry},
		{"terms schemas", b.openTerms},
		{"custody", b.openCustody},
		{"keys of hosted agents", b.openHosted},
		{"turns", b.openTurns},
		{"session list", b.openList},
		{"ledger", b.openLedger},
		{"reads", b.openReads},
		{"approvals", b.openApprovals},
		{"membership", b.openMembership},
		{"recovery", func(ctx context.Context) error { return b.Parts.Members.Join(ctx) }},
		{"timers", b.Parts.Timers.Start},
		{"wakeups", b.openWakeups}, // which look at sessions at once
		{"archive", b.openArchiver},
		{"sweeps", b.openSweeps},
		{"availability", b.openAvailability},
		{"calls for proposals", b.openProposals},
		{"verbs", b.openVerbs},
	} {
		if err := b.Parts.Store.Patiently(ctx, part.what, part.open); err != nil {
			return fmt.Errorf("%s: %w", part.what, err)
		}
	}
	b.openInboxes()
	return nil
}

// closes has a part closed before those that were opened before it.
func (b *Broker) closes(part func()) {
	b.closers = append(b.closers, func(context.Context) { part() })
}

func (b *Broker) openRegistry(ctx context.Context) error {
	o := &b.Options
	opened, err := registry.Open(ctx, registry.Options{
		Store: b.Parts.Store, Broker: b.Command.Key(), Reserved: o.Reserved, Dev: o.Dev, Alone: o.Alone, Standbys: o.Standbys, Shared: o.SharedKeys, Now: o.Now, Log: o.Log,
		Timely: b.Command.Timely, Disconnect: o.Disconnect, Credentials: o.Credentials, Prove: o.Prove, Document: o.DIDDocument,
		HasRole:   func(a performatives.Agent, roles ...string) bool { return b.rules.Load().HasRole(a, roles...) },
		Named:     func(name string) (performatives.Agent, bool) { return b.Custody.NamedInMACP(name) },
		Available: func(a performatives.Agent) (online bool, last time.Time) { return b.Available.Of(a) },
	})
	if err == nil {
		b.Parts.Registry = opened
		b.closes(opened.Close)
	}
	return err
}

func (b *Broker) openTerms(ctx context.Context) error {
	o := &b.Options
	opened, err := registry.OpenSchemas(ctx, registry.SchemasOptions{Store: b.Parts.Store, Max: o.Limits.Schemas, MaxBytes: o.Limits.SchemaBytes, Log: o.Log})
	if err == nil {
		b.Parts.Terms = opened
		b.closes(opened.Close)
	}
	return err
}

func (b *Broker) openCustody(ctx context.Context) error {
	o := &b.Options
	opened, err := custody.Open(ctx, custody.Options{
		Store: b.Parts.Store, Registry: b.Parts.Registry, Secret: o.Secret, Broker: b.Command.Key(), Keys: o.Keys, Dev: o.Dev, Alone: o.Alone, Standbys: o.Standbys,
		Now: o.Now, Timely: b.Command.Timely, Log: o.Log,
	})
	if err == nil {
		b.Custody = opened
		b.closes(opened.Close)
	}
	return err
}

func (b *Broker) openHosted(ctx context.Context) (err error) {
	b.Hosted, err = hosted.Open(ctx, hosted.Options{
		Store: b.Parts.Store, Signer: b.Custody.Signer, Look: b.look, Snapshot: b.snapshot, Messages: b.messages, Submit: b.submit,
		KeepPrivate: func(ctx context.Context, a performatives.Agent, id performatives.SessionID, private jsontext.Value) error {
			return b.Turns.KeepPrivate(ctx, a, id, private)
		},
		Secret: b.Options.Secret, Open: b.Options.OpenRulings, NewSession: b.newSession, Now: b.Options.Now, Log: b.Options.Log,
	})
	return err
}

// newSession is the id of a session that this broker owns, so that what opens it need not be
// forwarded. One in as many ids as there are brokers is.
func (b *Broker) newSession() (id performatives.SessionID) {
	for range api.Partitions {
		id = performatives.SessionID(uuid.Must(uuid.NewV7()).String())
		if _, elsewhere := b.Parts.Members.Owner(id); !elsewhere {
			break
		}
	}
	return id
}

func (b *Broker) openTurns(ctx context.Context) error {
	o := &b.Options
	opened, err := turns.Open(ctx, turns.Options{
		Store: b.Parts.Store, OpenSessions: b.openSessions, Participants: b.participants, Alone: o.Alone, Look: b.look, Unsealed: b.unsealed, Messages: b.messages, Submit: b.submit,
		Signer: b.Custody.Signer, Hosted: b.Hosted, Timeout: o.ClaimTimeout, Watch: b.watchInbox, WatchSession: b.watchSession, Snapshot: b.snapshot, Member: b.member, Now: o.Now, Log: o.Log,
	})
	if err == nil {
		b.Turns = opened
		b.closes(opened.Close)
	}
	return err
}

func (b *Broker) openWakeups(ctx context.Context) error {
	o, private := &b.Options, b.Options.PrivateWebhooks
	opened, err := wakeups.Open(ctx, wakeups.Options{
		Store: b.Parts.Store, Secret: o.Secret, Look: b.look, Member: b.member, Client: publicnet.Client(wakeups.Attempt, private),
		Check: func(url string) error { return publicnet.Check(url, private) }, Now: o.Now, Log: o.Log,
	})
	if err == nil {
		b.Wakeups = opened
		b.closes(opened.Close)
	}
	return err
}

func (b *Broker) openList(ctx context.Context) error {
	o := sessionlist.Options{Alone: b.Options.Alone, Store: b.Parts.Store, Log: b.Options.Log, Moved: b.moved}
	if b.Parts.Store.Archives() {
		o.FollowArchive, o.ArchivedRow, o.Expired = b.Parts.Reader.Follow, b.Parts.Reader.Row, b.expired
	}
	opened, err := sessionlist.Open(ctx, o)
	if err == nil {
		b.Parts.List = opened
		b.closes(opened.Close)
	}
	return err
}

func (b *Broker) openLedger(ctx context.Context) error {
	o := &b.Options
	opened, err := ledger.Open(ctx, ledger.Options{
		Store: b.Parts.Store, Secret: o.Secret, Key: cmp.Or(o.Keys.Oldest(), b.Command.Key()), Origin: o.LogOrigin, Published: o.Published, Resume: o.LogResume,
		Witnesses: o.Witnesses, Log: o.Log, Failpoint: b.Command.Reach,
	})
	if err == nil {
		b.Parts.Ledger = opened
		b.closes(opened.Close)
	}
	return err
}

func (b *Broker) openReads(context.Context) error {
	o, p := &b.Options, &b.Parts
	p.Reads = reads.New(reads.Options{
		View: b.Command.View, Moves: b.Command.Moves, Private: b.private, Unsealed: b.unsealed, Store: p.Store, Reader: p.Reader, List: p.List, Registry: p.Registry, Terms: p.Terms, Ledger: p.Ledger, Timers: p.Timers,
		Keys: o.Keys, Alone: o.Alone, Now: o.Now, Log: o.Log,
	})
	b.Insights = insights.Open(insights.Options{
		Reads: p.Reads, Reader: p.Reader, List: p.List, Registry: p.Registry, Modes: o.Modes, Skew: broker.ClockSkew, Now: o.Now, Work: p.Work, Log: o.Log,
	})
	return nil
}

func (b *Broker) openApprovals(ctx context.Context) error {
	o := &b.Options
	opened, err := approvals.Open(ctx, approvals.Options{
		Store: b.Parts.Store, Registry: b.Parts.Registry, Schema: b.Parts.Terms.Lookup,
		Rules: o.Escalations, Dev: o.Dev, Log: o.Log, Now: o.Now,
		MayRead: b.mayRead, Terms: b.offered, Lapses: b.lapses, Reconcile: b.Command.Reconcile,
		Messages: b.Parts.Reads.Transcript,
	})
	if err == nil {
		b.Parts.Approvals = opened
		b.approvals.Store(opened)
		b.closes(opened.Close)
	}
	return err
}

// openMembership makes this broker a member of the cluster that has recovered nothing yet. From
// the recovery on there is work, which ends before the membership does.
func (b *Broker) openMembership(ctx context.Context) error {
	o := &b.Options
	opened, err := cluster.Open(ctx, cluster.Options{
		Store: b.Parts.Store, ID: o.ID, Alone: o.Alone, SyncedAfter: o.SyncedAfter, Log: o.Log, Now: o.Now,
		Recover: b.Command.Recover, Suspect: o.Silent, Reconnect: o.Reconnect, Recovered: o.Metrics.Recovered,
	})
	if err != nil {
		return err
	}
	b.Parts.Members = opened
	b.closes(b.Parts.Work.Close)
	b.closers = append(b.closers, func(ctx context.Context) {
		opened.Leave(ctx)
		opened.Close()
	}, b.Command.Drain, b.Parts.Timers.Close)
	return nil
}

func (b *Broker) openArchiver(ctx context.Context) error {
	opened, err := archive.Open(ctx, archive.Options{
		Store: b.Parts.Store, List: b.Parts.List, Policy: b.Options.Archive, Log: b.Options.Log, Ended: b.Command.Ended, Failpoint: b.Command.Reach,
		Erase: b.erase, Modes: b.Options.Modes,
	})
	if err == nil {
		b.archiver = opened
		b.closes(opened.Close)
	}
	return err
}

func (b *Broker) openAvailability(ctx context.Context) error {
	o := &b.Options
	opened, err := availability.Open(ctx, availability.Options{
		Store: b.Parts.Store, Now: o.Now, Log: o.Log,
		Known: func(a performatives.Agent) bool {
			_, registered := b.Parts.Registry.Card(a)
			return registered || o.Dev
		},
	})
	if err == nil {
		b.Available = opened
		b.closes(opened.Close)
	}
	return err
}

// maxAssessing is how many calls for proposals wait for a slot; then one more of each principal may.
const maxAssessing = 1024

// openProposals opens calls for proposals. There are so few slots to assess cards in that acts
// have a core left.
func (b *Broker) openProposals(context.Context) error {
	b.assessing = b.Command.Accounts().Scheduler(max(1, runtime.GOMAXPROCS(0)/2), maxAssessing)
	opened, err := proposals.Open(proposals.Options{
		Registry: b.Parts.Registry, Bus: b.Parts.Store.Bus(), Broker: b.Options.ID, Queue: b.Parts.List.Busy, Now: b.Options.Now,
		Probe: b.Options.Probe, Similar: b.Options.Similar,
		Enter: func(ctx context.Context, a performatives.Agent) (leave func(), err error) {
			wait, joined := b.assessing.Join(a)
			if !joined {
				return nil, session.Busy()
			}
			slot, err := wait(ctx)
			if err != nil {
				return nil, session.Busy()
			}
			return slot.Release, nil
		},
		Gone: func(a performatives.Agent) bool {
			online, last := b.Available.Of(a)
			return !online && !last.IsZero()
		},
	})
	if err == nil {
		b.Proposals = opened
		b.closes(opened.Close)
	}
	return err
}

func (b *Broker) openVerbs(context.Context) (err error) {
	b.Verbs, err = verbs.New(verbs.Options{
		Answers: b.answers(), Registry: b.Parts.Registry, Accounts: b.Command.Accounts(), Begin: b.Command.Begin, End: b.Command.End, Work: b.Parts.Work, Traces: b.Options.Traces,
	})
	return err
}

// openInboxes watches the inbox copies. Each entry has one for somebody, written after the
// entry. The transcripts' own stream cannot be followed: once it has an archive, the server
// gives its messages to the archiver alone.
func (b *Broker) openInboxes() {
	b.Inboxes = b.Parts.Store.Watcher(api.InboxStream, func(subject string) []string {
		owner, id := subject[:strings.LastIndexByte(subject, '.')+1], subject[strings.LastIndexByte(subject, '.')+1:]
		return []string{owner + "*", api.InboxesOf(performatives.SessionID(id))}
	})
	b.closes(b.Inboxes.Close)
}

// watchSession reports new entries of a session.
func (b *Broker) watchSession(ctx context.Context, id performatives.SessionID) (changed <-chan struct{}, stop func(), err error) {
	return b.Inboxes.Watch(ctx, api.InboxesOf(id))
}

// watchInbox reports new messages in a principal's inbox.
func (b *Broker) watchInbox(ctx context.Context, a performatives.Agent) (changed <-chan struct{}, stop func(), err error) {
	return b.Inboxes.Watch(ctx, api.InboxOf(a))
}
