package server

import (
	"context"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/notify"
)

// openNotify starts telling people of escalations, if somebody is to be told.
func (n *Node) openNotify(ctx context.Context, o Options) (err error) {
	if o.Notify == nil {
		return nil
	}
	n.notifier, err = notify.Start(ctx, notify.Options{Conn: n.Conn, Config: o.Notify, Item: n.item, Sent: n.Notified, Log: o.Log.Named("notify"), Now: n.Now})
	return err
}

// item is an escalation as operators see it: what is told is of no one person's view.
func (n *Node) item(ctx context.Context, id string) (api.EscalationItem, error) {
	return ask(ctx, n, api.EscalationGet, api.EscalationRef{Escalation: id})
}
