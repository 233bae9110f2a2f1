package client

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/parley-asp/parley/client/internal/web"
	"github.com/parley-asp/parley/client/natscontext"
	"github.com/parley-asp/parley/internal/natslogin"
	"github.com/parley-asp/parley/performatives"
)

// An Option says how to connect, as whom, and how to sign.
//
// A principal signs with one key, and logs in to NATS with another, since a NATS server chooses what a login
// signs. [Seed], [SeedFile] and [Key] name the first, [Login], [LoginFile], [Creds] and [Context] the second.
// SeedFile alone is enough where the login key is in the file beside it, alpha.login.nk for alpha.nk.
type Option func(*config) error

// config is what the options add up to.
type config struct {
	url      string
	conn     *nats.Conn    // the caller's own
	http     *web.Conn     // instead of NATS
	login    []nats.Option // how to log in
	beside   string        // a file with a login key, unless login says more
	shared   bool          // log in with the signing key
	more     []nats.Option // the caller's
	signer   performatives.Signer
	unsigned bool
	timeout  time.Duration
	limit    time.Duration
	log      *slog.Logger
}

// Seed signs with the nkey of this seed ("SU…").
func Seed(seed string) Option {
	return func(c *config) error {
		pair, err := nkeys.FromSeed([]byte(seed))
		if err != nil {
			return fmt.Errorf("seed: %w", err)
		}
		c.signer, err = performatives.NewSigner(pair)
		return err
	}
}

// SeedFile signs with the nkey whose seed is in this file, and logs in with the one in the file beside it.
func SeedFile(path string) Option {
	return func(c *config) error {
		pair, err := natslogin.Seed(path)
		if err != nil {
			return err
		}
		c.beside = natslogin.FileBeside(path)
		c.signer, err = performatives.NewSigner(pair)
		return err
	}
}

// Key signs with a key that is kept elsewhere.
func Key(signer performatives.Signer) Option {
	return func(c *config) error {
		c.signer = signer
		return nil
	}
}

// Login logs in with a login key that is kept elsewhere.
func Login(key performatives.Signer) Option {
	return func(c *config) error {
		c.login = append(c.login, natslogin.Key(string(key.Key()), key.Sign))
		return nil
	}
}

// LoginFile logs in with the login key whose seed is in this file.
func LoginFile(path string) Option {
	return func(c *config) error {
		pair, err := natslogin.Seed(path)
		if err != nil {
			return err
		}
		key, err := performatives.NewSigner(pair)
		if err != nil {
			return err
		}
		return Login(key)(c)
	}
}

// SharedKeys logs in with the key that signs, as before login keys. The server can then have it sign what it
// likes. Only principals of before have such keys, and only a broker with --shared-keys lets them in.
func SharedKeys() Option {
	return func(c *config) error {
		c.shared = true
		return nil
	}
}

// Creds logs in with a NATS credentials file.
func Creds(path string) Option {
	return func(c *config) error {
		if _, err := natslogin.Seed(path); err != nil {
			return err
		}
		c.login = append(c.login, natslogin.Creds(path))
		return nil
	}
}

// Context connects as a context of the nats command line says, or as the selected
// one if name is empty. It gives the address unless [Connect] is given one.
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
			return LoginFile(ctx.NKey)(c)
		}
		return nil
	}
}

// Unsigned signs nothing, which only a broker under --dev accepts.
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

// Limit is how long a request is sent again until it is answered; by default until its context ends.
func Limit(d time.Duration) Option {
	return func(c *config) error {
		if d <= 0 {
			return errors.New("the limit of a request is more than 0")
		}
		c.limit = d
		return nil
	}
}

// Log reports connections that are lost and found again, and of requests that
// are sent again. Without it the client is silent.
func Log(l *slog.Logger) Option {
	return func(c *config) error {
		c.log = l
		return nil
	}
}

const defaultTimeout = 5 * time.Second

var errNoKey = errors.New("no key to sign with: give one of Seed, SeedFile and Key; or Unsigned for a broker under --dev")

// configure adds up options. An operator signs nothing.
func configure(url string, options []Option, signs bool) (*config, error) {
	c := &config{url: url, timeout: defaultTimeout, log: slog.New(slog.DiscardHandler)}
	for _, set := range options {
		if err := set(c); err != nil {
			return nil, fmt.Errorf("client: %w", err)
		}
	}
	if signs && c.signer == nil && !c.unsigned && c.http == nil {
		return nil, fmt.Errorf("client: %w", errNoKey)
	}
	if c.unsigned {
		c.signer = nil
	}
	if c.url == "" {
		c.url = nats.DefaultURL
	}
	if err := c.loginBeside(); err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	return c, nil
}

// loginBeside finds out how to log in if no option says it. Under --dev nobody has to.
func (c *config) loginBeside() error {
	switch {
	case c.shared && c.signer != nil:
		c.log.Warn("this key logs in and signs: have it replaced by two with 'parley agent rotate'", slog.String("key", string(c.signer.Key())))
		return Login(c.signer)(c)
	case len(c.login) > 0 || c.beside == "" || c.conn != nil || c.http != nil:
		return nil
	}
	err := LoginFile(c.beside)(c)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
