package broker

import (
	"context"
	"errors"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"go.uber.org/zap"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/cluster"
	"github.com/parley-asp/parley/internal/pending"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

var codeUnavailable = strconv.Itoa(session.Unavailable.Status())

// A handover is an act on its way to the home of its session.
type handover struct {
	r       asked
	subject string
	id      performatives.SessionID
	caller  performatives.Agent
	leave   func()
	at      string // its home
}

// handovers are what this broker has handed on and others to it. The home answers
// whoever asked, and tells the broker between them that it did, of many acts in
// one message: that broker has only to know that it need not judge them itself.
type handovers struct {
	b   *Broker
	out *pending.Answers[handover]

	mu   sync.Mutex
	done map[string][]string // numbers of acts that were answered here, by the broker that handed them on

	unheard unheard
}

const (
	doneAfter = 2 * time.Millisecond // that an answer is known of later, at most
	doneMany  = 64                   // are told at once
	doneToken = "-"                  // in place of one number
)

func (b *Broker) openHandovers(context.Context) error {
	h := &handovers{b: b, done: map[string][]string{}}
	h.out = pending.New(b.Conn.NewInbox()+".", math.MaxInt, cluster.SuspectAfter, h.silent)
	b.handovers = h
	for subject, hear := range map[string]nats.MsgHandler{
		h.out.Prefix + "*":                  h.answered,
		api.HandedOn(b.id) + api.AllSubmits: h.judgeForAnother,
	} {
		heard, err := b.Conn.Subscribe(subject, hear)
		if err != nil {
			return err
		}
		if err := heard.SetPendingLimits(-1, -1); err != nil {
			return err
		}
	}
	return nil
}

// handOn has the home of a session answer. When nobody is at home, or whoever is
// there is about to leave, the act is judged here, and so are those that come after one
// that was not answered: the home may hear it too, but it is entered once.
func (h *handovers) handOn(act handover) {
	if h.unheard.still(act.at, time.Now()) {
		h.judge(act, pending.ErrTimeout)
		return
	}
	reply, err := h.out.Put(act)
	if err == nil {
		err = h.b.Conn.PublishMsg(&nats.Msg{
			Subject: api.HandedOn(act.at) + act.subject, Reply: reply, Data: act.r.Data(),
			Header: nats.Header{api.AskerHeader: {act.r.Reply()}},
		})
		if err == nil {
			return
		}
		if _, waited := h.out.Take(reply); !waited {
			return
		}
	}
	h.judge(act, err)
}

// silent is for an act that was not answered in time. It is not judged here so late: its
// sender may have sent it again and been refused meanwhile. Sent again it is.
func (h *handovers) silent(act handover, why error) {
	defer h.b.sessions.busy.Done()
	h.unheard.note(act.at, time.Now())
	h.b.Log.Debug("no answer from home", zap.String("session", string(act.id)), zap.Error(why))
	act.leave()
	h.b.refuse(act.r, unavailable())
}

// judge is for an act that its home did not answer.
func (h *handovers) judge(act handover, why error) {
	defer h.b.sessions.busy.Done()
	h.b.Log.Debug("nobody at home", zap.String("session", string(act.id)), zap.Error(why))
	r := act.r
	if errors.Is(why, pending.ErrTimeout) {
		r = doubted{r}
	}
	h.b.submit(r, act.id, act.caller, act.leave)
}

// doubted is an act that a silent home may still come to and accept. Here it can
// be accepted, which the home would repeat; but no refusal is the last word on it,
// so whoever asked is told to ask again.
type doubted struct{ asked }

var errNobodyHome = errors.New("no answer, or from a broker that is about to leave")

// answered hears which acts a home has answered. It may have answered here, too:
// because it cannot judge the act, or knows of no other way.
func (h *handovers) answered(m *nats.Msg) {
	if m.Subject == h.out.Prefix+doneToken {
		for _, number := range strings.Fields(string(m.Data)) {
			if act, waited := h.out.Take(number); waited {
				h.unheard.heard(act.at)
				act.leave()
				h.b.sessions.busy.Done()
			}
		}
		return
	}
	act, waited := h.out.Take(m.Subject)
	if waited {
		h.unheard.heard(act.at) // or of the server, that nobody is there
	}
	switch {
	case !waited:
	case len(m.Data) == 0 || m.Header.Get(api.ErrorCodeHeader) == codeUnavailable:
		h.judge(act, errNobodyHome)
	default:
		act.leave()
		h.b.answer(act.r.Reply(), m.Header, m.Data)
		h.b.sessions.busy.Done()
	}
}

// judgeForAnother answers what another broker has let in and handed on.
func (h *handovers) judgeForAnother(m *nats.Msg) {
	caller, id, err := api.ParseSubmit(strings.TrimPrefix(m.Subject, api.HandedOn(h.b.id)))
	if err == nil {
		h.b.submit(handed{m, m.Header.Get(api.AskerHeader)}, id, caller, func() {})
	}
}

// tell notes an act that was answered here for the broker that handed it on.
func (h *handovers) tell(reply string) {
	end := strings.LastIndexByte(reply, '.') + 1
	broker, number := reply[:end], reply[end:]
	h.mu.Lock()
	h.done[broker] = append(h.done[broker], number)
	many := len(h.done[broker])
	h.mu.Unlock()
	switch many {
	case 1:
		time.AfterFunc(doneAfter, func() { h.tellAll(broker) })
	case doneMany:
		h.tellAll(broker)
	}
}

func (h *handovers) tellAll(broker string) {
	h.mu.Lock()
	done := h.done[broker]
	delete(h.done, broker)
	h.mu.Unlock()
	if len(done) == 0 {
		return
	}
	if err := h.b.Conn.Publish(broker+doneToken, []byte(strings.Join(done, " "))); err != nil {
		h.b.Log.Debug("answers not told of", zap.Error(err)) // they will be judged again, as repeats
	}
}

// tellRest tells of what was answered in the last moment.
func (h *handovers) tellRest() {
	h.mu.Lock()
	brokers := slices.Collect(maps.Keys(h.done))
	h.mu.Unlock()
	for _, broker := range brokers {
		h.tellAll(broker)
	}
}

// asked is a request that somebody waits for an answer to.
type asked interface {
	Reply() string
	Data() []byte
}

// handed is an act that another broker handed on, with where its asker waits.
type handed struct {
	m     *nats.Msg
	asker string // "" of a broker that passes the answer on itself
}

func (h handed) Data() []byte { return h.m.Data }

func (h handed) Reply() string {
	if h.asker != "" {
		return h.asker
	}
	return h.m.Reply
}
