package server

import (
	"context"
	"net/netip"
)

// Reload changes what a running server can change, and takes it from these options: Rules, Notify, SignIn,
// Limits, Connections and HTTPConnections, besides the files of the TLS certificate. If anything of it
// cannot be used, nothing changes. One call at a time, and none during Close.
func (s *Server) Reload(ctx context.Context, o Options) error {
	certificate, err := s.certificate.reload()
	if err != nil {
		return err
	}
	signIn, err := o.signIn()
	if err != nil {
		return err
	}
	notifier, err := s.openNotify(ctx, o.Notify)
	if err != nil {
		return err
	}
	parts := &s.Broker.Parts
	moved, err := parts.Approvals.SetRules(ctx, o.Rules)
	if err != nil {
		if notifier != nil {
			notifier.Close()
		}
		return err
	}
	s.Broker.rules.Store(o.Rules)
	s.Broker.warnOfApprovers(o.Rules)
	for _, human := range moved {
		parts.Registry.Reconnect(human)
	}
	if s.web != nil {
		s.web.inbox.SetOpenID(signIn)
	}
	s.closeNotify()
	s.notifier = notifier
	s.Broker.Command.SetLimits(o.Limits)
	most := o.Limits.WithDefaults()
	parts.Terms.SetLimits(most.Schemas, most.SchemaBytes)
	if s.room != nil {
		s.room.set(o.Connections)
	}
	for _, a := range s.addresses {
		a.set(o.HTTPConnections)
	}
	certificate()
	return nil
}

// visitors counts the connections of one more listener.
func (s *Server) visitors(most int, proxies []netip.Prefix) *addresses {
	a := newAddresses(most, proxies)
	s.addresses = append(s.addresses, a)
	return a
}
