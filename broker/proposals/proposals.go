// Package proposals calls for proposals: it asks all agents that could do a task how well
// they fit, gathers their answers for a while, and ranks them.
//
//	c, err := proposals.Open(proposals.Options{Registry: r, Bus: bus, …})
//	if err != nil { … }
//	defer c.Close()
//	found, err := c.Call(ctx, caller, api.CallForProposals{Task: task, Capability: "translate"})
//
// An agent answers with its own assessment by discovery.answer, at any broker: the broker
// that made the call listens on a subject of its own. Whoever does not answer in time is
// assessed from its card. An answer that is late, that is an agent's second, or that is from
// somebody who was not asked does not count.
package proposals

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker/registry"
	"github.com/parley-asp/parley/discovery"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/store"
)

// Options say how calls are made.
type Options struct {
	Registry *registry.Registry
	Bus      store.Bus // to the other brokers and to agents
	Broker   string    // this broker's ID, one token
	Now      func() time.Time

	// Enter waits until it is a caller's turn to have cards assessed, or refuses; leave ends
	// the turn. A call does not hold it while it waits for answers.
	Enter func(context.Context, performatives.Agent) (leave func(), err error)

	// Gone reports that an agent was there and is offline now. No call waits long for those.
	Gone func(performatives.Agent) bool

	// Queue is how many open sessions an agent takes part in, for one that does not say
	// itself how long its queue is.
	Queue func(performatives.Agent) int
	// Probe asks an agent elsewhere, for a caller; nil asks none.
	Probe func(ctx context.Context, caller performatives.Agent, url string, task discovery.Task) (discovery.Assessment, error)
	// Similar compares a task with the skills of cards, for each card; nil compares by keywords alone.
	Similar func(ctx context.Context, task discovery.Task, cards [][]discovery.Skill) ([]discovery.Similarity, error)
}

// Bounds of the calls that wait at one broker.
const (
	maxWaiting    = 1_000
	maxOfOne      = 8 // of one principal
	answerTimeout = 2 * time.Second
	briefly       = 100 * time.Millisecond // for agents that are offline
)

// Calls are the calls that this broker makes.
type Calls struct {
	o    Options
	stop func()

	closed chan struct{}
	close  sync.Once

	mu      sync.Mutex
	waiting map[string]*call
	ofOne   map[performatives.Agent]int
}

// A call waits for answers.
type call struct {
	asked   map[performatives.Agent]bool // true of those that are waited for
	answers map[performatives.Agent]discovery.Assessment
	all     chan struct{} // closed when all have answered

	online  int           // of those asked: online, or never seen, and have not answered
	present chan struct{} // closed when these have
}

// An answer goes from the broker that an agent answered to the broker that made the call.
type answer struct {
	ID         string               `json:"callId"`
	Agent      performatives.Agent  `json:"agentId"`
	Assessment discovery.Assessment `json:"assessment"`
}

// Open listens for answers until Close.
func Open(o Options) (*Calls, error) {
	c := &Calls{o: o, closed: make(chan struct{}), waiting: map[string]*call{}, ofOne: map[performatives.Agent]int{}}
	var err error
	c.stop, err = o.Bus.Listen(answersOf(o.Broker), c.received)
	return c, err
}

// Close stops listening, and ends the calls that wait with the answers they have.
func (c *Calls) Close() {
	c.close.Do(func() { close(c.closed) })
	c.stop()
}

func answersOf(broker string) string { return "asp.call." + broker }

// Call answers discovery.call.
func (c *Calls) Call(ctx context.Context, caller api.Caller, q api.CallForProposals) (api.Proposals, error) {
	rank, wait, err := check(q)
	if err != nil {
		return api.Proposals{}, err
	}
	var cards []api.Card
	if err := c.inTurn(ctx, caller, func() { cards = c.matching(q) }); err != nil {
		return api.Proposals{}, err
	}
	found := api.Proposals{ID: c.o.Broker + "." + uuid.NewString(), Asked: len(cards)}
	probed := c.probe(ctx, caller, q, wait)
	answers := map[performatives.Agent]discovery.Assessment{}
	if wait > 0 && len(cards) > 0 {
		if answers, err = c.gather(ctx, caller, q, found.ID, cards, wait); err != nil {
			return api.Proposals{}, err
		}
	}
	found.Answered = len(answers)
	alike, failed := c.similar(ctx, q.Task, cards, answers)
	elsewhere, unreached := probed()
	found.Warnings = slices.Concat(failed, unreached)
	return found, c.inTurn(ctx, caller, func() {
		candidates := append(c.assess(q, cards, answers, alike), elsewhere...)
		rank.Rank(candidates)
		found.Candidates, found.Truncated = page(candidates, q.Limit)
		rank.Explain(found.Candidates)
	})
}

// inTurn works when it is the caller's turn.
func (c *Calls) inTurn(ctx context.Context, caller api.Caller, work func()) error {
	leave, err := c.o.Enter(ctx, caller.Agent)
	if err != nil {
		return err
	}
	defer leave()
	work()
	return nil
}

// assess takes the answers, and assesses the cards of those who gave none.
func (c *Calls) assess(q api.CallForProposals, cards []api.Card, answers map[performatives.Agent]discovery.Assessment, alike map[performatives.Agent]discovery.Similarity) []discovery.Candidate {
	task, candidates := q.Prepare(), make([]discovery.Candidate, 0, len(cards))
	for _, card := range cards {
		candidate := discovery.Candidate{Agent: card.Agent, Source: discovery.ByAgent, Trust: card.Registry.TrustScore, Pricing: card.Pricing}
		own, answered := answers[card.Agent]
		candidate.Assessment = own
		if !answered {
			profile, registered := c.o.Registry.Profile(card.Agent)
			if !registered {
				continue
			}
			candidate.Source, candidate.Assessment = discovery.ByRegistry, profile.Assess(task, c.queue(card), alike[card.Agent])
		}
		candidates = append(candidates, candidate)
	}
	return candidates
}

// Agents goes through the cards of all agents after one ("" is the beginning), by URI.
func (c *Calls) Agents(after performatives.Agent) iter.Seq[api.Card] {
	return c.o.Registry.Agents(after)
}

// maxWanted is how many types or tools of a kind a task names.
const maxWanted = 100

// Card is what an agent is assessed by: its card, what was read of it, and its queue. It is false for one
// that is not registered.
func (c *Calls) Card(a performatives.Agent) (card api.Card, profile *discovery.Profile, queue *int, registered bool) {
	card, registered = c.o.Registry.Card(a)
	profile, read := c.o.Registry.Profile(a)
	if !registered || !read || card.Kind == performatives.KindHuman {
		return api.Card{}, nil, nil, false
	}
	return card, profile, c.queue(card), true
}

// check refuses a call that makes no sense, and reads what it asks for.
func check(q api.CallForProposals) (rank discovery.Policy, wait time.Duration, err error) {
	fault := func(path, message string) error {
		return session.RefuseSchema(session.Fault{Path: path, Rule: "call", Message: message})
	}
	ms := api.DefaultWait
	if len(q.URLs) > 0 {
		ms = api.ProbeWait
	}
	if q.WaitMs != nil {
		ms = *q.WaitMs
	}
	rank, unknown := discovery.ParsePolicy(q.Rank)
	switch {
	case q.Summary == "":
		return rank, 0, fault("/task_summary", "task_summary is required")
	case utf8.RuneCountInString(q.Summary) > discovery.MaxText || utf8.RuneCountInString(q.Details) > discovery.MaxText:
		return rank, 0, fault("/task_summary", "task_summary and task_details have at most 10,000 characters each")
	case q.Weights.Negative() != "":
		return rank, 0, fault("/weights/"+q.Weights.Negative(), "a weight is at least 0")
	case ms < 0 || ms > api.MaxWait:
		return rank, 0, fault("/waitMs", "waitMs is from 0 to 10,000")
	case len(q.Capability) > api.MaxCapability:
		return rank, 0, fault("/capability", fmt.Sprintf("a capability has at most %d bytes", api.MaxCapability))
	case len(q.InputTypes) > maxWanted || len(q.OutputTypes) > maxWanted || len(q.RequiredTools) > maxWanted || len(q.ForbiddenTools) > maxWanted:
		return rank, 0, fault("/input_mime_types", fmt.Sprintf("a task names at most %d types or tools of a kind", maxWanted))
	case q.Limit < 0 || q.Limit > maxCandidates:
		return rank, 0, fault("/limit", "limit is from 1 to 200")
	case len(q.Agents) > api.MaxNamed:
		return rank, 0, fault("/agents", "a call names at most 200 agents")
	case len(q.URLs) > api.MaxProbed:
		return rank, 0, fault("/urls", "a call names at most 20 URLs")
	case unknown != nil:
		return rank, 0, fault("/rank", unknown.Error())
	}
	return rank, time.Duration(ms) * time.Millisecond, nil
}

// matching is the agents that a call asks. If they are too many, those with the most trust
// are asked.
func (c *Calls) matching(q api.CallForProposals) (cards []api.Card) {
	switch {
	case q.Agents != nil:
	case q.Capability == "":
		return c.o.Registry.Trusted(api.MaxAsked, q.MinTrust)
	default:
		cards = c.o.Registry.Capable(q.Capability)
	}
	for _, a := range q.Agents {
		card, registered := c.o.Registry.Card(a)
		twice := slices.ContainsFunc(cards, func(other api.Card) bool { return other.Agent == a })
		if registered && !twice && card.Kind != performatives.KindHuman && api.HasCapability(card.Capabilities, q.Capability) {
			cards = append(cards, card)
		}
	}
	cards = slices.DeleteFunc(cards, func(card api.Card) bool { return q.MinTrust > 0 && trust(card) < q.MinTrust })
	if len(cards) > api.MaxAsked {
		slices.SortStableFunc(cards, func(a, b api.Card) int { return cmp.Compare(trust(b), trust(a)) })
		cards = cards[:api.MaxAsked]
	}
	return cards
}
