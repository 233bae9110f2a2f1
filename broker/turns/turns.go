// Package turns lets agents that poll, sleep or are started by a cron take their turns: it
// finds the turn that has waited longest, claims it for one worker, and answers it.
//
//	t, err := turns.Open(ctx, turns.Options{Store: s, Look: look, Timeout: 6 * time.Hour, …})
//	if err != nil { … }
//	defer t.Close()
//	turn, err := t.Pickup(ctx, caller, api.PickUpTurn{Worker: "cron"})
//	accepted, err := t.Respond(ctx, caller, api.RespondTurn{ID: turn.Claim.ID, Worker: "cron", Performative: "ACCEPT", Body: body})
//
// Whether a turn waits follows from the session alone (session.State.TurnOf). A claim is a
// record of a bucket that all brokers share, and is changed only if it is still as it was
// read. These hold:
//   - A turn has one claim, whose id follows from the turn. It orders the workers of a
//     principal; it does not lock the session.
//   - A response names the head of the transcript that it was made for, so it is accepted
//     only while the turn waits.
//   - What a response is made of is stored before it is submitted. Whoever sends the same
//     response again, after whatever crashed, submits the same envelope.
package turns

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker/hosted"
	"github.com/parley-asp/parley/internal/background"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/store"
)

// Options say how turns are claimed.
type Options struct {
	Store *store.Store
	// OpenSessions lists the sessions of an agent that are not over. Moved is told of those that go on.
	OpenSessions func(a performatives.Agent) []OpenSession
	Alone        bool // no other broker has sessions go on
	// Participants are those of a session, as far as is known.
	Participants func(id performatives.SessionID) (all []performatives.Agent, over bool)
	// Look is a session as it is now, if the agent has a part in it.
	Look func(ctx context.Context, a performatives.Agent, id performatives.SessionID) (s session.State, at time.Time, err error)
	// Unsealed says what of a session was opened to an agent, its arbiter.
	Unsealed func(ctx context.Context, s *session.State, a performatives.Agent) (api.Unsealed, error)
	// Messages is a page of a transcript that the agent may read.
	Messages func(ctx context.Context, a performatives.Agent, q api.ListMessages) (api.Messages, error)
	// Submit submits an envelope of an agent.
	Submit func(ctx context.Context, a performatives.Agent, id performatives.SessionID, envelope []byte) (api.Acceptance, error)
	// Signer signs for a hosted agent, or refuses. It is nil where nothing is signed.
	Signer  func(ctx context.Context, a performatives.Agent) (performatives.Signer, error)
	Hosted  *hosted.Agents // makes their envelopes
	Timeout time.Duration  // of a claim; 0 is 6 hours
	// Snapshot is one view of a session. Watch reports what is delivered to an agent, WatchSession of
	// what is delivered in a session. Only Wait needs these and Member.
	Member       func(a performatives.Agent) performatives.Member // as the registry has it
	Snapshot     func(ctx context.Context, c api.Caller, q api.GetSnapshot) (api.Snapshot, error)
	Watch        func(ctx context.Context, a performatives.Agent) (changed <-chan struct{}, stop func(), err error)
	WatchSession func(ctx context.Context, id performatives.SessionID) (changed <-chan struct{}, stop func(), err error)
	Now          func() time.Time
	Log          *zap.Logger
}

// Bounds of claims.
const (
	DefaultTimeout = 6 * time.Hour
	LongestTimeout = 7 * 24 * time.Hour
	shortestLease  = time.Millisecond
	kept           = LongestTimeout + 48*time.Hour // of a record after its last change
	maxWorker      = 128                           // bytes of a worker's name
)

// Turns is open until it is closed.
type Turns struct {
	o       Options
	bucket  *store.Bucket
	private *store.Bucket
	work    *background.Group

	waiters   waiters
	given     memory
	stopped   chan struct{} // closed when those who wait are to be answered
	stopWaits sync.Once

	mu     sync.Mutex
	claims map[string]stored          // by id, those that this broker knows of
	held   map[string]map[string]bool // ids of claims, by worker
	sweep  int                        // look for those that the bucket has forgotten when there are so many

	reading chan struct{} // holds one while somebody reads what other brokers have appended
	begun   bool          // this and seen are the reader's
	seen    store.Marks   // after what the next reading of transcripts begins

	queueing sync.RWMutex
	queues   map[performatives.Agent]*queue // of those who picked up lately
}

// Open reads the claims and follows them until Close.
func Open(ctx context.Context, o Options) (*Turns, error) {
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	bucket, err := o.Store.Bucket(ctx, api.ClaimsBucket, "claims on turns", kept)
	if err != nil {
		return nil, err
	}
	private, err := o.Store.Bucket(ctx, api.PrivateBucket, "what inviters say for their own side alone", privateKept)
	if err != nil {
		return nil, err
	}
	t := &Turns{
		o: o, bucket: bucket, private: private, work: background.New(), claims: map[string]stored{}, held: map[string]map[string]bool{},
		waiters: waiters{of: map[performatives.Agent]*waiter{}}, given: memory{of: map[performatives.Agent]map[waits]remembered{}}, stopped: make(chan struct{}), reading: make(chan struct{}, 1), queues: map[performatives.Agent]*queue{},
	}
	if err := bucket.Watch(ctx, t.work, t.saw); err != nil {
		t.Close()
		return nil, err
	}
	return t, nil
}

// Close stops following the claims.
func (t *Turns) Close() { t.work.Close() }

// A claim is the record of one turn.
type claim struct {
	Session   performatives.SessionID `json:"sessionId"`
	Side      performatives.Agent     `json:"side"`
	Reference string                  `json:"referenceId,omitzero"`
	Sequence  uint64                  `json:"sequenceNumber"`
	Worker    string                  `json:"worker,omitzero"` // "" of a turn that was released
	Until     time.Time               `json:"until,omitzero"`
	Deadline  string                  `json:"deadline,omitzero"`
	Response  *hosted.Act             `json:"response,omitzero"`
	Answered  bool                    `json:"answered,omitzero"`
}

// stored is a claim at a revision of the bucket.
type stored struct {
	claim
	revision uint64
}

// of reports whether the claim is of a turn.
func (c *claim) of(turn session.Turn) bool {
	return c.Side == turn.Side && c.Sequence == turn.Sequence && c.Reference == turn.Reference
}

// held reports whether a worker has the turn at a time.
func (c *claim) held(now time.Time) bool { return c.Worker != "" && !c.Answered && now.Before(c.Until) }

// claimID is the id of the claim on a turn. It reveals nothing and cannot be chosen.
func claimID(id performatives.SessionID, turn session.Turn) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%d\n%s", id, turn.Side, turn.Sequence, turn.Reference))
	claim := uuid.UUID(sum[:16])
	claim[6], claim[8] = claim[6]&0x0f|0x80, claim[8]&0x3f|0x80 // a UUID of version 8
	return claim.String()
}

// workerName is a worker among all that may take a principal's turns.
func workerName(a performatives.Agent, worker string) (string, error) {
	if worker == "" {
		worker = api.DefaultWorker
	}
	if len(worker) > maxWorker {
		return "", session.Refuse(session.MalformedEnvelope, "/worker: has at most %d bytes", maxWorker).With(map[string]string{"path": "/worker"})
	}
	return string(a) + "#" + worker, nil
}

// saw takes a change of the bucket, perhaps of another broker.
func (t *Turns) saw(e store.Entry) {
	now := stored{revision: e.Revision}
	if err := json.Unmarshal(e.Value, &now.claim); err != nil && !e.Deleted {
		t.o.Log.Error("claim", zap.String("key", e.Key), zap.Error(err))
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	switch old, known := t.claims[e.Key]; {
	case known && e.Revision <= old.revision:
	case e.Deleted:
		t.letGo(old.Worker, e.Key)
		delete(t.claims, e.Key)
	default:
		t.letGo(old.Worker, e.Key)
		t.claims[e.Key] = now
		if now.Worker != "" && !now.Answered {
			if t.held[now.Worker] == nil {
				t.held[now.Worker] = map[string]bool{}
			}
			t.held[now.Worker][e.Key] = true
		}
		t.forgetOld()
	}
}

// letGo forgets that a worker has a claim.
func (t *Turns) letGo(worker, id string) {
	if delete(t.held[worker], id); len(t.held[worker]) == 0 {
		delete(t.held, worker)
	}
}

// heldBy are the claims of a worker, the one that ends first first.
func (t *Turns) heldBy(worker string, now time.Time) (ids []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for id := range t.held[worker] {
		if c := t.claims[id]; c.held(now) {
			ids = append(ids, id)
		} else {
			t.letGo(worker, id)
		}
	}
	slices.SortFunc(ids, func(a, b string) int {
		return cmp.Or(t.claims[a].Until.Compare(t.claims[b].Until), strings.Compare(a, b))
	})
	return ids
}

// forgetOld drops the claims that the bucket has dropped by their age, which it does not tell.
func (t *Turns) forgetOld() {
	if len(t.claims) < t.sweep {
		return
	}
	old := t.o.Now().Add(-kept)
	maps.DeleteFunc(t.claims, func(id string, c stored) bool {
		forget := !c.Until.IsZero() && c.Until.Before(old)
		if forget {
			t.letGo(c.Worker, id)
		}
		return forget
	})
	t.sweep = max(minSweep, 2*len(t.claims))
}

// minSweep is how many claims are not worth a look.
const minSweep = 1024

// known is what this broker knows of a claim; another may have changed it since.
func (t *Turns) known(id string) (stored, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c, ok := t.claims[id]
	return c, ok
}

// find reads a claim from the bucket.
func (t *Turns) find(ctx context.Context, id string) (c stored, ok bool, err error) {
	if uuid.Validate(id) != nil {
		return c, false, nil //nolint:nilerr // nothing has such an id
	}
	e, err := t.bucket.Get(ctx, id)
	if errors.Is(err, store.ErrNoKey) {
		return c, false, nil
	}
	if err != nil {
		return c, false, err
	}
	t.saw(e)
	c.revision = e.Revision
	return c, true, json.Unmarshal(e.Value, &c.claim)
}

// write stores a claim if it is still as it was read, or returns store.ErrConflict.
func (t *Turns) write(ctx context.Context, id string, c *stored) error {
	data, err := json.Marshal(c.claim, json.Deterministic(true))
	if err != nil {
		return err
	}
	var revision uint64
	if c.revision == 0 {
		revision, err = t.bucket.Create(ctx, id, data)
	} else {
		revision, err = t.bucket.Update(ctx, id, data, c.revision)
	}
	if errors.Is(err, store.ErrKeyExists) {
		return store.ErrConflict
	}
	if err != nil {
		return err
	}
	c.revision = revision
	t.saw(store.Entry{Key: id, Value: data, Revision: revision})
	return t.bucket.Sync()
}
