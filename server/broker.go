package server

import (
	"cmp"
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nuid"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker"
	"github.com/parley-asp/parley/broker/approvals"
	"github.com/parley-asp/parley/broker/archive"
	"github.com/parley-asp/parley/broker/availability"
	"github.com/parley-asp/parley/broker/custody"
	"github.com/parley-asp/parley/broker/hosted"
	"github.com/parley-asp/parley/broker/insights"
	"github.com/parley-asp/parley/broker/ledger"
	"github.com/parley-asp/parley/broker/limits"
	"github.com/parley-asp/parley/broker/proposals"
	"github.com/parley-asp/parley/broker/turns"
	"github.com/parley-asp/parley/broker/verbs"
	"github.com/parley-asp/parley/broker/wakeups"
	"github.com/parley-asp/parley/discovery"
	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/gateway"
	natsgateway "github.com/parley-asp/parley/gateway/nats"
	"github.com/parley-asp/parley/internal/background"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/server/activity"
	"github.com/parley-asp/parley/store"
)

// BrokerOptions say how a broker runs: those of the command, and those of what is opened around it.
type BrokerOptions struct {
	broker.Options

	Conn        *nats.Conn        // to the account that holds JetStream and nobody but brokers
	Bulk        *nats.Conn        // another one to it, for reading what may be large; nil is Conn
	Feeds       *nats.Conn        // a third, for consumers; nil is Conn
	Asked       *nats.Conn        // a fourth, for what principals ask of JetStream; nil is Conn
	Replicas    int               // of each stream; 0 is as many as it has, 1 for a new one
	Shards      int               // of the store (store.Options)
	Lost        []string          // streams that the store may lack (store.Options)
	Escalations *escalation.Rules // who decides what; checked; nil is everybody who may

	// Similar compares a task with cards by meaning, and Probe asks agents elsewhere; nil does not.
	Similar func(ctx context.Context, task discovery.Task, cards [][]discovery.Skill) ([]discovery.Similarity, error)
	Probe   func(ctx context.Context, caller performatives.Agent, url string, task discovery.Task) (discovery.Assessment, error)

	PrivateWebhooks bool // URLs that principals have called may be at private addresses

	OpenRulings  bool           // what hosted agents ESCALATE and people rule is not sealed by default
	Standbys     bool           // hosted agents that name no standby have that of their organisation
	ClaimTimeout time.Duration  // of a claim on a turn; 0 is 6 h
	InboxAge     time.Duration  // how long inbox copies are kept; 0 is as long as they are, 7 days at first
	Archive      archive.Policy // when sessions that are over leave the transcripts' stream

	// Durable, if there is one, returns once what a stream has acknowledged is on disk, the message with
	// a sequence in particular, 0 for none. It is for what cannot be derived again, which is
	// answered after it. Nil: an acknowledgement is all that there is to wait for.
	Durable func(stream string, sequence uint64) error

	// Broken, if there is one, is why the NATS server stores nothing more until it is started again; nil if it does.
	Broken func() error

	// SyncedAfter is how long the server may take to have on disk what it acknowledged; 0 is the 2 minutes of
	// its default, and some. What was derived before is there after a power failure.
	SyncedAfter time.Duration

	// ID names this broker among those that share the work; "" has one made. It is one token.
	ID string

	// Failed, if there is one, is told why this broker must not go on: its key was replaced. It may be told twice.
	Failed func(error)

	// Silent, if there is one, is told of another broker that has said nothing for 3 seconds, by its
	// ID, and closes its connections: a process that is stopped, or cut off, has its share of the
	// acts until the server notices, which may take minutes. It connects again if it lives.
	Silent func(id string)

	// Reconnect, if there is one, connects to another server, if one is known. The broker calls it when
	// the server has acknowledged nothing for 10 seconds: it may be cut off from the others.
	Reconnect func()

	// Disconnect, if there is one, closes the connections that a principal made with a key that is not
	// its own any more, or that gives it less than before, whichever broker changed that. It is called
	// before the change is answered, and must not wait for the broker.
	Disconnect func(performatives.Agent, performatives.Key)

	// DIDDocument reads the DID document at a URL, for an operator who registers a did:web; nil
	// reads none.
	DIDDocument func(ctx context.Context, url string) ([]byte, error)

	// SharedKeys lets principals without a login key log in with the key that signs.
	SharedKeys bool

	// Reserved are the installation's own keys, besides Signer's: no principal is registered with one.
	Reserved []performatives.Key

	// KeySince is when Signer's key was made.
	KeySince time.Time

	// Secret is one that all brokers of the installation share, 32 random bytes. Hosted keys are sealed
	// by keys that HKDF-Expand makes of it; nil hosts nothing.
	Secret []byte

	// LogOrigin names the public log; "" is made of the broker's key. All brokers of the
	// installation share it. Published keeps the log's newest checkpoint outside the store.
	LogOrigin string
	Published ledger.Published
	LogResume string // after a restore: the newest checkpoint that was published
	Witnesses ledger.Witnesses

	// Prove asks the domain of an agent's URI, by dns or file, whether a key is its own; nil asks
	// the public internet.
	Prove func(ctx context.Context, host string, key performatives.Key, by string) error

	// Credentials, if there is one, makes the user JWT that a NATS credentials file of a principal
	// has beside the seed. Without it the NATS server does not look at such files.
	Credentials func(performatives.Agent, performatives.Key) (userJWT string, err error)
}

// A Broker is the command with its parts, its NATS gateway, and what other gateways keep.
type Broker struct {
	Options BrokerOptions // with their defaults
	Command *broker.Broker
	Parts   broker.Parts // of the command

	Custody   *custody.Custody
	Hosted    *hosted.Agents
	Turns     *turns.Turns
	Wakeups   *wakeups.Wakeups
	Insights  *insights.Insights
	Available *availability.Agents
	Proposals *proposals.Calls
	Inboxes   *store.Watcher
	Verbs     *verbs.Service

	Gateway    *natsgateway.Gateway
	Service    *gateway.Service // the broker as its gateways see it
	A2ARecords *store.Bucket    // what is to be done for clients of A2A

	rules     atomic.Pointer[escalation.Rules] // Options.Escalations at first
	assessing *limits.Scheduler                // slots in which cards are assessed
	archiver  *archive.Archiver
	expiries  *expiries
	activity  activity.Watch
	endWaits  context.CancelFunc
	approvals atomic.Pointer[approvals.Approvals] // Parts.Approvals, for the session list, which is opened before

	closers []func(context.Context) // of what is open, in the order of opening
}

// OpenBroker opens a broker and subscribes its NATS gateway: it makes sure that the streams are
// there, takes over what a broker before it left undone, and then serves.
func OpenBroker(ctx context.Context, o BrokerOptions) (*Broker, error) {
	o.Options, o.ID, o.SyncedAfter = o.WithDefaults(), cmp.Or(o.ID, nuid.Next()), cmp.Or(o.SyncedAfter, 130*time.Second)
	b := &Broker{Options: o, Parts: broker.Parts{Work: background.New()}, expiries: newExpiries()}
	b.rules.Store(o.Escalations)
	b.Command = broker.New(o.Options, &b.Parts)
	err := b.openParts(ctx)
	if err == nil {
		err = b.openGateways(ctx)
	}
	if err != nil {
		b.closeParts(ctx)
		return nil, err
	}
	return b, nil
}

// openGateways opens the NATS gateway, and what other gateways keep.
func (b *Broker) openGateways(ctx context.Context) error {
	if err := b.Parts.Store.Patiently(ctx, "records of A2A", func(ctx context.Context) (err error) {
		b.A2ARecords, err = b.Parts.Store.Bucket(ctx, api.A2ABucket, "what is to be done for clients of A2A", 0)
		if err != nil {
			return err
		}
		return b.Parts.Store.Complete(ctx) // all are made, but for those of MACP
	}); err != nil {
		return err
	}
	var err error
	b.Gateway, err = natsgateway.Serve(natsgateway.Options{
		Conn: b.Options.Conn, Asked: cmp.Or(b.Options.Asked, b.Options.Conn), Shards: b.Parts.Store.Shards(), Seen: b.Available.Seen, Admit: b.admit, Sent: b.sent, MostUseless: b.Options.Limits.Useless, Flood: b.Parts.Registry.Reconnect, Isolated: b.Parts.Members.Isolated, Unread: b.Options.Metrics.Unread, Submit: b.Command.Submit, Call: b.Verbs.Call,
		Members: b.Parts.Members, ID: b.Options.ID, Key: b.Command.Key(), Alone: b.Options.Alone, Traces: b.Options.Traces, Log: b.Options.Log,
	})
	if err != nil {
		return err
	}
	ending, end := context.WithCancel(context.Background())
	b.endWaits = end
	b.Service = &gateway.Service{
		Ending: ending, CallAs: b.Gateway.CallAs, SubmitAs: b.Gateway.SubmitAs, Charge: b.charge, Fits: b.Command.Fits, Before: b.Hosted.Before, Tokens: b.Custody.Admit, Custody: b.Custody,
		WatchSession: b.watchSession, WatchInbox: b.watchInbox, Seen: b.Available.Seen, Accounts: b.Command.Accounts(), Dev: b.Options.Dev, Now: b.Options.Now, Log: b.Options.Log,
	}
	return nil
}

// admit lets a request in, and notes that its sender is there.
func (b *Broker) admit(sender performatives.Agent, id performatives.SessionID, size int) (release func(), err error) {
	b.Available.Seen(sender)
	return b.Command.Admit(sender, id, size)
}

// sent charges for an answer that left to a client.
func (b *Broker) sent(to performatives.Agent, bytes int) {
	b.Command.Accounts().Of(to).Spend(limits.BytesOut, float64(bytes))
}

// charge charges requests that a gateway answers by itself, and notes that the caller is there.
func (b *Broker) charge(caller performatives.Agent, requests int) error {
	b.Available.Seen(caller)
	return b.Command.Charge(caller, requests)
}

// Close stops receiving requests, finishes what was accepted, and leaves no work behind.
func (b *Broker) Close(ctx context.Context) error {
	stopped := b.Gateway.Stop(ctx)
	b.Parts.Approvals.StopWatches()
	b.Turns.StopWaits()
	b.closeParts(ctx)
	b.Gateway.Close()
	return stopped
}

// closeParts closes what is open, the last first: what brings work, then the work, then what the
// work needs.
func (b *Broker) closeParts(ctx context.Context) {
	for _, closes := range slices.Backward(b.closers) {
		closes(ctx)
	}
}
