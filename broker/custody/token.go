package custody

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"errors"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/store"
)

const (
	tokenStart  = "parley_"
	idBytes     = 10 // 80 bits, drawn at random
	secretBytes = 32
	maxTokens   = 256 // of one principal
	maxName     = 80  // characters of a token's name
	provenFor   = time.Hour
	useEvery    = time.Minute // a use is written at most so often

	// defaultWorker is who uses an agent's URI as a token under --dev, if it names nobody.
	defaultWorker = "default"
)

// lower writes ids and secrets.
var lower = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// record is a token as it is stored.
type record struct {
	api.Token
	Hash    []byte            `json:"hash"`         // SHA-256 of the secret
	Key     performatives.Key `json:"key,omitzero"` // that proved it, and with which it ends
	Removed bool              `json:"removed,omitzero"`
}

// token is a token in memory.
type token struct {
	record
	expires  time.Time // zero: never
	revision uint64
	gone     chan struct{} // closed when it is removed
}

// A Pass says whom a token lets in.
type Pass struct {
	Agent    performatives.Agent
	Worker   string // the token's id
	Sender   string // what MACP calls its holder; "" is as the card says
	ReadOnly bool
	Expires  time.Time       // zero: never
	Removed  <-chan struct{} // closed when the token is removed; nil under --dev
}

// ErrToken means that a token lets nobody in.
var ErrToken = session.Refuse(session.Unauthorized, "the token is missing, wrong, expired or removed: send Authorization: Bearer <token>")

// Bearer is the token of an Authorization header, "" without one.
func Bearer(header string) string {
	if scheme, token, _ := strings.Cut(header, " "); strings.EqualFold(scheme, "Bearer") {
		return strings.TrimSpace(token)
	}
	return ""
}

// Admit finds whom a token lets in, or returns ErrToken.
func (c *Custody) Admit(ctx context.Context, bearer string) (Pass, error) {
	if c.o.Dev && !strings.HasPrefix(bearer, tokenStart) {
		uri, worker, _ := strings.Cut(bearer, "#")
		a, err := performatives.ParseAgent(uri)
		if err != nil || len(worker) > maxName {
			return Pass{}, ErrToken
		}
		return Pass{Agent: a, Worker: cmp.Or(worker, defaultWorker)}, nil
	}
	return c.admit(ctx, bearer, false)
}

// admit finds whom a token of a feed, or one of the others, lets in.
func (c *Custody) admit(ctx context.Context, bearer string, feed bool) (Pass, error) {
	id, secret, ok := strings.Cut(strings.TrimPrefix(bearer, tokenStart), "_")
	if !ok || !strings.HasPrefix(bearer, tokenStart) || !isID(id) {
		return Pass{}, ErrToken
	}
	t, known := c.token(id)
	if !known {
		if err := c.look(ctx, tokenPrefix+id); err != nil {
			return Pass{}, session.Busy()
		}
		t, known = c.token(id)
	}
	if !known {
		t = &token{record: record{Hash: make([]byte, sha256.Size)}} // the same work as for one that is
	}
	hash := sha256.Sum256([]byte(secret))
	now := c.o.Now()
	if right := subtle.ConstantTimeCompare(hash[:], t.Hash) == 1; !right || !known || t.Feed != feed || t.over(now) {
		return Pass{}, ErrToken
	}
	if !c.o.Registry.Registered(t.Agent) || c.outlived(t) {
		return Pass{}, ErrToken
	}
	c.used(t, now)
	return Pass{t.Agent, t.ID, t.Sender, t.ReadOnly, t.expires, t.gone}, nil
}

// ValidToken reports whether a token, by its id, still lets in.
func (c *Custody) ValidToken(ctx context.Context, id string) (bool, error) {
	t, known := c.token(id)
	if !known && isID(id) {
		if err := c.look(ctx, tokenPrefix+id); err != nil {
			return false, session.Busy()
		}
		t, known = c.token(id)
	}
	return known && !t.over(c.o.Now()) && !c.outlived(t), nil
}

// outlived reports whether a token was made by a proof with a key that is its principal's no more.
func (c *Custody) outlived(t *token) bool {
	if t.Key == "" {
		return false
	}
	card, _ := c.o.Registry.Card(t.Agent)
	return card.Key != t.Key
}

// endProofs removes the tokens of a principal that were made by proofs with another key than it has now.
func (c *Custody) endProofs(ctx context.Context, a performatives.Agent) error {
	for _, t := range c.tokensOf(a) {
		if t.Removed || !c.outlived(t) {
			continue
		}
		if err := c.removeToken(ctx, t); err != nil {
			return err
		}
	}
	return nil
}

func isID(s string) bool {
	raw, err := lower.DecodeString(s)
	return err == nil && len(raw) == idBytes
}

func (t *token) over(now time.Time) bool {
	return t.Removed || !t.expires.IsZero() && !now.Before(t.expires)
}

// Prove makes a token for a principal that has shown that it has its key. A proof is
// good once: the token's id is derived from it.
func (c *Custody) Prove(ctx context.Context, p api.ProveToken) (api.Token, error) {
	signed, err := p.SigningBytes()
	if err != nil {
		return api.Token{}, err
	}
	at, err := time.Parse(time.RFC3339Nano, p.Timestamp)
	if err != nil {
		return api.Token{}, session.Refuse(session.MalformedEnvelope, "/timestamp: want RFC 3339").With(map[string]string{"path": "/timestamp"})
	}
	if p.Audience != c.o.Broker && !c.o.Keys.Has(p.Audience) {
		return api.Token{}, session.Refuse(session.SignatureInvalid, "the proof is for another broker; this one is %s", c.o.Broker)
	}
	card, _ := c.o.Registry.Card(p.Agent)
	key := cmp.Or(card.Key, c.o.Broker) // of who is not registered: the same work, the same answer
	if performatives.VerifyBytes(key, signed, p.Signature) != nil || card.Key == "" {
		return api.Token{}, session.Refuse(session.SignatureInvalid, "the proof is not signed with the key of its agentId")
	}
	if err := c.o.Timely(at); err != nil {
		return api.Token{}, err
	}
	id := sha256.Sum256(signed)
	t, err := c.make(ctx, api.Token{ID: lower.EncodeToString(id[:idBytes]), Agent: p.Agent}, card.Key, provenFor)
	if errors.Is(err, store.ErrKeyExists) {
		return t, session.Refuse(session.Unauthorized, "the proof was used before: sign another timestamp")
	}
	return t, err
}

func (c *Custody) token(id string) (*token, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t, known := c.tokens[id]
	return t, known
}

func (c *Custody) sawToken(e store.Entry) error {
	id := strings.TrimPrefix(e.Key, tokenPrefix)
	t := &token{revision: e.Revision, gone: make(chan struct{})}
	if !e.Deleted {
		if err := json.Unmarshal(e.Value, &t.record); err != nil {
			return err
		}
		if t.Expires != "" {
			var err error
			if t.expires, err = time.Parse(time.RFC3339, t.Expires); err != nil {
				return err
			}
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	old, known := c.tokens[id]
	if known && e.Revision > 0 && e.Revision <= old.revision {
		return nil
	}
	if known && !old.Removed && (e.Deleted || t.Removed) {
		close(old.gone)
	}
	c.name(id, old, t)
	if e.Deleted {
		delete(c.tokens, id)
		delete(c.uses, id)
		return nil
	}
	c.tokens[id] = t
	return nil
}
