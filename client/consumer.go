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

// consumer finds the consumer that the feed pulls from: that of its session, or the principal's
// shared one.
func (f *feed) consumer(ctx context.Context) (jetstream.Consumer, error) {
	c := f.in.client
	js, err := jetstream.New(c.link.nc)
	if err != nil {
		return nil, err
	}
	shared := f.session == ""
	for attempt := 0; ; attempt++ {
		if err := c.link.connected(ctx); err != nil {
			return nil, err
		}
		var consumer jetstream.Consumer
		if shared {
			consumer, err = c.shared(ctx, js)
		} else {
			consumer, err = f.own(ctx, js)
		}
		switch {
		case err == nil, shared && errors.Is(err, nats.ErrPermissionViolation):
			return consumer, err
		case errors.Is(err, errShared):
			shared = true
			continue
		case shared && errors.Is(err, jetstream.ErrConsumerNotFound):
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

// errShared says that there is no consumer for the session, and the shared one has to do.
var errShared = errors.New("no session consumer")

// own finds the session's consumer. The shared one has to do where the principal has as many as it
// may, or where the broker or the login knows nothing of session consumers.
func (f *feed) own(ctx context.Context, js jetstream.JetStream) (jetstream.Consumer, error) {
	c := f.in.client
	found, err := once(ctx, &c.Calls, api.SessionConsumer, api.AskConsumer{Session: f.session, Ahead: 4 * ahead}, c.link.timeout)
	switch {
	case errors.Is(err, Refused(session.RateLimited)), errors.Is(err, Refused(session.MalformedEnvelope)):
		c.link.log.Warn("a session is read from the shared inbox", slog.String("session", string(f.session)), slog.Any("error", err))
		return nil, errShared
	case err != nil: // such as a session that has yet to be opened
		return nil, err
	}
	consumer, err := c.find(ctx, js, found.Stream, found.Name)
	if errors.Is(err, nats.ErrPermissionViolation) {
		return nil, errShared
	}
	return consumer, err
}

// shared finds the principal's consumer, on the stream that the broker says if it is not on the usual one.
func (c *Client) shared(ctx context.Context, js jetstream.JetStream) (jetstream.Consumer, error) {
	consumer, err := c.find(ctx, js, api.InboxStream, c.agent.Token())
	if !errors.Is(err, nats.ErrPermissionViolation) && !errors.Is(err, jetstream.ErrConsumerNotFound) {
		return consumer, err
	}
	info, unknown := once(ctx, &c.Calls, api.BrokerInfo, struct{}{}, c.link.timeout)
	if unknown != nil || info.Inbox == "" {
		return nil, err
	}
	return c.find(ctx, js, info.Inbox, c.agent.Token())
}

func (c *Client) find(ctx context.Context, js jetstream.JetStream, stream, name string) (jetstream.Consumer, error) {
	one, cancel := context.WithTimeout(ctx, c.link.timeout)
	defer cancel()
	one, stop := c.link.waiting.watch(one, "$JS.API.CONSUMER.INFO."+stream+"."+name)
	defer stop()
	consumer, err := js.Consumer(one, stream, name)
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
