package natsgateway

import (
	"errors"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
	"go.uber.org/zap"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// flushTimeout is how long a last answer may take to leave the connection.
const flushTimeout = 5 * time.Second

// imported begins the reply subjects of requests from accounts of others than brokers. The server makes
// them; other requests come from gateways, which charge for what they send on.
const imported = "_R_."

// reply answers a principal, "" for an operator, with what was asked for.
func (g *Gateway) reply(r request, to performatives.Agent, v any) {
	data, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		g.o.Log.Error("reply", zap.Error(err))
		g.refuse(r, session.Busy())
		return
	}
	if int64(len(data)) > g.o.Conn.MaxPayload() {
		g.refuse(r, session.Refuse(session.TooLarge, "the answer has more bytes than one message can have; ask for less, or read the session page by page"))
		return
	}
	g.charge(r, to, data)
	g.publish(r.Reply(), nil, data)
	ended(r)
	if f, is := r.(fromPeer); is && f.asker != "" {
		g.forward.acknowledge(f.m.Reply)
	}
}

// timed is a request whose answer by this broker is timed.
type timed struct {
	request
	since time.Time
	took  *answerTime
}

func (g *Gateway) timed(r request, endpoint string) request {
	return timed{r, time.Now(), g.took[endpoint]}
}

// ended notes how long a request took that was answered here.
func ended(r request) {
	if r, is := r.(timed); is {
		r.took.nanoseconds.Add(uint64(time.Since(r.since))) //nolint:gosec // it is not negative
		r.took.answers.Add(1)
	}
}

// answerTime is how long an endpoint's answers took, from when the request was let in.
type answerTime struct{ answers, nanoseconds atomic.Uint64 }

func (t *answerTime) average() uint64 { return t.nanoseconds.Load() / max(1, t.answers.Load()) }

// charge charges a principal for the bytes of an answer.
func (g *Gateway) charge(r request, to performatives.Agent, data []byte) {
	if strings.HasPrefix(r.Reply(), imported) {
		g.o.Sent(to, len(data))
	}
}

// publish publishes an answer. Sessions answer after micro's own handler has
// returned and stopped looking at the request, so its Respond and Error are not for
// us; headers and payload are the same.
func (g *Gateway) publish(to string, header nats.Header, data []byte) {
	if err := g.o.Conn.PublishMsg(&nats.Msg{Subject: to, Header: header, Data: data}); err != nil {
		g.o.Log.Debug("answer not sent", zap.Error(err))
	}
	if header == nil {
		g.answered.Add(1)
	} else {
		g.refused.Add(1)
	}
}

// refuse answers with a micro error.
//
// Only one broker may refuse a forwarded act: the one that the asker came to. It may
// have to judge the act itself if it does not hear that it was answered, and would then
// repeat an acceptance, but perhaps not a refusal.
func (g *Gateway) refuse(r request, err error) {
	switch r := r.(type) {
	case fromPeer:
		g.refuseTo(r.m.Reply, err)
	case indeterminate:
		g.refuseTo(r.Reply(), session.Busy())
	default:
		g.refuseTo(r.Reply(), err)
		ended(r)
	}
}

// refuseTo sends a refusal. What is no refusal is an internal cause: it is logged, and
// the answer says only that the broker cannot answer now.
func (g *Gateway) refuseTo(to string, err error) {
	var refusal *session.Refusal
	if !errors.As(err, &refusal) {
		g.o.Log.Error("api", zap.Error(err))
		refusal = session.Busy()
	}
	data, err := json.Marshal(api.Refused(refusal), json.Deterministic(true))
	if err != nil {
		g.o.Log.Error("refusal", zap.Error(err))
		return
	}
	g.publish(to, nats.Header{
		micro.ErrorHeader:     {headerText(refusal.Error())},
		micro.ErrorCodeHeader: {strconv.Itoa(refusal.Code.Status())},
	}, data)
}

const (
	// limitedPause is how long a principal that exceeds its limits waits to hear so:
	// it slows down who sends the next request when the last is answered, and the broker
	// is not busy with refusing.
	limitedPause = 100 * time.Millisecond

	maxDelayed = 1 << 14 // refusals that wait so; the next are sent at once
)

// refuseLater refuses after a pause.
func (g *Gateway) refuseLater(to string, err error) {
	if g.delayed.Add(1) > maxDelayed || !g.begin() {
		g.delayed.Add(-1)
		g.refuseTo(to, err)
		return
	}
	time.AfterFunc(limitedPause, func() {
		defer g.inFlight.Done()
		defer g.delayed.Add(-1)
		g.refuseTo(to, err)
	})
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
