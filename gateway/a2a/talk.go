package a2agateway

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"sync"

	"github.com/go-json-experiment/json"
	"go.uber.org/zap"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/internal/background"
	"github.com/parley-asp/parley/performatives"
)

// A talk is with one agent. What arrives in its inbox names the sessions of which its server is to be told, each in a
// lane of its own: a session in which the server fails, or is slow, holds up no other.
type talk struct {
	*Remotes
	remote
	cancel context.CancelFunc
	places chan struct{} // one for each lane
	moved  chan struct{} // what is saved has changed

	mu      sync.Mutex
	server  *server                            // nil until its card was read
	cursor  uint64                             // in the inbox; of what is before it the server was told, or it is pending
	pending map[performatives.SessionID]uint64 // the first entry of each session of which the server is not told yet
	lanes   map[performatives.SessionID]*lane  // the same sessions

	saving     sync.Mutex
	saved      map[string][]byte
	connecting sync.Mutex
}

// maxLanes bounds the sessions of which an agent's server is still to be told. With more, nothing is read.
const maxLanes = 4096

func newTalk(r *Remotes, with remote, cancel context.CancelFunc) *talk {
	return &talk{
		Remotes: r, remote: with, cancel: cancel, places: make(chan struct{}, maxLanes), moved: make(chan struct{}, 1),
		pending: map[performatives.SessionID]uint64{}, lanes: map[performatives.SessionID]*lane{},
		saved: map[string][]byte{},
	}
}

// Kinds of records of talks.
const (
	cursorKind  = "cursor."
	pendingKind = "pending."
	contextKind = "context."
)

func (t *talk) key(kind, name string) string {
	sum := sha256.Sum256([]byte(string(t.agent) + "\n" + name))
	return kind + hex.EncodeToString(sum[:16])
}

// load reads a record; it leaves what there is none of as it is.
func (t *talk) load(ctx context.Context, kind string, value any) error {
	data, _, err := t.o.Gateway.record(ctx, t.key(kind, ""))
	if err == nil && len(data) > 0 {
		err = json.Unmarshal(data, value)
	}
	return err
}

// run reads the inbox, in order, and waits for more.
func (t *talk) run(ctx context.Context) {
	log := t.o.Gateway.o.Service.Log.With(zap.String("agent", string(t.agent)))
	ctx, cancel := context.WithCancel(ctx)
	var lanes sync.WaitGroup
	defer lanes.Wait()
	defer cancel()
	pending := map[performatives.SessionID]uint64{}
	err := t.load(ctx, cursorKind, &t.cursor)
	if err == nil {
		err = t.load(ctx, pendingKind, &pending)
	}
	if err != nil {
		log.Error("a2a remote cursor", zap.Error(err))
		return
	}
	maps.Copy(t.pending, pending) // all of them, so that none is left out where one is saved
	for id, first := range pending {
		if t.tell(ctx, &lanes, id, first) != nil {
			return
		}
	}
	cursor := t.cursor
	inbox, err := t.o.Gateway.o.Service.As(t.agent).FollowInbox(ctx, &cursor)
	if err != nil {
		log.Warn("a2a remote inbox", zap.Error(err))
		return
	}
	defer inbox.Close()
	lanes.Go(func() {
		for background.Await(ctx, t.moved) == nil {
			t.save(ctx)
		}
	})
	for ctx.Err() == nil {
		if inbox.Read(ctx, func(page []api.InboxMessage) error { return t.deliver(ctx, &lanes, page) }) != nil {
			return // and it begins again
		}
		select {
		case <-inbox.Changed:
		case <-ctx.Done():
		}
	}
}

// deliver tells the lanes what there is.
func (t *talk) deliver(ctx context.Context, lanes *sync.WaitGroup, page []api.InboxMessage) error {
	for _, m := range page {
		if e, err := api.ReadEntry(m.Envelope, m.Sealed); err == nil { // else no version of ours wrote it
			if err := t.tell(ctx, lanes, e.Session, e.Sequence); err != nil {
				return err
			}
		}
		t.mu.Lock()
		t.cursor = m.Cursor + 1
		t.mu.Unlock()
		t.move()
	}
	return ctx.Err()
}

// tell has a session's lane tell the server of an entry and of what follows it.
func (t *talk) tell(ctx context.Context, lanes *sync.WaitGroup, id performatives.SessionID, first uint64) error {
	t.mu.Lock()
	if l, runs := t.lanes[id]; runs {
		l.seen = max(l.seen, first)
		select {
		case l.more <- struct{}{}:
		default: // it knows already
		}
		t.mu.Unlock()
		return nil
	}
	t.mu.Unlock()
	select {
	case t.places <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	l := &lane{talk: t, session: id, seen: first, next: first, more: make(chan struct{}, 1)}
	t.mu.Lock()
	t.lanes[id], t.pending[id] = l, first
	t.mu.Unlock()
	lanes.Go(func() {
		defer func() { <-t.places }()
		l.run(ctx)
	})
	return nil
}

// move has the position saved.
func (t *talk) move() {
	select {
	case t.moved <- struct{}{}:
	default:
	}
}

// save notes how far the server was told: first what is pending, without which the cursor would leave it out.
func (t *talk) save(ctx context.Context) {
	t.saving.Lock()
	defer t.saving.Unlock()
	t.mu.Lock()
	cursor, pending := t.cursor, maps.Clone(t.pending)
	t.mu.Unlock()
	for _, r := range []struct {
		kind  string
		value any
	}{{pendingKind, pending}, {cursorKind, cursor}} {
		data, err := json.Marshal(r.value, json.Deterministic(true))
		for err == nil && !bytes.Equal(t.saved[r.kind], data) {
			if _, err := t.o.Gateway.put(ctx, t.key(r.kind, ""), data); err == nil {
				t.saved[r.kind] = data
			} else if background.Pause(ctx, retryWait) != nil {
				return
			}
		}
	}
}

// connected is the agent's server, whose card is read first.
func (t *talk) connected(ctx context.Context) (*server, error) {
	t.connecting.Lock()
	defer t.connecting.Unlock()
	t.mu.Lock()
	s := t.server
	t.mu.Unlock()
	if s != nil {
		return s, nil
	}
	s, err := t.connect(ctx)
	if err == nil {
		t.mu.Lock()
		t.server = s
		t.mu.Unlock()
	}
	return s, err
}

// disconnect has the card read again.
func (t *talk) disconnect() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.server = nil
}
