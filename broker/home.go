package broker

import (
	"bytes"
	"context"
	"crypto/sha256"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
	"go.uber.org/zap"

	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/wire"
)

// Where several brokers share the work, each session has a home among those
// that are there: the broker whose memory is warm. Whoever an act comes to
// hands it on. Nothing is wrong when two brokers see that differently, or when a
// home is gone: it costs a reading of what the other has entered, and appends
// are conditional anyway.

// home is the broker among these that a session belongs to: the same one for
// whoever asks, and for most sessions still the same when one comes or goes
// (rendezvous hashing).
func home(id performatives.SessionID, brokers []string) (best string) {
	var most [sha256.Size]byte
	for _, broker := range brokers {
		if h := sha256.Sum256([]byte(broker + "/" + string(id))); bytes.Compare(h[:], most[:]) > 0 {
			best, most = broker, h
		}
	}
	return best
}

// elsewhere is the home of a session, if that is another broker.
func (b *Broker) elsewhere(id performatives.SessionID) (broker string, is bool) {
	if b.Alone {
		return "", false
	}
	at := home(id, b.presence.there())
	return at, at != b.id
}

var codeUnavailable = strconv.Itoa(session.Unavailable.Status())

// handOn has the home of a session answer, and judges here when nobody is at
// home, or whoever is there is about to leave. A home that is there but silent
// may be gone by then, or not: the act is the same one, and entered once.
func (b *Broker) handOn(at string, r micro.Request, id performatives.SessionID, caller performatives.Agent, leave func()) {
	ctx, cancel := context.WithTimeout(b.ctx, silentAfter)
	defer cancel()
	answer, err := b.Conn.RequestWithContext(ctx, wire.HandedOn(at)+r.Subject(), r.Data())
	if err != nil || answer.Header.Get(wire.ErrorCodeHeader) == codeUnavailable {
		b.Log.Debug("nobody at home", zap.String("session", string(id)), zap.String("broker", at), zap.Error(err))
		b.submit(r, id, caller, leave)
		return
	}
	leave()
	b.answer(r.Reply(), answer.Header, answer.Data)
}

// onHanded answers what another broker has let in and handed on.
func (b *Broker) onHanded(m *nats.Msg) {
	caller, id, err := wire.ParseSubmit(strings.TrimPrefix(m.Subject, wire.HandedOn(b.id)))
	if err == nil {
		b.submit(handed{m}, id, caller, func() {})
	}
}

// asked is a request that somebody waits for an answer to.
type asked interface {
	Reply() string
	Data() []byte
}

type handed struct{ m *nats.Msg }

func (h handed) Reply() string { return h.m.Reply }
func (h handed) Data() []byte  { return h.m.Data }
