package broker

import (
	"cmp"
	"context"
	"time"

	"github.com/nats-io/nats.go"
	"go.uber.org/zap"

	"github.com/parley-asp/parley/archive"
	"github.com/parley-asp/parley/domainproof"
	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/ledger"
	"github.com/parley-asp/parley/modes"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// ClockSkew is how far an envelope's timestamp may be from the broker's clock.
const ClockSkew = 5 * time.Minute

// ackTimeout is how long the broker waits for an entry or a copy of one to be
// acknowledged before it looks what happened.
const ackTimeout = 5 * time.Second

// Options say how a broker runs.
type Options struct {
	Conn   *nats.Conn           // to the account that holds JetStream and nobody but brokers
	Signer performatives.Signer // signs receipts; all brokers of one installation share it
	Dev    bool                 // anyone is anyone: unsigned acts are heard, strangers registered
	Alone  bool                 // no other broker can be running: its work is taken over at once

	Replicas    int               // of each stream; 0 is as many as it has, 1 for a new one
	Modes       session.Modes     // nil is all
	Escalations *escalation.Rules // who decides what; checked; nil is everybody who may

	Policy       performatives.Policy // zero fields are the defaults of PROTOCOL.md
	Limits       Limits               // of one principal; zero fields are defaults
	ClaimTimeout time.Duration        // of a claim on a turn; 0 is 6 h

	InboxAge time.Duration    // how long inbox copies are kept; 0 is as long as they are, 7 days at first
	Lag      time.Duration    // of timers and session rows behind transcripts; 0 is 2 s, below zero none
	Archive  archive.Policy   // when sessions that are over leave the transcripts' stream
	Log      *zap.Logger      // nil is silent
	Now      func() time.Time // nil is time.Now

	// Durable, if there is one, returns once what a stream has acknowledged is on disk, the message with
	// a sequence in particular, 0 for none. It is for what cannot be derived again, which is
	// answered after it. Nil: an acknowledgement is all that there is to wait for.
	Durable func(stream string, sequence uint64) error

	// SyncedAfter is how long the server may take to have on disk what it acknowledged; 0 is the 2 minutes of
	// its default, and some. What was derived before is there after a power failure.
	SyncedAfter time.Duration

	// ID names this broker among those that share the work; "" has one made. It is one token.
	ID string

	// Silent, if there is one, hears of another broker that has said nothing for 3 seconds, by its
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

	// Reserved are the installation's own keys, besides Signer's: no principal is registered with one.
	Reserved []performatives.Key

	// Secret is one that all brokers of the installation share. Hosted keys are sealed by it;
	// nil hosts nothing.
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

func (o Options) withDefaults() Options {
	or := func(ms *int64, d time.Duration) {
		if *ms == 0 {
			*ms = d.Milliseconds()
		}
	}
	p := &o.Policy
	p.Format = performatives.Format
	or(&p.InvitationTimeout, session.DefaultInvitationTimeout)
	or(&p.MaxDuration, session.DefaultMaxDuration)
	or(&p.EscalationLow, escalation.DefaultLow)
	or(&p.EscalationMedium, escalation.DefaultMedium)
	or(&p.EscalationHigh, escalation.DefaultHigh)
	or(&p.EscalationCritical, escalation.DefaultCritical)
	or(&p.MaxPaused, escalation.MaxPaused)
	or(&p.ParkedTimeout, session.DefaultParked)
	o.Limits = o.Limits.withDefaults()
	o.SyncedAfter = cmp.Or(o.SyncedAfter, 130*time.Second)
	if o.Modes == nil {
		o.Modes = modes.All()
	}
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	if o.Prove == nil {
		o.Prove = domainproof.New().Prove
	}
	now := o.Now
	if now == nil {
		now = time.Now
	}
	// Transcripts have wall time only, and a replay must come to the same: times
	// without a monotonic reading compare and subtract by the wall clock.
	o.Now = func() time.Time { return now().Round(0) }
	return o
}
