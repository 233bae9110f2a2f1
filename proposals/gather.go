package proposals

import (
	"context"
	"math"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/discovery"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// gather asks the agents, and waits until all have answered or the time is over.
func (c *Calls) gather(ctx context.Context, caller api.Caller, q api.CallForProposals, id string, cards []api.Card, wait time.Duration) (map[performatives.Agent]discovery.Assessment, error) {
	waiting := &call{asked: map[performatives.Agent]bool{}, answers: map[performatives.Agent]discovery.Assessment{}, all: make(chan struct{})}
	for _, card := range cards {
		waiting.asked[card.Agent] = true
	}
	if !c.begin(caller.Agent, id, waiting) {
		return nil, session.Refuse(session.RateLimited, "too many calls of yours wait for answers; at most %d may", maxOfOne)
	}
	defer c.end(caller.Agent, id)
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
	case <-ctx.Done():
	}
	return c.end(caller.Agent, id), nil
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
func (c *Calls) end(a performatives.Agent, id string) map[performatives.Agent]discovery.Assessment {
	c.mu.Lock()
	defer c.mu.Unlock()
	waiting, there := c.waiting[id]
	if !there {
		return nil
	}
	delete(c.waiting, id)
	if c.ofOne[a]--; c.ofOne[a] == 0 {
		delete(c.ofOne, a)
	}
	return waiting.answers
}

// Answer answers discovery.answer. It passes the answer to the broker that made the call.
func (c *Calls) Answer(ctx context.Context, caller api.Caller, q api.AnswerCall) (api.Answered, error) {
	if caller.Operator {
		return api.Answered{}, session.Refuse(session.Unauthorized, "only an agent answers a call")
	}
	if err := checkAnswer(q); err != nil {
		return api.Answered{}, err
	}
	data, err := json.Marshal(answer{ID: q.ID, Agent: caller.Agent, Assessment: q.Assessment})
	if err != nil {
		return api.Answered{}, err
	}
	broker, _, found := strings.Cut(q.ID, ".")
	if !found || !brokerID(broker) {
		return api.Answered{ID: q.ID}, nil
	}
	if broker == c.o.Broker {
		return api.Answered{ID: q.ID, Counted: c.count(data)}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	reply, err := c.o.Bus.Request(ctx, answersOf(broker), data)
	return api.Answered{ID: q.ID, Counted: err == nil && string(reply) == counted}, nil // a broker that is gone counts nothing
}

// counted is the reply to an answer that counts.
const counted = "counted"

func (c *Calls) heard(data []byte) []byte {
	if c.count(data) {
		return []byte(counted)
	}
	return nil
}

// count reports whether an answer counts.
func (c *Calls) count(data []byte) bool {
	var a answer
	if json.Unmarshal(data, &a) != nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	waiting, there := c.waiting[a.ID]
	if !there || !waiting.asked[a.Agent] {
		return false
	}
	if _, twice := waiting.answers[a.Agent]; twice {
		return false
	}
	waiting.answers[a.Agent] = a.Assessment
	if len(waiting.answers) == len(waiting.asked) {
		close(waiting.all)
	}
	return true
}

// checkAnswer refuses numbers that no assessment has, and an answer that is too long.
func checkAnswer(q api.AnswerCall) error {
	if size := api.Size(q); size > api.MaxAnswerBytes {
		return session.Refuse(session.TooLarge, "an answer has at most %d bytes; this one has %d", api.MaxAnswerBytes, size)
	}
	numbers := map[string]float64{"score": q.Score, "confidence": q.Confidence}
	if s := q.Subscores; s != nil {
		numbers["subscores/skill_match"], numbers["subscores/io_compatibility"] = s.SkillMatch, s.IOCompatibility
		numbers["subscores/load"], numbers["subscores/cost"], numbers["subscores/performance"] = s.Load, s.Cost, s.Performance
	}
	for _, match := range q.Matches {
		numbers["skill_matches"] = max(numbers["skill_matches"], match.Score)
		if match.Score < 0 {
			numbers["skill_matches"] = match.Score
			break
		}
	}
	for name, n := range numbers {
		if !(n >= 0 && n <= 1) {
			return session.RefuseSchema(session.Fault{Path: "/" + name, Rule: "range", Message: name + " is a number from 0 to 1"})
		}
	}
	if q.QueueDepth != nil && *q.QueueDepth < 0 || q.Latency != nil && !(*q.Latency >= 0) {
		return session.RefuseSchema(session.Fault{Path: "/queue_depth", Rule: "range", Message: "queue_depth and latency_estimate_ms are at least 0"})
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

// fitting keeps as many candidates, the best ones, as a reply may have.
func fitting(all []discovery.Candidate, limit int) (kept []discovery.Candidate, cut bool) {
	if limit == 0 {
		limit = defaultCandidates
	}
	bytes := 0
	for i := range all {
		if i == limit {
			return all[:i], true
		}
		api.Fit(&all[i], api.MaxRowBytes)
		if bytes += api.Size(all[i]); bytes > api.MaxPageBytes {
			return all[:i], true
		}
	}
	return all, false
}
