package demo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/server"
)

// A stage is the broker, and the operator that registers the actors.
type stage struct {
	url      string
	face     string
	http     string            // URL of HTTP, unless the face is NATS
	macp     string            // host:port, if that is the face
	key      performatives.Key // of the broker
	logKey   string            // of its public log
	dev      bool
	operator *client.Operator
	server   *server.Server // nil for a running broker
	temp     string         // removed at the end
}

const (
	connectWait = 5 * time.Second  // for a running broker
	closeWait   = 10 * time.Second // for the demo's own broker
)

// open starts a broker, or connects to the running one.
func open(ctx context.Context, o Options, list []scene) (s *stage, err error) {
	if o.Open != nil && o.URL != "" {
		return nil, ErrRunning
	}
	s = &stage{url: o.URL, face: cmp.Or(o.Face, NATS)}
	listen, macp := "", ""
	if s.face != NATS {
		s.http, listen = o.HTTP, "127.0.0.1:0"
	}
	if o.Open != nil {
		listen = "127.0.0.1:0"
	}
	if s.face == MACP {
		s.macp, macp = o.MACP, "127.0.0.1:0"
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
			s = nil
		}
	}()
	pair := o.Operator
	if s.url == "" {
		data := o.Keep
		if data == "" {
			if s.temp, err = os.MkdirTemp("", "parley-demo-"); err != nil {
				return s, err
			}
			data = s.temp
		}
		var rules *escalation.Rules
		if o.Open != nil {
			rules = owners(list)
		}
		if s.server, err = server.Start(ctx, server.Options{Data: data, Listen: "127.0.0.1:-1", HTTP: listen, MACP: macp, Rules: rules}); err != nil {
			return s, err
		}
		s.url, pair = s.server.URL, s.server.Operator()
		if s.face != NATS {
			s.http, s.macp = "http://"+s.server.HTTPAddr, s.server.MACPAddr
		}
	}
	if err := s.connectOperator(ctx, pair); err != nil {
		return s, err
	}
	broker, err := s.operator.Broker(ctx)
	s.key, s.logKey, s.dev = broker.Key, broker.Log.Key, broker.Dev
	if err == nil {
		err = s.findHTTP(ctx)
	}
	return s, err
}

// connectOperator connects the operator. A broker under --dev needs no key.
func (s *stage) connectOperator(ctx context.Context, pair nkeys.KeyPair) error {
	ctx, cancel := context.WithTimeout(ctx, connectWait)
	defer cancel()
	login := client.Unsigned()
	if pair != nil {
		signer, err := performatives.NewSigner(pair)
		if err != nil {
			return fmt.Errorf("the operator's key: %w", err)
		}
		login = client.Login(signer)
	}
	var err error
	fast := client.NATS(nats.RetryOnFailedConnect(false))
	if s.operator, err = client.ConnectOperator(ctx, s.url, login, fast); errors.Is(err, nats.ErrAuthorization) {
		return fmt.Errorf("%w\nThe broker at %s has logins: the demo needs its operator's key to register the agents.", err, s.url) //nolint:revive,staticcheck // a sentence for a person, on a line of its own
	}
	return err
}

// findHTTP asks a broker that was running for its version: agents would try again until one answers.
func (s *stage) findHTTP(ctx context.Context) error {
	if s.http == "" || s.server != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, connectWait)
	defer cancel()
	var version struct {
		Broker performatives.Key `json:"broker"`
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(s.http, "/")+"/version", nil)
	if err != nil {
		return fmt.Errorf("--http: %w", err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err == nil {
		defer answer.Body.Close() //nolint:errcheck // read to its end or not
		err = json.UnmarshalRead(http.MaxBytesReader(nil, answer.Body, 64<<10), &version)
	}
	switch {
	case err != nil || version.Broker == "":
		return fmt.Errorf("no broker at %s: set --http", s.http)
	case version.Broker != s.key:
		return fmt.Errorf("another broker than that of --url is at %s: set --http", s.http)
	}
	return nil
}

// close closes what open opened.
func (s *stage) close() error {
	var errs []error
	if s.operator != nil {
		errs = append(errs, s.operator.Close())
	}
	if s.server != nil {
		ctx, cancel := context.WithTimeout(context.Background(), closeWait)
		defer cancel()
		errs = append(errs, s.server.Close(ctx))
	}
	if s.temp != "" {
		errs = append(errs, os.RemoveAll(s.temp))
	}
	return errors.Join(errs...)
}

// enter registers a principal with a fresh key and connects it by that key. Over HTTP it
// has a token, and an agent that does not sign itself is hosted: the broker holds its key.
func (s *stage) enter(ctx context.Context, r *role) (*actor, error) {
	signer, err := performatives.NewKey()
	if err != nil {
		return nil, err
	}
	login, err := performatives.NewKey()
	if err != nil {
		return nil, err
	}
	card := api.Card{
		Agent: r.agent, Name: r.name, Kind: r.kind, Key: signer.Key(), LoginKeys: []performatives.Key{login.Key()}, Protocols: []string{performatives.Version},
		Registry: api.Registry{MayDecide: r.agent.IsHuman(), Limits: r.limits},
	}
	add, options := s.operator.AddAgent, []client.Option{client.Key(signer), client.Login(login)}
	if s.http != "" && !r.agent.IsHuman() && !r.signs {
		add, options, card.Key, card.LoginKeys = s.operator.AddHosted, nil, "", nil
		card.A2A, card.MACP = s.face == A2A, s.face == MACP
	}
	if _, err := add(ctx, card); err != nil {
		return nil, err
	}
	if s.http != "" {
		made, err := s.operator.AddToken(ctx, api.AddToken{Agent: r.agent, Name: "demo", Lifetime: time.Hour.Milliseconds()})
		if err != nil {
			return nil, err
		}
		c, err := client.Connect(ctx, "", r.agent, append(options, client.HTTP(s.http, made.Token))...)
		return &actor{Client: c, role: r, token: made.Token}, err
	}
	if s.dev { // no login; acts are signed anyway
		nc, err := nats.Connect(s.url, nats.Name(string(r.agent)), nats.CustomInboxPrefix("_INBOX."+r.agent.Token()))
		if err != nil {
			return nil, err
		}
		options = append(options, client.Conn(nc))
	}
	c, err := client.Connect(ctx, s.url, r.agent, options...)
	return &actor{Client: c, role: r}, err
}

// leave closes a principal's connection.
func (s *stage) leave(c *client.Client) {
	c.Close() //nolint:errcheck // its acts were accepted
	if s.dev && s.http == "" {
		c.Conn().Close()
	}
}
