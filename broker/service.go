package broker

import (
	"context"
	"errors"
	"runtime"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
	"go.uber.org/zap"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/schemas"
	"github.com/parley-asp/parley/session"
)

// openService presents the broker as the NATS micro service asp.
func (b *Broker) openService(context.Context) error {
	service, err := micro.AddService(b.Conn, micro.Config{
		Name: api.ServiceName, Version: Version, QueueGroup: api.ServiceName,
		Description:  "parley: session broker for agents that negotiate (npayload's Agent Session Protocol, " + performatives.Version + ")",
		StatsHandler: b.stats,
		Metadata:     map[string]string{"protocol": performatives.Version, "broker": string(b.Signer.Key())},
	})
	if err != nil {
		return err
	}
	b.service = service
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
		{"submit", api.AllSubmits, b.onSubmit, published},
		{"api", api.AllCalls, b.onCall, map[string]string{"verbs": strings.Join(verbNames(false), " ")}},
		{"operator", api.AllOperator, b.onOperator, map[string]string{"verbs": strings.Join(verbNames(true), " ")}},
	} {
		if err := service.AddEndpoint(e.name, e.handle, micro.WithEndpointSubject(e.subject), micro.WithEndpointMetadata(e.metadata)); err != nil {
			return err
		}
	}
	return b.Conn.Flush()
}

// unanswerable drops requests whose reply would go nowhere, or into JetStream.
func unanswerable(r asked) bool {
	return r.Reply() == "" || strings.HasPrefix(r.Reply(), "$JS.")
}

func (b *Broker) onSubmit(r micro.Request) { b.letIn(r.Subject(), r) }

// letIn lets an act in that came from its sender, or hands it on to its home.
func (b *Broker) letIn(subject string, r asked) {
	if unanswerable(r) {
		return
	}
	caller, id, err := api.ParseSubmit(subject)
	if err != nil {
		b.refuse(r, session.Refuse(session.MalformedEnvelope, "the subject is not asp.agent.<token>.submit.<session id>"))
		return
	}
	if b.cluster.Isolated() {
		b.refuse(r, unavailable())
		return
	}
	leave, err := b.gate.enter(caller)
	if err != nil {
		b.tellLimited(caller, id, err)
		b.tellLater(r.Reply(), err)
		return
	}
	if at, is := b.cluster.Owner(id); is && b.sessions.begin() {
		b.handovers.handOn(handover{r, subject, id, caller, leave, at})
		return
	}
	b.submit(r, id, caller, leave)
}

// submit has an envelope judged when its session comes to it.
func (b *Broker) submit(r asked, id performatives.SessionID, caller performatives.Agent, leave func()) {
	heard := b.sessions.run(id, func(ctx context.Context, l *live) {
		defer leave()
		l.seat = b.judging.enter(caller)
		defer l.seat.done()
		accepted, err := b.admit(ctx, l, caller, r.Data())
		leave() // whoever has the answer may ask the next
		if err != nil {
			b.refuse(r, err)
			var refusal *session.Refusal
			if errors.As(err, &refusal) {
				b.tellRefused(id, caller, refusal)
			}
		} else {
			b.reply(r, accepted)
			runtime.Gosched() // the answer leaves before the work that follows it overtakes it
			b.reaches(answered)
		}
		switch {
		case len(l.undelivered) > 0:
			b.settle(ctx, l)
		case l.unresolved != nil:
			b.later(l, ackTimeout)
		}
	})
	if !heard {
		leave()
		b.refuse(r, unavailable())
	}
}

func (b *Broker) reply(r asked, v any) {
	data, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		b.Log.Error("reply", zap.Error(err))
		b.refuse(r, unavailable())
		return
	}
	if int64(len(data)) > b.Conn.MaxPayload() {
		b.refuse(r, session.Refuse(session.TooLarge, "the answer has more bytes than one message can have; ask for less, or read the session page by page"))
		return
	}
	b.answer(r.Reply(), nil, data)
	b.answeredFor(r)
}

// answeredFor lets a broker that handed an act on know that it was answered.
func (b *Broker) answeredFor(r asked) {
	if h, is := r.(handed); is && h.asker != "" {
		b.handovers.tell(h.m.Reply)
	}
}

// answer publishes a reply. Sessions answer when they have judged, which is
// after micro's own handler has returned and stopped looking at the request, so
// its Respond and Error are not for us; headers and payload are the same.
func (b *Broker) answer(to string, header nats.Header, data []byte) {
	if err := b.Conn.PublishMsg(&nats.Msg{Subject: to, Header: header, Data: data}); err != nil {
		b.Log.Debug("reply not sent", zap.Error(err))
	}
	if header == nil {
		b.heard.Add(1)
	} else {
		b.refused.Add(1)
	}
}

// stats are what micro's own statistics cannot know of answers that come later.
func (b *Broker) stats(*micro.Endpoint) any {
	return map[string]uint64{"answered": b.heard.Load(), "refused": b.refused.Load(), "handedOn": b.handovers.out.Total()}
}

// refuse answers with a micro error. What is no refusal is an internal cause:
// it is logged, and the answer says only that the broker cannot answer now.
//
// Of an act that was handed on, only one broker may refuse, which is the one that
// the asker came to: it may have to judge the act itself if it does not hear that
// it was answered, and would then repeat an acceptance, but perhaps not a refusal.
func (b *Broker) refuse(r asked, err error) {
	switch r := r.(type) {
	case handed:
		b.refuseTo(r.m.Reply, err)
	case doubted:
		b.refuseTo(r.Reply(), unavailable())
	default:
		b.refuseTo(r.Reply(), err)
	}
}

func (b *Broker) refuseTo(to string, err error) {
	var refusal *session.Refusal
	if !errors.As(err, &refusal) {
		b.Log.Error("api", zap.Error(err))
		errors.As(unavailable(), &refusal)
	}
	data, err := json.Marshal(api.Refused(refusal), json.Deterministic(true))
	if err != nil {
		b.Log.Error("refusal", zap.Error(err))
		return
	}
	b.answer(to, nats.Header{
		micro.ErrorHeader:     {headerText(refusal.Error())},
		micro.ErrorCodeHeader: {strconv.Itoa(refusal.Code.Status())},
	}, data)
}

// headerText keeps a sentence to one line of plain text: parts of it may be a
// sender's words, and a header must not be broken out of.
func headerText(s string) string {
	return strings.Map(func(c rune) rune {
		if c < ' ' || c == 0x7f {
			return ' '
		}
		return c
	}, s)
}
