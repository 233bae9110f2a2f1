package broker

import (
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
		b.Log.Error("event", zap.Error(err))
		return
	}
	if err := b.Conn.Publish(api.Event(id, kind), data); err != nil {
		b.Log.Debug("event not published", zap.Error(err))
	}
}

// tellRefused publishes that an act was refused: who and why, never what.
func (b *Broker) tellRefused(id performatives.SessionID, a performatives.Agent, r *session.Refusal) {
	b.tell(id, "refused", map[string]any{
		"sessionId": id, "sender": a, "code": r.Code, "at": b.Now().UTC().Format(time.RFC3339Nano),
	})
}
