package client

import (
	"context"
	"errors"
	"log/slog"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/session"
)

// consumer finds the principal's durable consumer. Under --dev a principal that
// nobody has named yet has none; it registers itself.
func (in *inbox) consumer(ctx context.Context) (jetstream.Consumer, error) {
	c := in.client
	js, err := jetstream.New(c.link.nc)
	if err != nil {
		return nil, err
	}
	token := c.agent.Token()
	for attempt := 0; ; attempt++ {
		if err := c.link.connected(ctx); err != nil {
			return nil, err
		}
		consumer, err := in.find(ctx, js, token)
		if err == nil || errors.Is(err, nats.ErrPermissionViolation) {
			return consumer, err
		}
		if errors.Is(err, jetstream.ErrConsumerNotFound) {
			if err := c.introduce(ctx); err != nil {
				return nil, err
			}
		}
		c.link.log.Debug("inbox", slog.Any("error", err))
		if !wait(ctx, pause(attempt)) {
			return nil, ctx.Err()
		}
	}
}

func (in *inbox) find(ctx context.Context, js jetstream.JetStream, token string) (jetstream.Consumer, error) {
	one, cancel := context.WithTimeout(ctx, in.client.link.timeout)
	defer cancel()
	one, stop := in.client.link.waiting.watch(one, "$JS.API.CONSUMER.INFO."+api.InboxStream+"."+token)
	defer stop()
	consumer, err := js.Consumer(one, api.InboxStream, token)
	return consumer, why(one, err)
}

// introduce registers the principal with an empty card unless it has one.
func (c *Client) introduce(ctx context.Context) error {
	_, err := c.Card(ctx, c.agent)
	if errors.Is(err, Refused(session.UnknownAgent)) {
		_, err = c.Register(ctx, api.Card{})
	}
	return err
}
