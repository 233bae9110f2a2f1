package node

import (
	"context"
	"errors"

	"github.com/go-json-experiment/json"

	"github.com/parley-asp/parley/notify"
	"github.com/parley-asp/parley/wire"
)

// openNotify starts telling people of escalations, if somebody is to be told.
func (n *Node) openNotify(ctx context.Context, o Options) (err error) {
	if o.Notify == nil {
		return nil
	}
	n.notifier, err = notify.Start(ctx, notify.Options{Conn: n.Conn, Config: o.Notify, Item: n.item, Told: n.Notified, Log: o.Log.Named("notify"), Now: n.Now})
	return err
}

// item is an escalation as operators see it: what is told is of no one person's view.
func (n *Node) item(ctx context.Context, id string) (item wire.EscalationItem, err error) {
	request, err := json.Marshal(wire.EscalationRef{Escalation: id})
	if err != nil {
		return item, err
	}
	reply, err := n.Conn.RequestWithContext(ctx, wire.OperatorCall(wire.EscalationGet), request)
	if err != nil {
		return item, err
	}
	if code := reply.Header.Get(wire.ErrorCodeHeader); code != "" {
		return item, errors.New("escalation.get is answered " + code)
	}
	return item, json.Unmarshal(reply.Data, &item)
}
