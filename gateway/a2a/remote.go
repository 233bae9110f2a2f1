package a2agateway

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"go.uber.org/zap"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/internal/background"
	"github.com/parley-asp/parley/internal/outbound"
	"github.com/parley-asp/parley/performatives"
)

// Remotes let agents that speak A2A elsewhere take part as principals: what arrives in the
// inbox of one is sent to its server, and what that answers is said by its hosted key.
//
//	r := a2agateway.NewRemotes(a2agateway.RemoteOptions{Gateway: g, Agents: b.RemoteAgents, …})
//	defer r.Close()
//
// The broker that owns an agent, and no other, talks to it, one message after the other. The
// position in the inbox is durable; a message that is sent again after a crash has the same
// messageId, and its answer makes the same act.
type Remotes struct {
	o      RemoteOptions
	client *http.Client
	work   *background.Group

	mu      sync.Mutex
	running map[performatives.Agent]*talk
}

// RemoteOptions say what is run.
type RemoteOptions struct {
	Gateway *Gateway // whose broker and records it uses
	Private bool     // servers elsewhere may be at private addresses

	// Agents lists the cards that name a server elsewhere, if anything changed since a revision.
	Agents func(since uint64) (cards []api.Card, revision uint64)
}

// lookEvery is how often new agents are looked for.
const lookEvery = time.Second

// NewRemotes starts talking.
func NewRemotes(o RemoteOptions) *Remotes {
	client := remoteClient(o.Private)
	client.Transport = outbound.New(talkBounds).Transport(client.Transport)
	r := &Remotes{o: o, client: client, work: background.New(), running: map[performatives.Agent]*talk{}}
	r.work.Go(func(ctx context.Context) {
		var cards []api.Card
		var revision uint64
		for first := true; ; first = false {
			if changed, now := o.Agents(revision); first || now != revision {
				cards, revision = changed, now
			}
			r.run(cards)
			if background.Pause(ctx, lookEvery) != nil {
				return
			}
		}
	})
	return r
}

// Close stops talking.
func (r *Remotes) Close() { r.work.Close() }

// run talks to the agents that this broker owns, as their cards are now, and to no others. A talk
// that has ended begins again.
func (r *Remotes) run(cards []api.Card) {
	r.mu.Lock()
	defer r.mu.Unlock()
	wanted := map[performatives.Agent]remote{}
	for _, card := range cards {
		if r.o.Gateway.o.Owns(performatives.SessionID(card.Agent)) {
			wanted[card.Agent] = remote{r.client, card.Agent, card.Registry.A2A, card.Registry.A2AUnsigned}
		}
	}
	for a, t := range r.running {
		if wanted[a] != t.remote {
			t.cancel()
		}
	}
	for a, want := range wanted {
		if r.running[a] == nil {
			r.start(want)
		}
	}
}

// start talks to an agent in the background. There is one talk with it at a time.
func (r *Remotes) start(with remote) {
	ctx, cancel := context.WithCancel(r.work.Context())
	t := &talk{Remotes: r, remote: with, cancel: cancel}
	if !r.work.Go(func(context.Context) {
		t.run(ctx)
		cancel()
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.running, with.agent)
	}) {
		cancel()
		return
	}
	r.running[with.agent] = t
}

// A talk is with one agent.
type talk struct {
	*Remotes
	remote
	cancel   context.CancelFunc
	server   *server // nil until its card was read
	failures int     // in a row: the circuit breaker's
}

// AnswerWithin is how long an agent elsewhere has to answer one request.
const AnswerWithin = 30 * time.Second

// talkBounds are those of the requests that are under way. They may take long, and each talk has a
// circuit breaker.
var talkBounds = outbound.Bounds{All: 256, Principal: 64, Host: 64, Server: 64}

// Bounds of a talk.
const (
	workWithin = 2 * time.Minute // of a task that its server works on
	maxBreak   = time.Minute     // between attempts while the circuit breaker is open
	opensAfter = 3               // failures in a row
	maxAnswers = 200             // in a session
	maxReply   = 1 << 20         // bytes
)

func (t *talk) key(kind, name string) string {
	sum := sha256.Sum256([]byte(string(t.agent) + "\n" + name))
	return kind + hex.EncodeToString(sum[:16])
}

// Kinds of records of talks.
const (
	cursorKind  = "cursor."
	contextKind = "context."
)

// run sends what is in the inbox, in order, and waits for more.
func (t *talk) run(ctx context.Context) {
	g := t.o.Gateway
	cursor := uint64(0)
	if data, _, err := g.record(ctx, t.key(cursorKind, "")); err != nil || len(data) > 0 && json.Unmarshal(data, &cursor) != nil {
		g.o.Service.Log.Error("a2a remote cursor", zap.String("agent", string(t.agent)), zap.Error(err))
		return
	}
	inbox, err := g.o.Service.As(t.agent).FollowInbox(ctx, &cursor)
	if err != nil {
		g.o.Service.Log.Warn("a2a remote inbox", zap.String("agent", string(t.agent)), zap.Error(err))
		return
	}
	defer inbox.Close()
	for ctx.Err() == nil {
		if inbox.Read(ctx, func(page []api.InboxMessage) error { return t.deliverAll(ctx, page) }) != nil {
			return // and it begins again
		}
		select {
		case <-inbox.Changed:
		case <-ctx.Done():
		}
	}
}

// deliverAll sends messages, and notes after each of them that it was sent.
func (t *talk) deliverAll(ctx context.Context, page []api.InboxMessage) error {
	for _, m := range page {
		if !t.deliver(ctx, m) {
			return ctx.Err()
		}
		data, err := json.Marshal(m.Cursor + 1)
		for err == nil {
			if _, err := t.o.Gateway.put(ctx, t.key(cursorKind, ""), data); err == nil || background.Pause(ctx, retryWait) != nil {
				break
			}
		}
	}
	return nil
}

// deliver sends one message until it is answered, or not worth sending any more; false is the
// end of the talk.
func (t *talk) deliver(ctx context.Context, m api.InboxMessage) bool {
	for tries := 0; ; tries++ {
		done, err := t.exchange(ctx, m)
		switch {
		case ctx.Err() != nil:
			return false
		case err == nil:
			t.failures = 0
			return true
		case done: // the session went on without it
			return true
		}
		t.server = nil
		if t.failures++; t.failures == opensAfter {
			t.o.Gateway.o.Service.Log.Warn("an agent elsewhere does not answer", zap.String("agent", string(t.agent)), zap.Error(err))
		}
		if background.Pause(ctx, min(retryWait<<min(t.failures-1, 6), maxBreak)) != nil {
			return false
		}
	}
}
