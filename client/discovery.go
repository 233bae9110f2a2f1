package client

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/discovery"
)

// Find calls for proposals: it asks all agents that could do a task how well they fit, and
// returns them ranked, best first.
func (c *Calls) Find(ctx context.Context, q api.CallForProposals) (api.Proposals, error) {
	return call(ctx, c, api.DiscoveryCall, q)
}

// An Assessor says how well the agent fits the task of a call; false does not answer, and the
// broker assesses the agent's card.
type Assessor func(context.Context, api.CallNotice) (discovery.Assessment, bool)

// Assess answers calls for proposals until stop, or until the client is closed. A nil
// assessor goes by the agent's card as it was registered when Assess began, and by the
// sessions that wait for the agent. The agent is told of calls for the capabilities of that
// card, and of those that name none. Meanwhile the agent is online.
func (c *Client) Assess(ctx context.Context, assess Assessor) (stop func(), err error) {
	if c.link.nc == nil {
		return nil, errors.New("client: calls for proposals come over NATS only")
	}
	card, err := c.Card(ctx, c.agent)
	if err != nil {
		return nil, err
	}
	if assess == nil {
		assess = c.byCard(card)
	}
	var subscribed []*nats.Subscription
	stopped := make(chan struct{})
	stop = sync.OnceFunc(func() {
		close(stopped)
		for _, s := range subscribed {
			_ = s.Unsubscribe() // fails only on a connection that is closed
		}
	})
	go c.stayOnline(stopped)
	for _, capability := range append([]string{""}, card.Capabilities...) {
		s, err := c.link.nc.Subscribe(api.Discovery(capability), func(m *nats.Msg) { c.answer(m.Data, card, assess) })
		if err != nil {
			stop()
			return nil, err
		}
		subscribed = append(subscribed, s)
	}
	ctx, cancel := context.WithTimeout(ctx, connectWait)
	defer cancel()
	return stop, c.link.nc.FlushWithContext(ctx)
}

// heartbeat is how often an agent that only listens says that it is there; it is online for a
// minute.
const heartbeat = 20 * time.Second

func (c *Client) stayOnline(stopped <-chan struct{}) {
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	for !c.link.nc.IsClosed() {
		select {
		case <-beat.C:
			ctx, cancel := context.WithTimeout(context.Background(), heartbeat)
			_, _ = once(ctx, &c.Calls, api.BrokerInfo, struct{}{}, heartbeat) // the next beat may arrive
			cancel()
		case <-stopped:
			return
		}
	}
}

// answer answers one call in time, or not at all.
func (c *Client) answer(notice []byte, card api.Card, assess Assessor) {
	var q api.CallNotice
	if json.Unmarshal(notice, &q) != nil || q.ID == "" || !api.HasCapability(card.Capabilities, q.Capability) {
		return
	}
	until, err := time.Parse(time.RFC3339Nano, q.Until)
	if err != nil {
		return
	}
	ctx, cancel := context.WithDeadline(context.Background(), until)
	defer cancel()
	if a, answers := assess(ctx, q); answers {
		_, _ = once(ctx, &c.Calls, api.DiscoveryAnswer, api.AnswerCall{ID: q.ID, Assessment: a}, time.Until(until)) // late is as good as never
	}
}

// mostWaiting bounds how many waiting sessions are counted.
const mostWaiting = 100

// byCard assesses the card. Without a queue depth of its own, it counts the sessions that wait.
func (c *Client) byCard(card api.Card) Assessor {
	profile := discovery.NewProfile(card.Skills, card.Pricing)
	return func(ctx context.Context, q api.CallNotice) (discovery.Assessment, bool) {
		var queue *int
		if card.QueueDepth == nil {
			waiting, err := call(ctx, &c.Calls, api.SessionList, api.ListSessions{Awaiting: "me", Limit: mostWaiting})
			if err != nil {
				return discovery.Assessment{}, false
			}
			queue = discovery.QueueDepth(len(waiting.Sessions))
		} else if json.Unmarshal(card.QueueDepth, &queue) != nil {
			queue = nil
		}
		return profile.Assess(q.Prepare(), queue, nil), true
	}
}
