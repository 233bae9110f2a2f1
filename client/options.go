package client

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/parley-asp/parley/client/internal/web"
	"github.com/parley-asp/parley/internal/natscontext"
	"github.com/parley-asp/parley/performatives"
)

// An Option says how to connect, as whom, and how to sign. One of [Seed],
// [SeedFile], [Key], [Creds], [Context] and [Unsigned] is needed.
type Option func(*config) error

// config is what the options add up to.
type config struct {
	url      string
	conn     *nats.Conn    // the caller's own
	http     *web.Conn     // instead of NATS
	login    []nats.Option // how to log in
	more     []nats.Option // the caller's
	signer   performatives.Signer
	unsigned bool
	timeout  time.Duration
	log      *slog.Logger
}

// Seed logs in and signs with the nkey of this seed ("SU…").
func Seed(seed string) Option {
	return func(c *config) error {
		pair, err := nkeys.FromSeed([]byte(seed))
		if err != nil {
			return fmt.Errorf("seed: %w", err)
		}
		return c.key(pair)
	}
}

// SeedFile logs in and signs with the nkey whose seed is in this file.
func SeedFile(path string) Option {
	return func(c *config) error {
		pair, err := seedIn(path)
		if err != nil {
			return err
		}
		return c.key(pair)
	}
}

// Key logs in and signs with a key that is kept elsewhere.
func Key(signer performatives.Signer) Option {
	return func(c *config) error {
		c.signer = signer
		c.login = append(c.login, nats.Nkey(string(signer.Key()), signer.Sign))
		return nil
	}
}

// Creds logs in with a NATS credentials file and signs with the seed in it.
func Creds(path string) Option {
	return func(c *config) error {
		pair, err := seedIn(path)
		if err != nil {
			return err
		}
		if c.signer, err = performatives.NewSigner(pair); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		c.login = append(c.login, nats.UserCredentials(path))
		return nil
	}
}

// Context connects as a context of the nats command line says, or as the selected
// one if name is empty. It gives the address unless [Connect] is given one. Its
// creds or nkey sign too; with its user and password or its token, add a [Seed].
func Context(name string) Option {
	return func(c *config) error {
		ctx, err := natscontext.Read(name)
		if err != nil {
			return fmt.Errorf("NATS context: %w", err)
		}
		if c.url == "" {
			c.url = ctx.URL
		}
		c.login = append(c.login, ctx.Options()...)
		switch {
		case ctx.Creds != "":
			return Creds(ctx.Creds)(c)
		case ctx.NKey != "":
			return SeedFile(ctx.NKey)(c)
		}
		return nil
	}
}

// Unsigned signs nothing, which only a broker under --dev hears.
func Unsigned() Option {
	return func(c *config) error {
		c.unsigned = true
		return nil
	}
}

// Conn uses a NATS connection that is there already; [Client.Close] leaves it
// open, and the address given to [Connect] is not used. Its inbox prefix must
// be _INBOX.<token> (PROTOCOL.md §2).
func Conn(nc *nats.Conn) Option {
	return func(c *config) error {
		c.conn = nc
		return nil
	}
}

// NATS adds options of the NATS connection, such as TLS.
func NATS(options ...nats.Option) Option {
	return func(c *config) error {
		c.more = append(c.more, options...)
		return nil
	}
}

// Timeout is how long one request waits for its answer before it is sent
// again; by default 5 s.
func Timeout(d time.Duration) Option {
	return func(c *config) error {
		if d <= 0 {
			return errors.New("the timeout of a request is more than 0")
		}
		c.timeout = d
		return nil
	}
}

// Log tells of connections that are lost and found again, and of requests that
// are sent again. Without it the client is silent.
func Log(l *slog.Logger) Option {
	return func(c *config) error {
		c.log = l
		return nil
	}
}

const defaultTimeout = 5 * time.Second

var errNoKey = errors.New("no key: give one of Seed, SeedFile, Key, Creds, Context; or Unsigned for a broker under --dev")

func configure(url string, options []Option) (*config, error) {
	c := &config{url: url, timeout: defaultTimeout, log: slog.New(slog.DiscardHandler)}
	for _, set := range options {
		if err := set(c); err != nil {
			return nil, fmt.Errorf("client: %w", err)
		}
	}
	if c.signer == nil && !c.unsigned && c.http == nil {
		return nil, fmt.Errorf("client: %w", errNoKey)
	}
	if c.unsigned {
		c.signer = nil
	}
	if c.url == "" {
		c.url = nats.DefaultURL
	}
	return c, nil
}

func (c *config) key(pair nkeys.KeyPair) error {
	signer, err := performatives.NewSigner(pair)
	if err != nil {
		return err
	}
	return Key(signer)(c)
}

// seedIn reads the seed in a file of its own or in a credentials file.
func seedIn(path string) (nkeys.KeyPair, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	pair, err := nkeys.ParseDecoratedNKey(bytes.ReplaceAll(text, []byte("\r"), nil))
	if err != nil {
		return nil, fmt.Errorf("%s: no nkey seed in it", path)
	}
	return pair, nil
}
