package natsgateway

import (
	"errors"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
	"go.uber.org/zap"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker/cluster"
	"github.com/parley-asp/parley/internal/pending"
	"github.com/parley-asp/parley/internal/telemetry"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

var codeUnavailable = strconv.Itoa(session.Unavailable.Status())

// A forwarded act is on its way to the owner of its session: an envelope, or what session.say says.
type forwarded struct {
	r       request
	subject string
	id      performatives.SessionID
	sender  performatives.Agent
	release func()
	owner   string
	say     bool
}

// forwarder forwards acts to the owners of their sessions, and judges what other
// brokers forward to this one. The owner answers whoever asked. It acknowledges many
// acts in one message to the broker between them, which only has to know that it need
// not judge them itself. When an act comes again, its answer did not reach whoever asked:
// from then on, answers of that owner go through the broker between them for a while.
type forwarder struct {
	g             *Gateway
	answers       *pending.Answers[forwarded]
	subscriptions []*nats.Subscription
	breaker       breaker // of owners that do not answer
	lost          breaker // of owners whose answers did not reach an asker
	repeats       repeats

	mu   sync.Mutex
	acks map[string][]string // numbers of acts that were answered here, by the reply prefix of the broker that forwarded them
}

const (
	ackDelay = 2 * time.Millisecond // of an acknowledgement, at most
	ackBatch = 64                   // numbers in one message
	ackToken = "-"                  // in place of one number
)

func (g *Gateway) openForwarder() (*forwarder, error) {
	f := &forwarder{g: g, acks: map[string][]string{}}
	f.answers = pending.New(g.o.Conn.NewInbox()+".", math.MaxInt, cluster.SuspectAfter, f.timedOut)
	for subject, receive := range map[string]nats.MsgHandler{
		f.answers.Prefix + "*":                 f.answered,
		api.Forwarded(g.o.ID) + api.AllSubmits: f.judgeForPeer,
		api.Forwarded(g.o.ID) + api.AllSays:    f.judgeForPeer,
	} {
		s, err := g.o.Conn.Subscribe(subject, receive)
		if err == nil {
			f.subscriptions = append(f.subscriptions, s)
			err = s.SetPendingLimits(-1, -1)
		}
		if err != nil {
			f.close()
			return nil, err
		}
	}
	return f, nil
}

func (f *forwarder) close() {
	f.flush()
	for _, s := range f.subscriptions {
		if err := s.Unsubscribe(); err != nil {
			f.g.o.Log.Debug("forwarder", zap.Error(err)) // the connection is closed
		}
	}
	f.answers.End(pending.ErrClosed)
}

// send has the owner of a session answer. When the owner is gone or leaving, the act is
// judged here, and so are those after one that was not answered: the owner may judge it
// too, but it is entered once.
func (f *forwarder) send(act forwarded) {
	if f.breaker.open(act.owner, time.Now()) {
		f.judge(act, pending.ErrTimeout)
		return
	}
	reply, err := f.answers.Put(act)
	if err == nil {
		header := nats.Header{}
		if !f.relays(act) {
			header.Set(api.AskerHeader, act.r.Reply())
		}
		maps.Copy(header, telemetry.Headers(f.g.parent(act.r)))
		err = f.g.o.Conn.PublishMsg(&nats.Msg{Subject: api.Forwarded(act.owner) + act.subject, Reply: reply, Data: act.r.Data(), Header: header})
		if err == nil {
			return
		}
		if _, found := f.answers.Take(reply); !found {
			return
		}
	}
	f.judge(act, err)
}

// relays reports whether the answer to an act has to go through this broker.
func (f *forwarder) relays(act forwarded) bool {
	now := time.Now()
	if f.repeats.again(act) {
		f.lost.trip(act.owner, now)
		return true
	}
	return f.lost.tripped(act.owner, now)
}

// timedOut refuses an act that the owner did not answer in time. It is not judged here so
// late: its sender may have sent it again and been refused meanwhile.
func (f *forwarder) timedOut(act forwarded, why error) {
	defer f.g.inFlight.Done()
	f.breaker.trip(act.owner, time.Now())
	f.g.o.Log.Debug("the owner does not answer", zap.String("session", string(act.id)), zap.Error(why))
	act.release()
	f.g.refuseUnread(act.r)
}

// judge is for an act that the owner cannot judge.
func (f *forwarder) judge(act forwarded, why error) {
	defer f.g.inFlight.Done()
	f.g.o.Log.Debug("the owner is gone", zap.String("session", string(act.id)), zap.Error(why))
	r := act.r
	if errors.Is(why, pending.ErrTimeout) {
		r = indeterminate{r}
	}
	act.r = r
	f.g.judge(act)
}

// indeterminate is an act that a silent owner may still judge and accept. Here it can be
// accepted, which the owner would repeat; but no refusal is final, so whoever asked is
// told to ask again.
type indeterminate struct{ request }

var errOwnerGone = errors.New("no answer, or from a broker that is leaving")

// answered receives acknowledgements of the owners. An answer may come here too, when
// the owner cannot judge the act.
func (f *forwarder) answered(m *nats.Msg) {
	if m.Subject == f.answers.Prefix+ackToken {
		for _, number := range strings.Fields(string(m.Data)) {
			if act, found := f.answers.Take(number); found {
				f.breaker.reset(act.owner)
				act.release()
				f.g.inFlight.Done()
			}
		}
		return
	}
	act, found := f.answers.Take(m.Subject)
	if !found {
		return
	}
	f.breaker.reset(act.owner) // the owner answered, or the server says that it is gone
	if len(m.Data) == 0 || m.Header.Get(api.ErrorCodeHeader) == codeUnavailable {
		f.judge(act, errOwnerGone)
		return
	}
	act.release()
	if m.Header.Get(api.ErrorCodeHeader) == "" {
		f.g.charge(act.r, act.sender, m.Data)
	}
	f.g.publish(act.r.Reply(), m.Header, m.Data)
	f.g.inFlight.Done()
}

// judgeForPeer answers what another broker has let in and forwarded.
func (f *forwarder) judgeForPeer(m *nats.Msg) {
	subject := strings.TrimPrefix(m.Subject, api.Forwarded(f.g.o.ID))
	act := forwarded{r: fromPeer{m, m.Header.Get(api.AskerHeader)}, release: func() {}}
	var err error
	if act.sender, act.id, err = api.ParseSubmit(subject); err != nil {
		var verb string
		act.sender, verb, err = api.ParseCall(subject)
		act.say = verb == api.SessionSay.Name
	}
	if err == nil {
		f.g.judge(act)
	}
}

// acknowledge notes an act that was answered here, for the broker that forwarded it.
func (f *forwarder) acknowledge(reply string) {
	end := strings.LastIndexByte(reply, '.') + 1
	peer, number := reply[:end], reply[end:]
	f.mu.Lock()
	f.acks[peer] = append(f.acks[peer], number)
	n := len(f.acks[peer])
	f.mu.Unlock()
	switch n {
	case 1:
		time.AfterFunc(ackDelay, func() { f.sendAcks(peer) })
	case ackBatch:
		f.sendAcks(peer)
	}
}

func (f *forwarder) sendAcks(peer string) {
	f.mu.Lock()
	numbers := f.acks[peer]
	delete(f.acks, peer)
	f.mu.Unlock()
	if len(numbers) == 0 {
		return
	}
	if err := f.g.o.Conn.Publish(peer+ackToken, []byte(strings.Join(numbers, " "))); err != nil {
		f.g.o.Log.Debug("acknowledgements not sent", zap.Error(err)) // the acts will be judged again, as repeats
	}
}

// flush sends the last acknowledgements.
func (f *forwarder) flush() {
	f.mu.Lock()
	peers := slices.Collect(maps.Keys(f.acks))
	f.mu.Unlock()
	for _, peer := range peers {
		f.sendAcks(peer)
	}
}

// fromPeer is an act that another broker forwarded.
type fromPeer struct {
	m     *nats.Msg
	asker string // where its sender waits; "" if the peer passes the answer on itself
}

func (r fromPeer) Data() []byte { return r.m.Data }

func (r fromPeer) Headers() micro.Headers { return micro.Headers(r.m.Header) }

func (r fromPeer) Reply() string {
	if r.asker != "" {
		return r.asker
	}
	return r.m.Reply
}
