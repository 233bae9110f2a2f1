package client

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/client/internal/web"
	"github.com/parley-asp/parley/internal/natslogin"
	"github.com/parley-asp/parley/performatives"
)

// A Client is one principal's connection to the broker. It reconnects for ever.
type Client struct {
	Calls
	agent performatives.Agent
	inbox *inbox
}

// ErrClosed is for what is asked of a client that was closed.
var ErrClosed = errors.New("client: closed")

// connectWait is how long Connect tries where the context has no end.
const connectWait = 30 * time.Second

// Connect connects a principal to the broker at a NATS address, "" being that
// of the [Context] or nats://127.0.0.1:4222. It tries until it is connected or
// the context ends, or for 30 s where the context has no end: a login that is
// turned away may be let in once the broker is up. After that the connection
// mends itself.
func Connect(ctx context.Context, url string, agent performatives.Agent, options ...Option) (*Client, error) {
	if _, err := performatives.ParseAgent(string(agent)); err != nil {
		return nil, fmt.Errorf("client: %q is no principal: %w", agent, err)
	}
	c, err := configure(url, options, true)
	if err != nil {
		return nil, err
	}
	if c.http != nil {
		c.http.Agent = agent
	}
	l, err := dial(ctx, c, agent.Token(), string(agent))
	if err != nil {
		return nil, err
	}
	client := &Client{agent: agent, Calls: Calls{l, func(verb string) string { return api.Call(agent, verb) }}}
	client.inbox = newInbox(client)
	return client, nil
}

// Close gives back what the inbox delivered and nobody acknowledged, sends what
// is still to be sent, and closes the connection unless it is the caller's own.
// Loops over messages end with [ErrClosed].
func (c *Client) Close() error {
	c.inbox.close()
	return c.link.close()
}

// Agent is the principal that the client speaks for.
func (c *Client) Agent() performatives.Agent { return c.agent }

// Key is the public key that the client signs with, "" if it signs nothing.
func (c *Client) Key() performatives.Key {
	if c.link.signer == nil {
		return ""
	}
	return c.link.signer.Key()
}

// Session is a session by its id. It asks nobody whether there is one.
func (c *Client) Session(id performatives.SessionID) *Session { return &Session{c, id} }

// A link is a connection and what is needed to ask something over it.
type link struct {
	nc      *nats.Conn
	own     bool      // close it at the end
	http    *web.Conn // instead of nc
	signer  performatives.Signer
	timeout time.Duration
	limit   time.Duration // 0 is none
	log     *slog.Logger
	waiting waiting
	broker  atomic.Pointer[performatives.Key] // nil until it has said who it is
}

// The pings by which a connection that died without a word is noticed.
const (
	pingEvery   = 20 * time.Second
	pingsMissed = 2
)

// dial opens the connection of a login of this name.
func dial(ctx context.Context, c *config, name, title string) (*link, error) {
	l := &link{nc: c.conn, own: c.conn == nil, http: c.http, signer: c.signer, timeout: c.timeout, limit: c.limit, log: c.log}
	if !l.own || l.http != nil {
		return l, nil
	}
	options := []nats.Option{
		nats.Name(title),
		nats.CustomInboxPrefix("_INBOX." + name),
		nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1), nats.IgnoreAuthErrorAbort(),
		nats.CustomReconnectDelay(pause),
		nats.PingInterval(pingEvery), nats.MaxPingsOutstanding(pingsMissed),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if l.waiting.broken(); err != nil { // nil is our own Close
				l.log.Warn("connection lost", slog.Any("error", err))
			}
		}),
		nats.ReconnectHandler(func(nc *nats.Conn) {
			l.broker.Store(nil)
			l.log.Info("connected again", slog.String("url", nc.ConnectedUrlRedacted()))
		}),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			l.waiting.denied(err)
			l.log.Warn("connection", slog.Any("error", err))
		}),
	}
	options = append(append(options, c.login...), c.more...)
	var err error
	if l.nc, err = nats.Connect(c.url, options...); err != nil {
		return nil, fmt.Errorf("client: %s: %w", natslogin.WithoutPassword(c.url), err)
	}
	if _, ends := ctx.Deadline(); !ends {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, connectWait)
		defer cancel()
	}
	if err := l.connected(ctx); err != nil {
		last := l.nc.LastError()
		l.nc.Close()
		if last != nil {
			err = fmt.Errorf("%w (%w)", last, err)
		}
		return nil, fmt.Errorf("client: no connection to %s: %w", natslogin.WithoutPassword(c.url), err)
	}
	return l, nil
}

// connected waits for the connection.
func (l *link) connected(ctx context.Context) error {
	if l.http != nil || l.nc.IsConnected() {
		return nil
	}
	changed := l.nc.StatusChanged(nats.CONNECTED, nats.CLOSED)
	defer l.nc.RemoveStatusListener(changed)
	for {
		switch {
		case l.nc.IsConnected():
			return nil
		case l.nc.IsClosed():
			return ErrClosed
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (l *link) close() error {
	if l.http != nil {
		l.http.Close()
		return nil
	}
	var err error
	if l.nc.IsConnected() {
		err = l.nc.FlushTimeout(l.timeout)
	}
	if l.own {
		l.nc.Close()
	}
	return err
}

// pause is how long to wait before trying again, after so many attempts: from
// some 25 ms up to 2 s, never twice the same, so that many clients of a broker
// that comes back do not come all at once.
func pause(attempts int) time.Duration {
	longest := min(50*time.Millisecond<<min(attempts, 10), 2*time.Second)
	return longest/2 + rand.N(longest/2) //nolint:gosec // no secret
}
