package server

import (
	"context"
	"crypto/tls"
	"net"

	"github.com/parley-asp/parley/api"
	macpgateway "github.com/parley-asp/parley/gateway/macp"
	"github.com/parley-asp/parley/performatives"
)

// openMACP opens the listener of MACP's gRPC. One address has as many connections as of HTTP.
func (s *Server) openMACP(ctx context.Context, o Options, tlsConfig *tls.Config) error {
	records, err := s.Broker.Parts.Store.Bucket(ctx, api.MACPBucket, "names of MACP's sessions, and its policies", 0)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", o.MACP)
	if err != nil {
		return err
	}
	s.MACPAddr = listener.Addr().String()
	s.macp = macpgateway.New(macpgateway.Options{
		Service: s.Broker.Service, Healthy: s.Broker.Command.Healthy, Card: s.Broker.Parts.Registry.Card, Sender: s.macpSender, Records: records, TLS: tlsConfig,
	})
	go s.macp.Serve(s.visitors(o.HTTPConnections, nil).listenStrictly(listener)) //nolint:errcheck // returns when closed
	return nil
}

// macpSender finds the principal that MACP knows by a name: a token's, which an operator has
// given it, or else a card's.
func (s *Server) macpSender(name string) (performatives.Agent, bool) {
	if a, known := s.Broker.Custody.MACPSender(name); known {
		return a, true
	}
	return s.Broker.Parts.Registry.MACPSender(name)
}
