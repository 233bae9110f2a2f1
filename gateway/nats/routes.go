package natsgateway

import (
	"context"
	"errors"
	"time"

	"sync"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
	"go.uber.org/zap"

	"github.com/parley-asp/parley/api"
)

// routes are the subscriptions by which a server that has the mapping
// (api.RouteMapping) routes most acts to the owner of their session. What comes to
// another broker is forwarded by it. Routing is an optimisation: when a broker is gone,
// so are its subscriptions.
type routes struct {
	g *Gateway

	acts chan *nats.Msg // all subscriptions end here, so that acts keep their order

	mu      sync.Mutex
	serving bool
	any     []*nats.Subscription         // to the acts of every partition
	own     map[int][]*nats.Subscription // to those of the partitions that this broker owns
}

const (
	// ownerWeight is how many times a broker subscribes to its own partitions, besides
	// the once that each subscribes to all, in one queue group. The server picks a
	// subscription at random: of three brokers the owner gets 13 acts of 15. More
	// subscriptions would cost the server more than they save: it collects them all for a
	// subject that it has not seen lately.
	ownerWeight = 12

	maxRouted = 1 << 15 // acts that wait to be let in; the server's sending is not bounded otherwise
)

// openRoutes begins to receive routed acts.
func (g *Gateway) openRoutes() (r *routes, err error) {
	r = &routes{g: g, acts: make(chan *nats.Msg, maxRouted), own: map[int][]*nats.Subscription{}}
	if g.o.Alone {
		return r, nil
	}
	for _, all := range []string{api.AllRouted, api.OldRouted} {
		s, err := r.subscribe(all)
		if err != nil {
			return r, err
		}
		r.any = append(r.any, s)
	}
	r.serving = true
	g.work.Go(r.receive)
	g.o.Members.OnMove(r.move)
	r.move()
	return r, nil
}

func (r *routes) subscribe(subject string) (*nats.Subscription, error) {
	return r.g.o.Conn.ChanQueueSubscribe(subject, api.ServiceName, r.acts)
}

// move subscribes to the partitions that this broker owns now, and drains those that
// it owned before: what was sent before the server knows is still received.
func (r *routes) move() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.serving {
		return
	}
	var failure error
	own := map[int]bool{}
	for _, p := range r.g.o.Members.Partitions() {
		own[p] = true
		if r.own[p] != nil {
			continue
		}
		for range ownerWeight {
			s, err := r.subscribe(api.Routed(p))
			if err != nil {
				failure = err
				break
			}
			r.own[p] = append(r.own[p], s)
		}
	}
	for p, subscriptions := range r.own {
		if !own[p] {
			failure = errors.Join(failure, drain(subscriptions...))
			delete(r.own, p)
		}
	}
	if failure != nil {
		r.g.o.Log.Debug("routes", zap.Error(failure)) // the connection is closed: nothing comes there any more
	}
}

func drain(all ...*nats.Subscription) (failure error) {
	for _, s := range all {
		failure = errors.Join(failure, s.Drain())
	}
	return failure
}

// receive takes the acts that the server routes here.
func (r *routes) receive(ctx context.Context) {
	for {
		select {
		case m := <-r.acts:
			r.submit(m)
		case <-ctx.Done():
			for { // whoever asked last is told that the broker is closing
				select {
				case m := <-r.acts:
					r.submit(m)
				default:
					return
				}
			}
		}
	}
}

func (r *routes) submit(m *nats.Msg) {
	if subject, is := api.Unrouted(m.Subject); is {
		r.g.submit(subject, routed{m})
	}
}

// leave receives no more than what is on its way.
func (r *routes) leave() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.serving {
		return nil
	}
	r.serving = false
	all := r.any
	for _, subscriptions := range r.own {
		all = append(all, subscriptions...)
	}
	var closed []<-chan nats.SubStatus
	for _, s := range all {
		closed = append(closed, s.StatusChanged(nats.SubscriptionClosed))
	}
	failure := drain(all...)
	if !r.g.o.Conn.IsConnected() {
		return failure
	}
	failure = errors.Join(failure, r.g.o.Conn.FlushTimeout(leaveTimeout))
	ctx, cancel := context.WithTimeout(context.Background(), leaveTimeout)
	defer cancel()
	for _, c := range closed {
		select {
		case <-c:
		case <-ctx.Done():
			return errors.Join(failure, ctx.Err())
		}
	}
	return failure
}

// leaveTimeout is how long a broker that leaves waits for the server to know.
const leaveTimeout = 5 * time.Second

// routed is an act that the server routed here.
type routed struct{ m *nats.Msg }

func (a routed) Data() []byte  { return a.m.Data }
func (a routed) Reply() string { return a.m.Reply }

func (a routed) Headers() micro.Headers { return micro.Headers(a.m.Header) }
