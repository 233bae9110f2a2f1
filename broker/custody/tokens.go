package custody

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/api/fit"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/store"
)

// TokenAdd answers token.add.
func (c *Custody) TokenAdd(ctx context.Context, _ api.Caller, q api.AddToken) (api.Token, error) {
	agent, err := performatives.ParseAgent(string(q.Agent))
	switch {
	case err != nil:
		return api.Token{}, session.RefuseSchema(session.Fault{Path: "/agentId", Rule: "agent", Message: err.Error()})
	case !c.o.Registry.Registered(agent):
		return api.Token{}, unregistered(agent)
	case q.Lifetime < 0 || q.Lifetime > maxLifetime.Milliseconds():
		return api.Token{}, session.RefuseSchema(session.Fault{Path: "/lifetimeMs", Rule: "maximum", Message: "lifetimeMs is 0 to ten years"})
	case utf8.RuneCountInString(q.Name) > maxName:
		return api.Token{}, session.RefuseSchema(session.Fault{Path: "/name", Rule: "maxLength", Message: fmt.Sprintf("name has at most %d characters", maxName)})
	}
	if err := c.o.Registry.CheckMACPSender(agent, q.Sender); err != nil {
		return api.Token{}, err
	}
	id := make([]byte, idBytes)
	rand.Read(id)
	t := api.Token{ID: lower.EncodeToString(id), Agent: agent, Name: q.Name, ReadOnly: q.ReadOnly, Sender: q.Sender}
	return c.make(ctx, t, "", time.Duration(q.Lifetime)*time.Millisecond)
}

const maxLifetime = 10 * 365 * 24 * time.Hour

// make stores a new token, which ends with the key that proved it, if one did.
func (c *Custody) make(ctx context.Context, t api.Token, key performatives.Key, lifetime time.Duration) (api.Token, error) {
	if err := c.room(ctx, t.Agent); err != nil {
		return api.Token{}, err
	}
	raw := make([]byte, secretBytes)
	rand.Read(raw)
	secret := lower.EncodeToString(raw)
	hash := sha256.Sum256([]byte(secret))
	now := c.o.Now().UTC().Truncate(time.Second)
	t.Created = now.Format(time.RFC3339)
	if lifetime > 0 {
		t.Expires = now.Add(lifetime).Format(time.RFC3339)
	}
	if _, err := c.create(ctx, tokenPrefix+t.ID, record{Token: t, Hash: hash[:], Key: key}); err != nil {
		return api.Token{}, err
	}
	t.Token = tokenStart + t.ID + "_" + secret
	return t, nil
}

// room deletes a principal's tokens that are over, and refuses one token too many.
func (c *Custody) room(ctx context.Context, a performatives.Agent) error {
	now, left := c.o.Now(), 0
	for _, t := range c.tokensOf(a) {
		switch unexpired := now.Before(t.expires); {
		case !t.over(now):
			left++
		case t.Removed && unexpired:
			// Its proof may still be good.
		default:
			if err := c.dropToken(ctx, t); err != nil {
				return err
			}
		}
	}
	if left >= maxTokens {
		return session.Refuse(session.TooLarge, "%s has %d tokens, and there are no more than that: remove one (parley token rm)", a, maxTokens)
	}
	return nil
}

// TokenList answers token.list.
func (c *Custody) TokenList(_ context.Context, _ api.Caller, q api.ListTokens) (api.Tokens, error) {
	if _, err := performatives.ParseAgent(string(q.Agent)); q.Agent != "" && err != nil {
		return api.Tokens{}, session.RefuseSchema(session.Fault{Path: "/agentId", Rule: "agent", Message: err.Error()})
	}
	page, now := api.NewPage[api.Token](q.Limit), c.o.Now()
	for _, t := range c.tokensOf(q.Agent) {
		if t.ID <= q.Cursor || t.over(now) {
			continue
		}
		if shown := c.shown(t); !page.Add(shown, fit.Size(shown)) {
			return api.Tokens{Tokens: page.Items, Next: page.Items[len(page.Items)-1].ID}, nil
		}
	}
	return api.Tokens{Tokens: page.Items}, nil
}

// TokenRemove answers token.rm.
func (c *Custody) TokenRemove(ctx context.Context, _ api.Caller, q api.TokenRef) (api.Token, error) {
	if !isID(q.ID) {
		return api.Token{}, session.Refuse(session.MalformedEnvelope, "%.40q is not a token's id: 'parley token ls AGENT' shows them", q.ID)
	}
	t, known := c.token(q.ID)
	if !known {
		if err := c.look(ctx, tokenPrefix+q.ID); err != nil {
			return api.Token{}, err
		}
		t, known = c.token(q.ID)
	}
	if !known || t.Removed {
		return api.Token{}, session.Refuse(session.UnknownAgent, "there is no token %.40q", q.ID)
	}
	return c.shown(t), c.removeToken(ctx, t)
}

// removeToken removes a token. Its record stays, as removed: the watch of another broker
// or a proof must not bring it back.
func (c *Custody) removeToken(ctx context.Context, t *token) error {
	r := t.record
	r.Removed = true
	data, err := json.Marshal(r, json.Deterministic(true))
	if err != nil {
		return err
	}
	key := tokenPrefix + t.ID
	revision, err := c.bucket.Put(ctx, key, data)
	if err != nil {
		return err
	}
	c.saw(store.Entry{Key: key, Value: data, Revision: revision})
	return c.bucket.Sync()
}

// dropToken deletes what is left of a token that is over.
func (c *Custody) dropToken(ctx context.Context, t *token) error {
	if err := c.bucket.Delete(ctx, usePrefix+t.ID); err != nil {
		return err
	}
	return c.remove(ctx, tokenPrefix+t.ID)
}

// tokensOf are a principal's tokens by id; of "" all that there are.
func (c *Custody) tokensOf(a performatives.Agent) []*token {
	c.mu.Lock()
	defer c.mu.Unlock()
	var found []*token
	for _, t := range c.tokens {
		if a == "" || t.Agent == a {
			found = append(found, t)
		}
	}
	slices.SortFunc(found, func(a, b *token) int { return strings.Compare(a.ID, b.ID) })
	return found
}

// shown is a token as it is listed.
func (c *Custody) shown(t *token) api.Token {
	c.mu.Lock()
	defer c.mu.Unlock()
	shown := t.Token
	if at, used := c.uses[t.ID]; used {
		shown.LastUsed = at.UTC().Format(time.RFC3339)
	}
	return shown
}

// MACPSender finds the principal of a token with this name in MACP.
func (c *Custody) MACPSender(name string) (performatives.Agent, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var first *token // of two principals, to whom two brokers gave it at once
	for id := range c.names[name] {
		t := c.tokens[id]
		if !t.over(c.o.Now()) && (first == nil || cmp.Or(strings.Compare(t.Created, first.Created), strings.Compare(t.ID, first.ID)) < 0) {
			first = t
		}
	}
	if first == nil {
		return "", false
	}
	return first.Agent, true
}

// NamedInMACP finds the principal for whom a name in MACP is kept: it has, or had, a token with it.
func (c *Custody) NamedInMACP(name string) (performatives.Agent, bool) {
	if a, has := c.MACPSender(name); has {
		return a, true
	}
	c.mu.Lock()
	var had []performatives.Agent
	for id := range c.names[name] {
		had = append(had, c.tokens[id].Agent)
	}
	c.mu.Unlock()
	slices.Sort(had)
	for _, a := range had {
		if c.o.Registry.Registered(a) {
			return a, true
		}
	}
	return "", false
}

// name notes what MACP calls the holder of a token that has changed. The caller holds the lock.
func (c *Custody) name(id string, old, t *token) {
	if old != nil && old.Sender != "" {
		if delete(c.names[old.Sender], id); len(c.names[old.Sender]) == 0 {
			delete(c.names, old.Sender)
		}
	}
	if t.Sender == "" {
		return
	}
	if c.names[t.Sender] == nil {
		c.names[t.Sender] = map[string]bool{}
	}
	c.names[t.Sender][id] = true
}

// used notes a use of a token, now and then in the bucket.
func (c *Custody) used(t *token, now time.Time) {
	c.mu.Lock()
	stale := now.Sub(c.uses[t.ID]) >= useEvery
	if stale {
		c.uses[t.ID] = now
	}
	c.mu.Unlock()
	if !stale {
		return
	}
	c.work.Go(func(ctx context.Context) {
		if _, err := c.bucket.Put(ctx, usePrefix+t.ID, []byte(now.UTC().Format(time.RFC3339))); err != nil {
			c.o.Log.Debug("the use of a token was not noted")
		}
	})
}

func (c *Custody) sawUse(e store.Entry) error {
	if e.Deleted {
		return nil
	}
	at, err := time.Parse(time.RFC3339, string(e.Value))
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if id := strings.TrimPrefix(e.Key, usePrefix); at.After(c.uses[id]) {
		c.uses[id] = at
	}
	return nil
}
