package a2agateway

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"reflect"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"go.uber.org/zap"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/custody"
	"github.com/parley-asp/parley/hosted"
	"github.com/parley-asp/parley/internal/background"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// Records keep what is to be done once a session goes on.
type Records interface {
	All(ctx context.Context, pattern string, saw func(key string, data []byte, revision uint64)) error
	Get(ctx context.Context, key string) (data []byte, revision uint64, err error)
	Put(ctx context.Context, key string, data []byte) (revision uint64, err error)
	Update(ctx context.Context, key string, data []byte, at uint64) (revision uint64, changed bool, err error)
	Delete(ctx context.Context, key string) error
	DeleteIf(ctx context.Context, key string, at uint64) error
}

// A record is what is to be done for a caller: an act that waits for the invitation to be
// accepted, or notifications of a task. It ends with the token by which the caller asked for it.
type record struct {
	Session performatives.SessionID `json:"sessionId"`
	Caller  performatives.Agent     `json:"caller"`
	Agent   performatives.Agent     `json:"agent"`
	Token   string                  `json:"token,omitzero"` // its id; "" under --dev
	Said    *hosted.Said            `json:"said,omitzero"`
	Push    *pushRecord             `json:"push,omitzero"`

	revision uint64
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
				f.o.Log.Debug("a2a records", zap.Error(err))
			}
		}
	})
	return nil
}

// sweep follows what this broker is to follow.
func (f *followers) sweep(ctx context.Context) error {
	for _, kind := range []string{heldKind, pushKind} {
		if err := f.o.Records.All(ctx, kind+">", func(key string, data []byte, revision uint64) {
			r, err := readRecord(data, revision)
			if err != nil {
				f.o.Log.Error("a2a record", zap.String("key", key), zap.Error(err))
				return
			}
			f.follow(key, r)
		}); err != nil {
			return err
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
	r.revision, err = f.o.Records.Put(ctx, key, data)
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

// run follows a session until the record is done.
func (f *followers) run(ctx context.Context, key string, r record) {
	c := call{pass: custody.Pass{Agent: r.Caller}, agent: r.Agent}
	step := f.notify
	if r.Said != nil {
		step = f.say
	}
	done := false
	for ctx.Err() == nil && !done {
		if err := f.watch(ctx, r.Session, func() bool {
			if !f.o.Owns(r.Session) {
				done = true // another broker finds it
				return false
			}
			over, err := f.ended(ctx, r)
			if err == nil && !over {
				over, err = step(ctx, key, c, &r)
			}
			if err != nil {
				f.o.Log.Debug("a2a record", zap.String("key", key), zap.Error(err))
				return false // and again, after a while
			}
			if over {
				done = f.o.Records.DeleteIf(ctx, key, r.revision) == nil
			}
			return !over
		}); err == nil && done {
			return
		}
		background.Pause(ctx, retryWait) //nolint:errcheck // the loop looks
	}
}

// ended tells whether the token of a record lets nobody in any more.
func (f *followers) ended(ctx context.Context, r record) (bool, error) {
	if r.Token == "" {
		return false, nil
	}
	valid, err := f.o.Custody.ValidToken(ctx, r.Token)
	return !valid, err
}

// newRecord is a record of what a caller asks for.
func newRecord(c call, id performatives.SessionID) record {
	r := record{Session: id, Caller: c.pass.Agent, Agent: c.agent}
	if c.pass.Removed != nil {
		r.Token = c.pass.Worker
	}
	return r
}

// hold has an act said once a session's invitation is accepted.
func (f *followers) hold(ctx context.Context, c call, id performatives.SessionID, said hosted.Said) error {
	r := newRecord(c, id)
	r.Said = &said
	key := heldKind + r.key("")
	data, revision, err := f.o.Records.Get(ctx, key)
	if err != nil {
		return err
	}
	was, err := readRecord(data, revision)
	switch {
	case err != nil || was.Said == nil:
		if err := f.store(ctx, key, &r); err != nil {
			return err
		}
	case !reflect.DeepEqual(*was.Said, said):
		return session.Refuse(session.Duplicate, "something else waits under this messageId for the invitation to be accepted")
	default:
		r = was
	}
	f.follow(key, r)
	return nil
}

// say says an act that waits, if the session is open. What is refused then is not said.
func (f *followers) say(ctx context.Context, key string, c call, r *record) (done bool, err error) {
	var view api.SessionView
	err = f.ask(ctx, r.Caller, api.SessionGet.Verb, api.GetSession{Session: r.Session}, &view)
	if refused(err) {
		return true, nil
	}
	if err != nil || view.State.Over() || view.State == session.Invited || view.State == session.Escalated {
		return err == nil && view.State.Over(), err
	}
	_, err = f.o.Hosted.Say(ctx, c.pass.Agent, r.Session, "a2a "+key, *r.Said)
	if refused(err) {
		f.o.Log.Info("a first message was refused", zap.String("session", string(r.Session)), zap.Error(err))
		return true, nil
	}
	return err == nil, err
}

// refused tells a refusal that stays one from trouble that passes.
func refused(err error) bool {
	_, is := errors.AsType[*session.Refusal](err)
	return is && !retryable(err)
}

// webhooks are the notifications of a caller for a task, by key.
func (f *followers) webhooks(ctx context.Context, c call, id performatives.SessionID) (map[string]record, error) {
	found := map[string]record{}
	err := f.o.Records.All(ctx, pushKind+string(id)+".*", func(key string, data []byte, revision uint64) {
		if r, err := readRecord(data, revision); err == nil && r.Caller == c.pass.Agent && r.Agent == c.agent && r.Push != nil {
			found[key] = r
		}
	})
	return found, err
}
