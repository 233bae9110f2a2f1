package server

import (
	"context"
	"errors"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker"
	natsgateway "github.com/parley-asp/parley/gateway/nats"
	"github.com/parley-asp/parley/performatives"
)

// A Broker is a broker and its NATS gateway.
type Broker struct {
	*broker.Broker
	Gateway *natsgateway.Gateway
}

// OpenBroker opens a broker and subscribes its NATS gateway.
func OpenBroker(ctx context.Context, o broker.Options) (*Broker, error) {
	b, err := broker.Open(ctx, o)
	if err != nil {
		return nil, err
	}
	gateway, err := natsgateway.Serve(natsgateway.Options{
		Conn: o.Conn, Service: b, Members: b.Members(), ID: b.ID(), Key: b.Key(), Alone: o.Alone, Log: b.Log,
	})
	if err != nil {
		b.Close(ctx) //nolint:errcheck // the first error matters
		return nil, err
	}
	return &Broker{b, gateway}, nil
}

// Close stops receiving requests, waits for those in progress, and closes the broker.
func (b *Broker) Close(ctx context.Context) error {
	stopped := b.Gateway.Stop(ctx)
	closed := b.Broker.Close(ctx)
	b.Gateway.Close()
	return errors.Join(stopped, closed)
}

// CallAs calls a verb as a principal that another gateway has authenticated.
func (b *Broker) CallAs(ctx context.Context, as performatives.Agent, verb string, request []byte) ([]byte, error) {
	return b.Gateway.CallAs(ctx, as, verb, request)
}

// SubmitAs submits an envelope as a principal that another gateway has authenticated.
func (b *Broker) SubmitAs(ctx context.Context, as performatives.Agent, id performatives.SessionID, envelope []byte) (api.Acceptance, error) {
	return b.Gateway.SubmitAs(ctx, as, id, envelope)
}
