package server

import (
	"context"
	"crypto/tls"
	"net"

	macpgateway "github.com/parley-asp/parley/gateway/macp"
	"github.com/parley-asp/parley/hosted"
)

// openMACP opens the listener of MACP's gRPC. One address has as many connections as of HTTP.
func (s *Server) openMACP(ctx context.Context, o Options, tlsConfig *tls.Config) error {
	records, err := s.MACPRecords(ctx)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", o.MACP)
	if err != nil {
		return err
	}
	s.MACPAddr = listener.Addr().String()
	s.macp = macpgateway.New(macpgateway.Options{
		Broker: s.Broker, Hosted: s.Hosted(), Custody: s.Custody(), Agents: s.Broker, Feeds: s.Broker, Records: records,
		Dev: s.Dev, TLS: tlsConfig, Log: o.Log.Named("macp"),
	})
	go s.macp.Serve(newAddresses(o.HTTPConnections, nil).listenStrictly(listener)) //nolint:errcheck // returns when closed
	return nil
}

// Hosted says acts for hosted agents.
func (s *Server) Hosted() *hosted.Agents {
	return hosted.New(hosted.Options{
		Broker: s.Broker, Custody: s.Custody(), Keys: s.IdempotencyKeys(), Private: privateTerms{s}, Now: s.Now,
	})
}
