package server

import (
	"context"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/inbox/notify"
)

// openNotify starts notifications, if they are configured; else there is no notifier.
func (s *Server) openNotify(ctx context.Context, config *notify.Config) (*notify.Notifier, error) {
	if config == nil {
		return nil, nil //nolint:nilnil // nobody is notified
	}
	b := s.Broker
	return notify.Start(ctx, notify.Options{Conn: b.Options.Conn, Config: config, Item: s.item, Insights: b.Insights.Of, Sent: b.Parts.Approvals.Notified, Log: b.Options.Log.Named("notify"), Now: b.Options.Now})
}

func (s *Server) closeNotify() {
	if s.notifier != nil {
		s.notifier.Close()
	}
}

// item returns an escalation as operators see it, not one person's view.
func (s *Server) item(ctx context.Context, id string) (api.EscalationItem, error) {
	return ask(ctx, s, api.EscalationGet, api.GetEscalation{Escalation: id})
}
