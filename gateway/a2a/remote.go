package a2agateway

import (
	"context"
	"net/http"
	"sync"
	"time"

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
// The broker that owns an agent, and no other, talks to it: in each session about one message after the other, and in
// several sessions at a time. What was sent is durable; a message that is sent again after a crash has the same
// messageId, and its answer makes the same act.
type Remotes struct {
	o      RemoteOptions
	client *http.Client
	turns  *outbound.Pool // of organisations
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
	r := &Remotes{o: o, client: client, turns: outbound.New(tellBounds), work: background.New(), running: map[performatives.Agent]*talk{}}
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
	t := newTalk(r, with, cancel)
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

// AnswerWithin is how long an agent elsewhere has to answer one request.
const AnswerWithin = 30 * time.Second

// talkBounds are those of the requests that are under way, and tellBounds those of the messages of an organisation. Both
// may take long.
var (
	talkBounds = outbound.Bounds{All: 256, Principal: 64, Host: 64, Server: 64}
	tellBounds = outbound.Bounds{All: 256, Principal: 16, Host: 64, Server: 4}
)

// Bounds of a talk.
const (
	workWithin = 2 * time.Minute // of a task that its server works on
	maxBreak   = time.Minute     // between attempts
	silentFrom = 3               // failures in a row
	maxAnswers = 200             // in a session
	maxReply   = 1 << 20         // bytes
)
