package a2agateway

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"go.uber.org/zap"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/gateway"
	"github.com/parley-asp/parley/internal/background"
	"github.com/parley-asp/parley/internal/outbound"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/store"
)

// What is to be done once a session goes on is kept in a bucket. There are few records at a time.

// record is a record's data and revision; without one, data is nil.
func (g *Gateway) record(ctx context.Context, key string) (data []byte, revision uint64, err error) {
	e, err := g.o.Records.Get(ctx, key)
	if errors.Is(err, store.ErrNoKey) {
		return nil, 0, nil
	}
	return e.Value, e.Revision, err
}

// put writes a record, as durably as an act that is accepted.
func (g *Gateway) put(ctx context.Context, key string, data []byte) (revision uint64, err error) {
	if revision, err = g.o.Records.Put(ctx, key, data); err != nil {
		return 0, err
	}
	return revision, g.o.Records.Sync()
}

// A record is what is to be done for a caller: an act that waits for the invitation to be
// accepted, or notifications of a task. It ends with the token by which the caller asked for it.
type record struct {
	Session performatives.SessionID `json:"sessionId"`
	Caller  performatives.Agent     `json:"caller"`
	Agent   performatives.Agent     `json:"agent"`
	Token   string                  `json:"token,omitzero"` // its id; "" under --dev
	Said    *api.Say                `json:"said,omitzero"`
	Refused *api.Error              `json:"refused,omitzero"` // why Said was not taken when it was said
	Push    *pushRecord             `json:"push,omitzero"`

	revision uint64
	tries    int // to tell the webhook of what it does not know
}

// Kinds of records, with which their keys begin.
const (
	heldKind = "held."
	pushKind = "push."
)

// key is that of a record. No client chooses any of it.
func (r record) key(name string) string {
	sum := sha256.Sum256([]byte(string(r.Caller) + "\n" + string(r.Agent) + "\n" + name))
	return string(r.Session) + "." + hex.EncodeToString(sum[:12])
}

// followers follow the sessions of records, each on the broker that owns the session.
type followers struct {
	*Gateway
	pushes  *outbound.Pool
	mu      sync.Mutex
	running map[string]*follower // by key
}

// A follower does what one record says.
type follower struct{ cancel context.CancelFunc }

// sweepEvery is how often records are looked for whose session another broker owned.
const sweepEvery = 15 * time.Second

func (f *followers) open(ctx context.Context) error {
	if err := f.sweep(ctx); err != nil {
		return err
	}
	f.work.Go(func(ctx context.Context) {
		for background.Pause(ctx, sweepEvery) == nil {
			if err := f.sweep(ctx); err != nil {
				f.o.Service.Log.Debug("a2a records", zap.Error(err))
			}
		}
	})
	return nil
}

// sweep follows what this broker is to follow.
func (f *followers) sweep(ctx context.Context) error {
	for _, kind := range []string{heldKind, pushKind} {
		found, err := f.o.Records.Records(ctx, kind+">")
		if err != nil {
			return err
		}
		for _, m := range found {
			if r, err := readRecord(m.Data, m.Sequence); err != nil {
				f.o.Service.Log.Error("a2a record", zap.String("key", m.Subject), zap.Error(err))
			} else {
				f.follow(m.Subject, r)
			}
		}
	}
	return nil
}

func readRecord(data []byte, revision uint64) (record, error) {
	r := record{revision: revision}
	return r, json.Unmarshal(data, &r)
}

func (f *followers) store(ctx context.Context, key string, r *record) error {
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	r.revision, err = f.put(ctx, key, data)
	return err
}

// follow does in the background what a record says, unless that is done already.
func (f *followers) follow(key string, r record) {
	if !f.o.Owns(r.Session) {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.running[key] != nil {
		return
	}
	ctx, cancel := context.WithCancel(f.ctx)
	own := &follower{cancel}
	f.running[key] = own
	if !f.work.Go(func(context.Context) {
		defer f.stop(key, own)
		f.run(ctx, key, r)
	}) {
		cancel()
		delete(f.running, key)
	}
}

// stop stops following for a record: whoever does, or only this follower.
func (f *followers) stop(key string, only ...*follower) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if own := f.running[key]; own != nil && (len(only) == 0 || only[0] == own) {
		own.cancel()
		delete(f.running, key)
	}
}

// retryWait is between attempts that are refused for now.
const retryWait = time.Second

// later is an error after which a step is tried again in a while.
type later struct {
	error
	pause time.Duration
}

// run follows a session until the record is done.
func (f *followers) run(ctx context.Context, key string, r record) {
	c := call{Caller: f.o.Service.As(r.Caller), to: r.Agent}
	step := f.notify
	if r.Said != nil {
		step = f.say
	}
	done, pause := false, retryWait
	for ctx.Err() == nil && !done {
		if err := f.watch(ctx, r.Session, func() bool {
			if !f.o.Owns(r.Session) {
				done = true // another broker finds it
				return false
			}
			over, err := f.ended(ctx, r)
			if err == nil && !over {
				if over, err = step(ctx, key, c, &r); refused(err) {
					over, err = true, nil
				}
			}
			if err != nil {
				f.o.Service.Log.Debug("a2a record", zap.String("key", key), zap.Error(err))
				if again, is := errors.AsType[*later](err); is {
					pause = again.pause
				}
				return false // and again, after a while
			}
			if over {
				err := f.o.Records.DeleteIf(ctx, key, r.revision)
				done = err == nil || errors.Is(err, store.ErrConflict) // one that has changed stays
			}
			return !over
		}); err == nil && done {
			return
		}
		background.Pause(ctx, pause) //nolint:errcheck // the loop looks
		pause = retryWait
	}
}

// ended reports whether the token of a record lets nobody in any more.
func (f *followers) ended(ctx context.Context, r record) (bool, error) {
	if r.Token == "" {
		return false, nil
	}
	valid, err := f.o.Service.Custody.ValidToken(ctx, r.Token)
	return !valid, err
}

// newRecord is a record of what a caller asks for.
func newRecord(c call, id performatives.SessionID) record {
	r := record{Session: id, Caller: c.Agent, Agent: c.to}
	if c.Removed != nil {
		r.Token = c.Worker
	}
	return r
}

// hold has an act said once a session's invitation is accepted.
func (f *followers) hold(ctx context.Context, c call, id performatives.SessionID, said api.Say) error {
	r := newRecord(c, id)
	r.Said = &said
	key := heldKind + r.key("")
	data, revision, err := f.record(ctx, key)
	if err != nil {
		return err
	}
	was, err := readRecord(data, revision)
	if err == nil && was.Said != nil {
		r = was
	} else if err := f.store(ctx, key, &r); err != nil {
		return err
	}
	f.follow(key, r)
	return nil
}

// say says an act that waits, if the session is open. That it was refused stays in the record until the
// session has gone on, so that its task says so.
func (f *followers) say(ctx context.Context, key string, c call, r *record) (done bool, err error) {
	view, err := c.View(ctx, r.Session)
	if err == nil && r.Refused != nil {
		return view.State != session.Introduced && view.State != session.Conversing, nil
	}
	if err != nil || view.State.Over() || view.State == session.Invited || view.State == session.Escalated {
		return err == nil && view.State.Over(), err
	}
	said := *r.Said
	said.Session, said.Key = r.Session, "a2a "+key
	_, err = c.Say(ctx, said)
	if refused(err) {
		f.o.Service.Log.Info("a first message was refused", zap.String("session", string(r.Session)), zap.Error(err))
		reply, with := api.Refused(f.o.Service.Refusal(err)), *r
		with.Refused = &reply.Error
		if err := f.store(ctx, key, &with); err != nil {
			return false, err
		}
		*r = with
		return false, nil
	}
	return err == nil, err
}

// refused tells a refusal that stays one from trouble that passes.
func refused(err error) bool {
	_, is := errors.AsType[*session.Refusal](err)
	return is && !gateway.Passing(err)
}

// webhooks are the notifications of a caller for a task, by key.
func (f *followers) webhooks(ctx context.Context, c call, of ref) (map[string]record, error) {
	messages, err := f.o.Records.Records(ctx, pushKind+string(of.session)+".*")
	found := map[string]record{}
	for _, m := range messages {
		if r, err := readRecord(m.Data, m.Sequence); err == nil && r.Caller == c.Agent && r.Agent == c.to && r.Push != nil && r.ref() == of {
			found[m.Subject] = r
		}
	}
	return found, err
}
