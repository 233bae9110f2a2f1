package server

import (
	"context"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/inbox/notify"
)

// openNotify starts notifications, if they are configured.
func (s *Server) openNotify(ctx context.Context, o Options) (err error) {
	if o.Notify == nil {
		return nil
	}
	s.notifier, err = notify.Start(ctx, notify.Options{Conn: s.Broker.Options.Conn, Config: o.Notify, Item: s.item, Insights: s.Broker.Insights.Of, Sent: s.Broker.Parts.Approvals.Notified, Log: o.Log.Named("notify"), Now: s.Broker.Options.Now})
	return err
}

// item returns an escalation as operators see it, not one person's view.
func (s *Server) item(ctx context.Context, id string) (api.EscalationItem, error) {
	return ask(ctx, s, api.EscalationGet, api.GetEscalation{Escalation: id})
}
