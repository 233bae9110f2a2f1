// Package natsgateway is the NATS face of a broker: it decodes requests, calls the
// one command and query service, and encodes the answers.
//
//	gateway, err := natsgateway.Serve(natsgateway.Options{Conn: nc, Admit: admit, Submit: submit, Call: call, Members: members})
//	if err != nil { … }
//	gateway.Stop()   // receives no more
//	b.Close(ctx)     // answers what was received
//	gateway.Close()
//
// The broker is the NATS micro service asp, every replica in one queue group. An act
// that reaches a broker which does not own its session is routed to the owner. No
// rule of the protocol lives here.
package natsgateway

import (
	"context"
	"errors"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
	"go.uber.org/zap"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker/cluster"
	"github.com/parley-asp/parley/internal/background"
	"github.com/parley-asp/parley/internal/telemetry"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/schemas"
	"github.com/parley-asp/parley/session"
)

// Options say what is served.
type Options struct {
	Conn *nats.Conn
	// Asked is another connection, which receives a copy of what principals ask of the streams of their inboxes, of
	// which there are so many.
	Asked  *nats.Conn
	Shards int

	// Admit lets one request of so many bytes of a principal in, or refuses it by the
	// limits; session is "" for a call. release says that it was answered.
	Admit func(sender performatives.Agent, session performatives.SessionID, size int) (release func(), err error)
	// Sent charges a principal for an answer that left to it.
	Sent func(to performatives.Agent, bytes int)
	// MostUseless is how many requests of a principal may be refused unread or dropped, or be pulls, in a second. Who
	// waits for answers does not come near it. Of who sends more, Flood closes the connections; nil does not.
	MostUseless int
	Flood       func(performatives.Agent)
	// Seen says that a principal is there now.
	Seen func(performatives.Agent)
	// Isolated reports that acts must not be judged now.
	Isolated func() bool
	// Unread counts an act that is refused unread, by the refusal's code; nil does not.
	Unread func(code string)
	// Submit judges an envelope when its session's turn comes, and answers once. Of its context, and of Call's,
	// only the trace counts.
	Submit func(ctx context.Context, id performatives.SessionID, sender performatives.Agent, envelope []byte, release func(), answer func(api.Acceptance, error))
	// Call calls a verb and answers once. A last answer must have left the connection when answer returns.
	Call func(ctx context.Context, c api.Caller, verb string, request []byte, release func(), answer func(reply any, last bool, err error))

	Members *cluster.Membership // where sessions are owned
	ID      string              // of this broker among its peers
	Key     performatives.Key   // of the broker's receipts
	Alone   bool                // there are no peers
	Traces  *telemetry.Traces   // nil exports nothing
	Log     *zap.Logger
}

// A Gateway serves until it is closed.
type Gateway struct {
	o       Options
	micro   micro.Service
	forward *forwarder
	routes  *routes
	floods  floods
	asked   []*nats.Subscription
	work    *background.Group

	answered, refused atomic.Uint64
	took              map[string]*answerTime // by endpoint
	delayed           atomic.Int64           // refusals that wait to be sent

	mu       sync.Mutex
	stopped  bool
	inFlight sync.WaitGroup // forwarded acts and delayed refusals
}

// Serve begins to receive.
func Serve(o Options) (g *Gateway, err error) {
	g = &Gateway{o: o, work: background.New(), took: map[string]*answerTime{"submit": {}, "api": {}, "operator": {}}}
	defer func() {
		if err != nil {
			g.Close()
		}
	}()
	if g.forward, err = g.openForwarder(); err != nil {
		return g, err
	}
	if g.routes, err = g.openRoutes(); err != nil {
		return g, err
	}
	if err := g.openAsked(); err != nil {
		return g, err
	}
	return g, g.openService()
}

// Stop receives no more requests, and waits for those that were forwarded.
func (g *Gateway) Stop(ctx context.Context) error {
	g.ignoreAsked()
	failure := errors.Join(g.micro.Stop(), g.routes.leave())
	g.mu.Lock()
	g.stopped = true
	g.mu.Unlock()
	done := make(chan struct{})
	go func() { g.inFlight.Wait(); close(done) }()
	if background.Await(ctx, done) != nil {
		g.forward.answers.End(ctx.Err()) // so that nobody waits any more
	}
	return failure
}

// Close ends the gateway once the service is closed too.
func (g *Gateway) Close() {
	g.ignoreAsked()
	if g.forward != nil {
		g.forward.close()
	}
	g.work.Close()
}

// begin notes a request that is answered later; false means that the gateway stops.
func (g *Gateway) begin() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.stopped {
		g.inFlight.Add(1)
	}
	return !g.stopped
}

// openService presents the broker as the NATS micro service asp.
func (g *Gateway) openService() (err error) {
	host, _ := os.Hostname() // it serves without a name, too
	g.micro, err = micro.AddService(g.o.Conn, micro.Config{
		Name: api.ServiceName, Version: api.Version, QueueGroup: api.ServiceName,
		Description:  "parley: session broker for agents that negotiate (npayload's Agent Session Protocol, " + performatives.Version + ")",
		StatsHandler: g.stats,
		Metadata:     map[string]string{"protocol": performatives.Version, "broker": string(g.o.Key), "id": g.o.ID, "host": host},
	})
	if err != nil {
		return err
	}
	published := map[string]string{"request": "one envelope (PROTOCOL.md section 3)"}
	for _, name := range schemas.Names() {
		text, _ := schemas.Get(name)
		published["schema."+name] = string(text)
	}
	for _, e := range []struct {
		name, subject string
		handle        micro.HandlerFunc
		metadata      map[string]string
	}{
		{"submit", api.AllSubmits, func(r micro.Request) { g.submit(r.Subject(), r) }, published},
		{"api", api.AllCalls, g.call, map[string]string{"verbs": strings.Join(api.VerbNames(api.Principal), " ")}},
		{"operator", api.AllOperator, g.operatorCall, map[string]string{"verbs": strings.Join(api.VerbNames(api.Operator), " ")}},
	} {
		if err := g.micro.AddEndpoint(e.name, e.handle, micro.WithEndpointSubject(e.subject), micro.WithEndpointMetadata(e.metadata)); err != nil {
			return errors.Join(err, g.micro.Stop())
		}
	}
	return g.o.Conn.Flush()
}

// stats are what micro's own statistics cannot know of answers that come later. The time is the endpoint's own, in
// nanoseconds as micro's are.
func (g *Gateway) stats(e *micro.Endpoint) any {
	handedOver, _ := g.o.Members.HandedOver()
	return map[string]uint64{
		"averageAnswerTime": g.took[e.Name].average(),
		"answered":          g.answered.Load(), "refused": g.refused.Load(), "forwarded": g.forward.answers.Total(), "handedOver": handedOver,
	}
}

// Forwarded is how many acts were forwarded so far, and how many of them are not answered yet.
func (g *Gateway) Forwarded() (total uint64, waiting int) {
	return g.forward.answers.Total(), g.forward.answers.Len()
}

// Delayed is how many refusals wait to be sent.
func (g *Gateway) Delayed() int { return int(g.delayed.Load()) }

// A request is one that somebody waits for an answer to.
type request interface {
	Reply() string
	Data() []byte
	Headers() micro.Headers
}

// parent has the trace that a request belongs to.
func (g *Gateway) parent(r request) context.Context { return g.o.Traces.Parent(r.Headers()) }

// unanswerable drops requests whose reply would go nowhere, or into JetStream.
func unanswerable(r request) bool {
	return r.Reply() == "" || strings.HasPrefix(r.Reply(), "$JS.")
}

// refuseUnread answers that an act cannot be judged now, and counts it.
func (g *Gateway) refuseUnread(r request) {
	busy := session.Busy()
	if g.o.Unread != nil {
		g.o.Unread(string(busy.Code))
	}
	g.refuse(r, busy)
}

// submit lets an act in and has it judged, here or by the owner of its session.
func (g *Gateway) submit(subject string, r request) {
	sender, id, err := api.ParseSubmit(subject)
	if err != nil {
		err = session.Refuse(session.MalformedEnvelope, "the subject is not asp.agent.<token>.submit.<session id>")
	}
	if err == nil && g.o.Isolated() && !unanswerable(r) {
		g.refuseUnread(r)
		return
	}
	release, ok := g.admit(r, sender, id, err)
	if !ok {
		return
	}
	g.route(forwarded{r: g.timed(r, "submit"), subject: subject, id: id, sender: sender, release: release})
}

// route forwards an act to the owner of its session, or has it judged here.
func (g *Gateway) route(act forwarded) {
	owner, elsewhere := g.o.Members.Owner(act.id)
	if elsewhere && g.begin() {
		act.owner = owner
		g.forward.send(act)
		return
	}
	g.judge(act)
}

// judge has an act judged here.
func (g *Gateway) judge(act forwarded) {
	if act.say {
		g.answer(act.r, api.Caller{Agent: act.sender}, api.SessionSay.Name, act.release)
		return
	}
	g.o.Submit(g.parent(act.r), act.id, act.sender, act.r.Data(), act.release, func(accepted api.Acceptance, err error) {
		if err != nil {
			g.refuse(act.r, err)
			return
		}
		g.reply(act.r, act.sender, accepted)
		runtime.Gosched() // the answer leaves before the work that follows it overtakes it
	})
}

func (g *Gateway) call(r micro.Request) {
	agent, verb, err := api.ParseCall(r.Subject())
	if err != nil {
		err = session.Refuse(session.MalformedEnvelope, "the subject is not asp.agent.<token>.api.<verb>")
	}
	release, ok := g.admit(r, agent, "", err)
	if !ok {
		return
	}
	if verb == api.SessionSay.Name {
		if id := saidIn(r.Data()); id != "" {
			g.route(forwarded{r: g.timed(r, "api"), subject: r.Subject(), id: id, sender: agent, release: release, say: true})
			return
		}
	}
	g.answer(g.timed(r, "api"), api.Caller{Agent: agent}, verb, release)
}

// saidIn is the session in which session.say says something, "" for a new one.
func saidIn(request []byte) performatives.SessionID {
	var q struct {
		Session performatives.SessionID `json:"sessionId"`
	}
	if json.Unmarshal(request, &q) != nil {
		return "" // the verb says what is wrong with it
	}
	return q.Session
}

func (g *Gateway) operatorCall(r micro.Request) {
	if !unanswerable(r) {
		g.answer(g.timed(r, "operator"), api.Caller{Operator: true}, strings.TrimPrefix(r.Subject(), api.OperatorCall("")), func() {})
	}
}

func (g *Gateway) answer(r request, c api.Caller, verb string, release func()) {
	g.o.Call(g.parent(r), c, verb, r.Data(), release, func(reply any, last bool, err error) {
		if err != nil {
			g.refuse(r, err)
			return
		}
		g.reply(r, c.Agent, reply)
		if !last {
			return
		}
		if err := g.o.Conn.FlushTimeout(flushTimeout); err != nil {
			g.o.Log.Debug("answer not flushed", zap.Error(err))
		}
	})
}
