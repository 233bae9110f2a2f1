package proposals

import (
	"context"
	"math"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/api/fit"
	"github.com/parley-asp/parley/discovery"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// gather asks the agents, and waits until all have answered or the time is over.
func (c *Calls) gather(ctx context.Context, caller api.Caller, q api.CallForProposals, id string, cards []api.Card, wait time.Duration) (map[performatives.Agent]discovery.Assessment, error) {
	waiting := &call{
		asked: map[performatives.Agent]bool{}, answers: map[performatives.Agent]discovery.Assessment{},
		all: make(chan struct{}), present: make(chan struct{}),
	}
	for _, card := range cards {
		gone := c.o.Gone != nil && c.o.Gone(card.Agent)
		waiting.asked[card.Agent] = !gone
		if !gone {
			waiting.online++
		}
	}
	if waiting.online == 0 {
		close(waiting.present)
	}
	begun := time.Now()
	if !c.begin(caller.Agent, id, waiting) {
		return nil, api.RateLimited("calls", max(wait, api.DefaultWait*time.Millisecond), "too many calls for proposals wait for answers; of yours at most %d may", maxOfOne)
	}
	least := time.Duration(0)
	defer func() { c.release(caller.Agent, least-time.Since(begun)) }()
	defer c.end(id)
	notice, err := json.Marshal(api.CallNotice{
		ID: id, From: caller.Agent, Capability: q.Capability, Until: c.o.Now().Add(wait).UTC().Format(time.RFC3339Nano), Task: q.Task,
	})
	if err != nil {
		return nil, err
	}
	if err := c.o.Bus.Publish(api.Discovery(q.Capability), notice); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	select {
	case <-waiting.all:
	case <-c.closed:
	case <-ctx.Done(): // the agents are at work for it all the same
		least = api.DefaultWait * time.Millisecond
	case <-waiting.present: // the others are offline, as far as this broker knows
		brief, cancel := context.WithTimeout(ctx, briefly)
		defer cancel()
		select {
		case <-waiting.all:
		case <-c.closed:
		case <-brief.Done():
			least = briefly
		}
	}
	return c.end(id), nil
}

func (c *Calls) begin(a performatives.Agent, id string, waiting *call) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.waiting) >= maxWaiting || a != "" && c.ofOne[a] >= maxOfOne {
		return false
	}
	c.waiting[id] = waiting
	c.ofOne[a]++
	return true
}

// end takes the answers; what comes later does not count.
func (c *Calls) end(id string) map[performatives.Agent]discovery.Assessment {
	c.mu.Lock()
	defer c.mu.Unlock()
	waiting, there := c.waiting[id]
	if !there {
		return nil
	}
	delete(c.waiting, id)
	return waiting.answers
}

// release counts a call of a principal as one that waits no more, once a time is over: one that hardly
// waits for the answers that it asks for makes room for no other.
func (c *Calls) release(a performatives.Agent, in time.Duration) {
	if in > 0 {
		time.AfterFunc(in, func() { c.release(a, 0) })
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ofOne[a]--; c.ofOne[a] == 0 {
		delete(c.ofOne, a)
	}
}

// Answer answers discovery.answer. It passes the answer to the broker that made the call.
func (c *Calls) Answer(ctx context.Context, caller api.Caller, q api.AnswerCall) (api.Answered, error) {
	if caller.Operator {
		return api.Answered{}, session.Refuse(session.Unauthorized, "only an agent answers a call")
	}
	if err := checkAnswer(q); err != nil {
		return api.Answered{}, err
	}
	given := answer{ID: q.ID, Agent: caller.Agent, Assessment: q.Assessment}
	broker, _, found := strings.Cut(q.ID, ".")
	if !found || !brokerID(broker) {
		return api.Answered{ID: q.ID}, nil
	}
	if broker == c.o.Broker {
		return api.Answered{ID: q.ID, Counted: c.count(given)}, nil
	}
	data, err := json.Marshal(given)
	if err != nil {
		return api.Answered{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	reply, err := c.o.Bus.Request(ctx, answersOf(broker), data)
	return api.Answered{ID: q.ID, Counted: err == nil && string(reply) == counted}, nil // a broker that is gone counts nothing
}

// counted is the reply to an answer that counts.
const counted = "counted"

func (c *Calls) received(data []byte) []byte {
	var given answer
	if json.Unmarshal(data, &given) == nil && c.count(given) {
		return []byte(counted)
	}
	return nil
}

// count reports whether an answer counts.
func (c *Calls) count(a answer) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	waiting, there := c.waiting[a.ID]
	if !there {
		return false
	}
	online, asked := waiting.asked[a.Agent]
	if !asked {
		return false
	}
	if _, twice := waiting.answers[a.Agent]; twice {
		return false
	}
	waiting.answers[a.Agent] = a.Assessment
	if online {
		if waiting.online--; waiting.online == 0 {
			close(waiting.present)
		}
	}
	if len(waiting.answers) == len(waiting.asked) {
		close(waiting.all)
	}
	return true
}

// checkAnswer refuses numbers that no assessment has, and an answer that is too long.
func checkAnswer(q api.AnswerCall) error {
	if size := fit.Size(q); size > api.MaxAnswerBytes {
		return session.Refuse(session.TooLarge, "an answer has at most %d bytes; this one has %d", api.MaxAnswerBytes, size)
	}
	if why := q.Fault(); why != "" {
		path, _, _ := strings.Cut(why, " ")
		return session.RefuseSchema(session.Fault{Path: "/" + path, Rule: "range", Message: why})
	}
	return nil
}

// queue is how many tasks an agent has, by its card, or by the session list. It is nil for
// an agent that says that it does not know.
func (c *Calls) queue(card api.Card) *int {
	var depth int
	switch {
	case card.QueueDepth == nil:
		depth = c.o.Queue(card.Agent)
	case json.Unmarshal(card.QueueDepth, &depth) != nil || card.QueueDepth.Kind() == 'n':
		return nil
	}
	return &depth
}

func trust(card api.Card) float64 {
	if card.Registry.TrustScore == nil {
		return math.Inf(-1)
	}
	return *card.Registry.TrustScore
}

// maxBroker is longer than a broker's ID is.
const maxBroker = 128

// brokerID reports whether a text can be the ID of a broker, which is one token of a subject.
// The server disconnects who sends a subject of more than 4 KiB.
func brokerID(text string) bool {
	return text != "" && len(text) <= maxBroker && !strings.ContainsFunc(text, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune(".*>", r)
	})
}

// Candidates of one reply.
const (
	maxCandidates     = 200
	defaultCandidates = 20
)

// page is the best candidates, as many as a reply may have.
func page(all []discovery.Candidate, limit int) (kept []discovery.Candidate, cut bool) {
	if limit == 0 {
		limit = defaultCandidates
	}
	p := api.NewPage[discovery.Candidate](limit)
	for _, candidate := range all {
		fit.To(&candidate, api.MaxRowBytes)
		if !p.Add(candidate, fit.Size(candidate)) {
			return p.Items, true
		}
	}
	return p.Items, false
}
