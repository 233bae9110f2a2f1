package custody

import (
	"context"
	"encoding/base64"
	"errors"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nkeys"

	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/store"
)

// sealedKey is a hosted key as it is stored.
type sealedKey struct {
	Key    performatives.Key `json:"key"`    // the public half
	Sealed []byte            `json:"sealed"` // nonce, AES-256-GCM of the raw seed, tag
}

// hosted is a hosted key in memory.
type hosted struct {
	sealedKey
	revision uint64
	signer   performatives.Signer // nil until it is first needed
}

// purpose separates the sealing key from all else that is derived from the secret.
const purpose = "parley hosted keys v1"

// boundTo is what a sealed key is bound to: it opens for this agent and key only.
func boundTo(a performatives.Agent, k performatives.Key) []byte {
	return []byte(string(a) + "\n" + string(k))
}

// hostedKey is the public half of an agent's hosted key, which is made if there is none.
func (c *Custody) hostedKey(ctx context.Context, a performatives.Agent) (performatives.Key, error) {
	agent, err := performatives.ParseAgent(string(a))
	switch {
	case err != nil:
		return "", session.RefuseSchema(session.Fault{Path: "/agentId", Rule: "agent", Message: err.Error()})
	case agent.IsHuman():
		return "", session.Refuse(session.Unauthorized, "a human signs with a key of its own; only agents are hosted")
	case c.seal == nil:
		return "", session.Refuse(session.Unauthorized, "this broker has no secret to seal hosted keys with")
	}
	pair, err := nkeys.CreateUser()
	if err != nil {
		return "", err
	}
	public, err := pair.PublicKey()
	if err != nil {
		return "", err
	}
	seed, err := pair.Seed()
	if err != nil {
		return "", err
	}
	key := performatives.Key(public)
	_, err = c.create(ctx, bucketKey(agent), sealedKey{key, c.seal.Seal(nil, nil, seed, boundTo(agent, key))})
	if !errors.Is(err, store.ErrKeyExists) {
		return key, err
	}
	found, err := c.bucket.Get(ctx, bucketKey(agent))
	if err != nil {
		return "", err
	}
	c.saw(found)
	k, _ := c.key(agent)
	return k.Key, nil
}

// destroyKey deletes an agent's hosted key, if it has one.
func (c *Custody) destroyKey(ctx context.Context, a performatives.Agent) error {
	if _, err := performatives.ParseAgent(string(a)); err != nil {
		return unregistered(a)
	}
	if err := c.look(ctx, bucketKey(a)); err != nil {
		return err
	}
	if _, has := c.key(a); !has {
		return nil
	}
	return c.remove(ctx, bucketKey(a))
}

func (c *Custody) key(a performatives.Agent) (hosted, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k, has := c.keys[a]
	return k, has
}

func (c *Custody) sawKey(e store.Entry) error {
	uri, err := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(e.Key, keyPrefix))
	if err != nil {
		return err
	}
	a := performatives.Agent(uri)
	k := hosted{revision: e.Revision}
	if !e.Deleted {
		if err := json.Unmarshal(e.Value, &k.sealedKey); err != nil {
			return err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case e.Deleted && (e.Revision == 0 || e.Revision > c.keys[a].revision):
		delete(c.keys, a)
	case !e.Deleted && e.Revision > c.keys[a].revision:
		c.keys[a] = k
	}
	return nil
}

var errSealed = errors.New("custody: a hosted key does not open: it was sealed by another installation, or changed")

// Signer signs as a hosted agent. It is nil under --dev for an agent that is not hosted,
// whose acts may be unsigned there. Elsewhere such an agent signs for itself, and is refused.
func (c *Custody) Signer(ctx context.Context, a performatives.Agent) (performatives.Signer, error) {
	enrolled, is := c.o.Registry.HostedKey(a)
	if !is && c.o.Dev {
		return nil, nil //nolint:nilnil // unsigned
	}
	if !is {
		return nil, session.Refuse(session.Unauthorized, "%s signs for itself: send a signed envelope as application/asp+json, or have an operator host it (parley agent host)", a)
	}
	k, has := c.key(a)
	if !has || k.Key != enrolled {
		if err := c.look(ctx, bucketKey(a)); err != nil {
			return nil, err
		}
		if k, has = c.key(a); !has || k.Key != enrolled {
			return nil, session.Busy() // it is being hosted, or unhosted
		}
	}
	if k.signer != nil {
		return k.signer, nil
	}
	if c.seal == nil {
		return nil, errSealed
	}
	seed, err := c.seal.Open(nil, nil, k.Sealed, boundTo(a, k.Key))
	if err != nil {
		return nil, errSealed
	}
	pair, err := nkeys.FromSeed(seed)
	if err != nil {
		return nil, errSealed
	}
	signer, err := performatives.NewSigner(pair)
	if err != nil || signer.Key() != k.Key {
		return nil, errSealed
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := c.keys[a]; now.revision == k.revision {
		now.signer = signer
		c.keys[a] = now
	}
	return signer, nil
}
