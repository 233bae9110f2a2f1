package server

import (
	"context"
	"errors"

	"github.com/go-json-experiment/json"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/notify"
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
func (n *Node) item(ctx context.Context, id string) (item api.EscalationItem, err error) {
	request, err := json.Marshal(api.EscalationRef{Escalation: id})
	if err != nil {
		return item, err
	}
	reply, err := n.Conn.RequestWithContext(ctx, api.OperatorCall(api.EscalationGet.Name), request)
	if err != nil {
		return item, err
	}
	if code := reply.Header.Get(api.ErrorCodeHeader); code != "" {
		return item, errors.New("escalation.get is answered " + code)
	}
	return item, json.Unmarshal(reply.Data, &item)
}
