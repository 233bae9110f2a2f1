package broker

import (
	"errors"
	"time"

	"github.com/go-json-experiment/json"
	"go.uber.org/zap"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// tell publishes an event for monitors, best effort (PROTOCOL.md §2).
func (b *Broker) tell(id performatives.SessionID, kind string, event map[string]any) {
	event["kind"] = kind
	data, err := json.Marshal(event, json.Deterministic(true))
	if err != nil {
		b.o.Log.Error("event", zap.Error(err))
		return
	}
	if err := b.parts.Store.Bus().Publish(api.Event(id, kind), data); err != nil {
		b.o.Log.Debug("event not published", zap.Error(err))
	}
}

// tellRefused publishes that an act was refused: who and why, never what.
func (b *Broker) tellRefused(id performatives.SessionID, a performatives.Agent, r *session.Refusal) {
	b.tell(id, "refused", map[string]any{
		"sessionId": id, "sender": a, "code": r.Code, "at": b.o.Now().UTC().Format(time.RFC3339Nano),
	})
}

// noSession stands for the session in an event that is about none.
const noSession = performatives.SessionID("-")

// tellLimited tells monitors and the log that a principal exceeds its limits.
func (b *Broker) tellLimited(a performatives.Agent, id performatives.SessionID, err error) {
	var refusal *session.Refusal
	if !errors.As(err, &refusal) {
		return
	}
	now := b.o.Now()
	n := b.limitEvents.Count(a, now)
	if n == 0 {
		return
	}
	b.o.Log.Debug("a principal exceeds its limits", zap.String("agent", string(a)), zap.Int("times", n), zap.Error(err))
	b.tell(id, "limited", map[string]any{
		"sessionId": id, "sender": a, "code": refusal.Code, "times": n, "details": refusal.Details, "at": now.UTC().Format(time.RFC3339Nano),
	})
}
