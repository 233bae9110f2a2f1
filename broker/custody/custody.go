// Package custody holds what lets others act in a principal's name: the signing keys that
// the installation holds for hosted agents, and the tokens of programs that do not log in
// to NATS.
//
//	c, err := custody.Open(ctx, custody.Options{Store: s, Secret: secret, Registry: r, …})
//	if err != nil { … }
//	defer c.Close()
//	pass, err := c.Admit(ctx, "parley_…")   // whom the token lets in, and until when
//	signer, err := c.Signer(ctx, pass.Agent) // the hosted key; nil if the agent signs for itself
//
// These hold:
//   - A hosted key is stored sealed, under a key that is derived from the installation's
//     secret. A record that is moved to another principal does not open.
//   - Of a token only a hash is stored. Tokens are compared in constant time, and neither
//     tokens nor private keys reach a log or an error.
//   - All brokers of an installation follow one bucket, so what is removed at one of them
//     ends at all of them.
package custody

import (
	"context"
	"crypto/cipher"
	"encoding/base64"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"go.uber.org/zap"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker/registry"
	"github.com/parley-asp/parley/internal/background"
	"github.com/parley-asp/parley/internal/sealing"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/store"
)

// Options say how custody runs.
type Options struct {
	Store    *store.Store
	Registry *registry.Registry
	Secret   []byte                   // of the installation; nil hosts nothing
	Keys     performatives.KeyHistory // of the broker's key, once it has been rotated
	Broker   performatives.Key        // the audience of proofs
	Dev      bool                     // an agent's URI is a token
	Alone    bool                     // no other broker writes to the bucket
	Standbys bool                     // an organisation with a hosted agent has api.StandbyOf
	Now      func() time.Time
	Log      *zap.Logger

	// Timely refuses a request whose timestamp is too far from the broker's clock.
	Timely func(at time.Time) error
}

// Custody is open until it is closed.
type Custody struct {
	o      Options
	seal   cipher.AEAD // nil hosts nothing
	bucket *store.Bucket
	work   *background.Group

	mu     sync.Mutex
	tokens map[string]*token          // by id
	names  map[string]map[string]bool // ids of tokens by their name in MACP
	uses   map[string]time.Time
	keys   map[performatives.Agent]hosted
}

// Open reads the bucket and follows it until Close.
func Open(ctx context.Context, o Options) (*Custody, error) {
	bucket, err := o.Store.Bucket(ctx, api.KeysBucket, "hosted keys, sealed, and hashes of tokens", 0)
	if err != nil {
		return nil, err
	}
	c := &Custody{
		o: o, bucket: bucket, work: background.New(),
		tokens: map[string]*token{}, names: map[string]map[string]bool{}, uses: map[string]time.Time{}, keys: map[performatives.Agent]hosted{},
	}
	if c.seal, err = sealing.New(o.Secret, purpose); err != nil {
		return nil, err
	}
	if err := bucket.Watch(ctx, c.work, c.saw); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// Close stops following the bucket.
func (c *Custody) Close() { c.work.Close() }

// The keys of the bucket.
const (
	keyPrefix   = "key."   // and the agent: a sealed key
	tokenPrefix = "token." // and the id
	usePrefix   = "used."  // and the id: when it was last used
)

// bucketKey is an agent's URI as a bucket key may have it.
func bucketKey(a performatives.Agent) string {
	return keyPrefix + base64.RawURLEncoding.EncodeToString([]byte(a))
}

// saw takes a change of the bucket, perhaps of another broker.
func (c *Custody) saw(e store.Entry) {
	var err error
	switch {
	case strings.HasPrefix(e.Key, keyPrefix):
		err = c.sawKey(e)
	case strings.HasPrefix(e.Key, tokenPrefix):
		err = c.sawToken(e)
	case strings.HasPrefix(e.Key, usePrefix):
		err = c.sawUse(e)
	}
	if err != nil {
		c.o.Log.Error("custody record", zap.String("key", e.Key), zap.Error(err))
	}
}

// AgentAdd answers agent.add.
func (c *Custody) AgentAdd(ctx context.Context, _ api.Caller, q api.AddAgent) (api.Card, error) {
	if q.Card == nil {
		return api.Card{}, session.Refuse(session.MalformedEnvelope, "/card: is missing").With(map[string]string{"path": "/card"})
	}
	if !q.Hosted {
		card, err := c.o.Registry.Add(ctx, *q.Card)
		if err == nil {
			err = c.endProofs(ctx, card.Agent)
		}
		return card, err
	}
	key, err := c.hostedKey(ctx, q.Card.Agent)
	if err != nil {
		return api.Card{}, err
	}
	card, err := c.o.Registry.AddHosted(ctx, *q.Card, key)
	if err == nil {
		err = c.endProofs(ctx, card.Agent)
	}
	if err == nil {
		err = c.AddStandby(ctx, card.Agent.Organisation())
	}
	return card, err
}

// AgentRotate answers agent.rotate. With the old key end the tokens that it proved.
func (c *Custody) AgentRotate(ctx context.Context, by api.Caller, q api.RotateKey) (card api.Card, release func(), err error) {
	card, release, err = c.o.Registry.AgentRotate(ctx, by, q)
	if err == nil {
		err = c.endProofs(ctx, card.Agent)
	}
	return card, release, err
}

// AddStandby registers the standby of an organisation, unless its URI is taken, and where the
// installation has standbys.
func (c *Custody) AddStandby(ctx context.Context, o performatives.Organisation) error {
	a := api.StandbyOf(o)
	if _, taken := c.o.Registry.Card(a); taken || !c.o.Standbys || c.o.Dev {
		return nil
	}
	key, err := c.hostedKey(ctx, a)
	if err == nil {
		_, err = c.o.Registry.AddHosted(ctx, api.Card{Agent: a, Name: "Standby", Kind: performatives.KindSystem}, key)
	}
	return err
}

// AgentHost answers agent.host. An agent that is hosted already keeps its hosted key.
func (c *Custody) AgentHost(ctx context.Context, _ api.Caller, q api.AgentRef) (api.Card, error) {
	if !c.o.Dev && !c.o.Registry.Registered(q.Agent) {
		return api.Card{}, unregistered(q.Agent)
	}
	key, err := c.hostedKey(ctx, q.Agent)
	if err != nil {
		return api.Card{}, err
	}
	card, err := c.o.Registry.Host(ctx, q.Agent, key)
	if err == nil {
		err = c.endProofs(ctx, q.Agent)
	}
	if err == nil {
		err = c.AddStandby(ctx, q.Agent.Organisation())
	}
	return card, err
}

// AgentUnhost answers agent.unhost. The key is destroyed.
func (c *Custody) AgentUnhost(ctx context.Context, _ api.Caller, q api.AgentRef) (api.Card, error) {
	card, err := c.o.Registry.Unhost(ctx, q.Agent)
	if err != nil {
		return card, err
	}
	return card, c.destroyKey(ctx, q.Agent)
}

// AgentRemove answers agent.rm. Its tokens and its hosted key go first: whoever is
// registered under the same URI later has neither.
func (c *Custody) AgentRemove(ctx context.Context, _ api.Caller, q api.AgentRef) (api.Card, error) {
	for _, t := range c.tokensOf(q.Agent) {
		if err := c.removeToken(ctx, t); err != nil {
			return api.Card{}, err
		}
		if err := c.dropToken(ctx, t); err != nil {
			return api.Card{}, err
		}
	}
	if err := c.destroyKey(ctx, q.Agent); err != nil {
		return api.Card{}, err
	}
	return c.o.Registry.Remove(ctx, q.Agent)
}

func unregistered(a performatives.Agent) error {
	return session.Refuse(session.UnknownAgent, "%.300s is not registered", a)
}

// create writes a new record, or returns store.ErrKeyExists.
func (c *Custody) create(ctx context.Context, key string, record any) (store.Entry, error) {
	data, err := json.Marshal(record, json.Deterministic(true))
	if err != nil {
		return store.Entry{}, err
	}
	revision, err := c.bucket.Create(ctx, key, data)
	if err != nil {
		return store.Entry{}, err
	}
	e := store.Entry{Key: key, Value: data, Revision: revision}
	c.saw(e) // the watch may be late
	return e, c.bucket.Sync()
}

// remove deletes a record, if it is there.
func (c *Custody) remove(ctx context.Context, key string) error {
	if err := c.bucket.Delete(ctx, key); err != nil {
		return err
	}
	c.saw(store.Entry{Key: key, Deleted: true})
	return c.bucket.Sync()
}

// look reads a record that another broker may have written just now.
func (c *Custody) look(ctx context.Context, key string) error {
	if c.o.Alone {
		return nil
	}
	e, err := c.bucket.Get(ctx, key)
	if errors.Is(err, store.ErrNoKey) {
		return nil
	}
	if err == nil {
		c.saw(e)
	}
	return err
}
