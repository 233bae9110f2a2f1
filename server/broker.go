package server

import (
	"context"
	"errors"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker"
	natsgateway "github.com/parley-asp/parley/gateway/nats"
	"github.com/parley-asp/parley/idempotency"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/records"
	"github.com/parley-asp/parley/store"
)

// A Broker is a broker, its NATS gateway, and what other gateways keep.
type Broker struct {
	*broker.Broker
	Gateway     *natsgateway.Gateway
	idempotency *idempotency.Keys
	a2aRecords  *records.Records
}

// OpenBroker opens a broker and subscribes its NATS gateway.
func OpenBroker(ctx context.Context, o broker.Options) (*Broker, error) {
	b, err := broker.Open(ctx, o)
	if err != nil {
		return nil, err
	}
	opened := &Broker{Broker: b}
	if err := opened.openRecords(ctx); err != nil {
		b.Close(ctx) //nolint:errcheck // the first error matters
		return nil, err
	}
	opened.Gateway, err = natsgateway.Serve(natsgateway.Options{
		Conn: o.Conn, Service: b, Members: b.Members(), ID: b.ID(), Key: b.Key(), Alone: o.Alone, Log: b.Log,
	})
	if err != nil {
		b.Close(ctx) //nolint:errcheck // the first error matters
		return nil, err
	}
	return opened, nil
}

// openRecords opens what gateways keep.
func (b *Broker) openRecords(ctx context.Context) error {
	if err := b.Store().Patiently(ctx, "idempotency keys", func(ctx context.Context) (err error) {
		b.idempotency, err = idempotency.Open(ctx, b.Store())
		return err
	}); err != nil {
		return err
	}
	return b.Store().Patiently(ctx, "records of A2A", func(ctx context.Context) (err error) {
		b.a2aRecords, err = records.Open(ctx, b.Store(), api.A2ABucket, "what is to be done for clients of A2A")
		return err
	})
}

// IdempotencyKeys remember the acts that gateways make.
func (b *Broker) IdempotencyKeys() *idempotency.Keys { return b.idempotency }

// A2ARecords are what is to be done for clients of A2A.
func (b *Broker) A2ARecords() *records.Records { return b.a2aRecords }

// MACPRecords is where the MACP gateway keeps names of sessions, and policies.
func (b *Broker) MACPRecords(ctx context.Context) (*store.Bucket, error) {
	return b.Store().Bucket(ctx, api.MACPBucket, "names of MACP's sessions, and its policies", 0)
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
