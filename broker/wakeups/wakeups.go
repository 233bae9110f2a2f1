// Package wakeups calls URLs, or NATS subjects, of principals when something is delivered to them, so
// that agents which sleep need no open connection.
//
//	w, err := wakeups.Open(ctx, wakeups.Options{Store: s, Look: look, Client: client, Check: check, …})
//	if err != nil { … }
//	defer w.Close()
//	set, err := w.Set(ctx, caller, api.SetWakeup{URL: "https://acme.com/wake"})
//
// What is set is a row of a bucket that all brokers share. Each row names a durable consumer on the
// inboxes: nothing is lost over a restart, no row waits for another, and any number of brokers share
// the calls. A call is repeated until it is answered, with the same id.
package wakeups

import (
	"context"
	"crypto/cipher"
	"crypto/rand"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"go.uber.org/zap"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/internal/background"
	"github.com/parley-asp/parley/internal/outbound"
	"github.com/parley-asp/parley/internal/sealing"
	"github.com/parley-asp/parley/internal/webhook"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/store"
)

// Options say who is called, and how.
type Options struct {
	Store  *store.Store
	Secret []byte // of the installation: rows are sealed under a key that derives from it; nil sets none
	// Look is a session as it is now, if the agent has a part in it.
	Look   func(ctx context.Context, a performatives.Agent, id performatives.SessionID) (s session.State, at time.Time, err error)
	Member func(a performatives.Agent) performatives.Member // as the registry has it
	Client *http.Client                                     // makes the calls
	Check  func(url string) error                           // refuses a URL that Client would not reach
	Now    func() time.Time
	Log    *zap.Logger
}

// Bounds of wakeups.
const (
	Attempt     = 5 * time.Second // of a call
	maxRows     = 64              // of a principal
	maxUnderWay = 8               // calls of a row
	maxPending  = 1024            // entries of a row that were not told yet: those under way, and those that are told again
	giveUp      = 72 * time.Hour  // after an entry was delivered
	shortest    = time.Second     // pause before a call is repeated; it doubles
	longest     = time.Hour
	ackWait     = 2 * Attempt
	pullExpiry  = 5 * time.Second
)

// bounds are those of the calls that are under way. The others wait in their consumers.
var bounds = outbound.Bounds{All: 128, Principal: 8, Host: 8, Server: 4, Failures: 5, Pause: 30 * time.Second}

// Wakeups are open until they are closed.
type Wakeups struct {
	o      Options
	seal   cipher.AEAD // nil sets nothing
	bucket *store.Bucket
	work   *background.Group
	calls  *outbound.Pool

	mu   sync.Mutex
	rows map[string]*row
}

// Open reads what is set, and follows it until Close.
func Open(ctx context.Context, o Options) (*Wakeups, error) {
	bucket, err := o.Store.Bucket(ctx, api.WakeupsBucket, "URLs that are called for principals", 0)
	if err != nil {
		return nil, err
	}
	seal, err := sealing.New(o.Secret, purpose)
	if err != nil {
		return nil, err
	}
	w := &Wakeups{o: o, seal: seal, bucket: bucket, work: background.New(), calls: outbound.New(bounds), rows: map[string]*row{}}
	if err := bucket.Watch(ctx, w.work, w.saw); err != nil {
		w.Close()
		return nil, err
	}
	return w, nil
}

// Close makes no more calls. Another broker, or the next start, makes those that were not answered.
func (w *Wakeups) Close() { w.work.Close() }

// Set answers wakeup.set.
func (w *Wakeups) Set(ctx context.Context, c api.Caller, q api.SetWakeup) (api.Wakeup, error) {
	if c.Operator {
		return api.Wakeup{}, session.Refuse(session.Unauthorized, "an operator has no inbox")
	}
	over := false
	if q.Session != "" {
		s, _, err := w.o.Look(ctx, c.Agent, q.Session)
		if err != nil {
			return api.Wakeup{}, err
		}
		over = s.Phase.Over()
	}
	at := key(c.Agent, q.Session)
	if q.URL == "" && q.Subject == "" {
		return api.Wakeup{Session: q.Session}, w.unset(ctx, at)
	}
	if over {
		return api.Wakeup{}, session.Refuse(session.WrongState, "the session is over: there is nothing more to be told of")
	}
	to, err := w.target(c.Agent, q)
	if err != nil {
		return api.Wakeup{}, err
	}
	set := api.Wakeup{Session: q.Session, URL: q.URL, Subject: q.Subject, Turns: q.Turns}
	if q.Secret == "" && !webhook.IsSecret(q.Token) {
		set.Secret = webhook.Text(to.Secret)
	}
	one := &row{Agent: c.Agent, Session: q.Session, Turns: q.Turns}
	if err := w.close(at, one, to); err != nil {
		return api.Wakeup{}, err
	}
	if err := w.bucket.CatchUp(ctx); err != nil { // or those set just now are not counted
		return api.Wakeup{}, err
	}
	if n := w.others(c.Agent, at); n >= maxRows {
		return api.Wakeup{}, api.RateLimited("wakeups", time.Hour, "you have %d wakeups, which is the most: set some without a url and a subject", n)
	}
	for {
		if err := w.put(ctx, at, one); !errors.Is(err, store.ErrConflict) {
			return set, err
		}
	}
}

// put stores a row, unless what is stored changes meanwhile: that is ErrConflict.
func (w *Wakeups) put(ctx context.Context, at string, one *row) error {
	old, err := w.stored(ctx, at)
	if err != nil {
		return err
	}
	one.Consumer = old.Consumer
	if old.revision == 0 {
		one.Consumer = "wakeup-" + rand.Text()
	}
	if _, err := w.queue(ctx, one); err != nil { // from here on, what is delivered is told
		return err
	}
	data, err := json.Marshal(one)
	if err != nil {
		return err
	}
	if old.revision > 0 {
		_, err = w.bucket.Update(ctx, at, data, old.revision)
	} else if _, err = w.bucket.Create(ctx, at, data); errors.Is(err, store.ErrKeyExists) {
		err = store.ErrConflict
	}
	if err != nil {
		return err
	}
	return w.bucket.Sync()
}

// unset removes a row, if it is there.
func (w *Wakeups) unset(ctx context.Context, at string) error {
	for {
		old, err := w.stored(ctx, at)
		if err != nil || old.revision == 0 {
			return err
		}
		if err := w.remove(ctx, at, old); !errors.Is(err, store.ErrConflict) {
			return err
		}
	}
}

// stored is a row as the bucket has it; its revision is 0 if it is not there.
func (w *Wakeups) stored(ctx context.Context, at string) (*row, error) {
	e, err := w.bucket.Get(ctx, at)
	if errors.Is(err, store.ErrNoKey) {
		return &row{}, nil
	}
	if err != nil {
		return nil, err
	}
	r := &row{revision: e.Revision}
	return r, json.Unmarshal(e.Value, r)
}

// others counts the rows of a principal besides one.
func (w *Wakeups) others(a performatives.Agent, but string) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for at, r := range w.rows {
		if r.Agent == a && at != but {
			n++
		}
	}
	return n
}

// remove takes a row away with its consumer, unless its principal has set another meanwhile: that
// is ErrConflict.
func (w *Wakeups) remove(ctx context.Context, at string, r *row) error {
	if err := w.bucket.DeleteIf(ctx, at, r.revision); err != nil {
		return err
	}
	return w.o.Store.RemoveConsumers(ctx, api.InboxStream, api.InboxOf(r.Agent), r.Consumer)
}

// queue opens the consumer of a row, which is made if it is not there.
func (w *Wakeups) queue(ctx context.Context, r *row) (*store.Queue, error) {
	subject := api.InboxOf(r.Agent)
	if r.Session != "" {
		subject = api.Inbox(r.Agent, r.Session)
	}
	return w.o.Store.Queue(ctx, store.QueueConfig{
		Stream: api.InboxStream, Name: r.Consumer, Subject: subject, AckWait: ackWait, MaxAckPending: maxPending,
		New: true, Idle: giveUp,
	})
}

// saw takes a change of the bucket, perhaps of another broker.
func (w *Wakeups) saw(e store.Entry) {
	now := &row{revision: e.Revision}
	if !e.Deleted {
		err := json.Unmarshal(e.Value, now)
		if err == nil {
			err = w.open(e.Key, now)
		}
		if err != nil {
			w.o.Log.Error("wakeup", zap.String("key", e.Key), zap.Error(err))
			return
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if old := w.rows[e.Key]; old != nil {
		old.stop()
		delete(w.rows, e.Key)
	}
	if e.Deleted {
		return
	}
	running, stop := context.WithCancel(w.work.Context())
	now.stop = stop
	w.rows[e.Key] = now
	w.work.Go(func(context.Context) { w.follow(running, e.Key, now) })
}

// Forget removes all that a principal has set: whoever is registered under its URI later is not told
// of by it.
func (w *Wakeups) Forget(ctx context.Context, a performatives.Agent) error {
	if err := w.bucket.CatchUp(ctx); err != nil { // another broker may have set some
		return err
	}
	var all []string
	w.mu.Lock()
	for at, r := range w.rows {
		if r.Agent == a {
			all = append(all, at)
		}
	}
	w.mu.Unlock()
	for _, at := range all {
		if err := w.unset(ctx, at); err != nil {
			return err
		}
	}
	return nil
}
