package registry

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/store"
)

// maxAttempts is how often a change is tried when others write the same card.
const maxAttempts = 16

var errContention = errors.New("registry: others changed the card each time that it was to be written")

// current is a principal's card and its revision, which is 0 if it is not registered.
// A replica of the bucket may lag behind the cache, and the cache behind the bucket.
func (r *Registry) current(ctx context.Context, a performatives.Agent) (card api.Card, revision uint64, err error) {
	entry, err := r.bucket.Get(ctx, toKey(a.Token()))
	if err != nil && !errors.Is(err, store.ErrNoKey) {
		return card, 0, err
	}
	if card, revision, ok := r.cache.card(a); revision >= entry.Revision {
		if !ok {
			revision = 0
		}
		return card, revision, nil
	}
	return card, entry.Revision, json.Unmarshal(entry.Value, &card)
}

// update writes a principal's card as change leaves it, or registers a new one.
func (r *Registry) update(ctx context.Context, a performatives.Agent, change func(card *api.Card, registered bool) error) (api.Card, error) {
	defer r.holdConnections(a)()
	for range maxAttempts {
		card, revision, err := r.current(ctx, a)
		if err != nil {
			return card, err
		}
		before := card.Key
		if err := change(&card, revision > 0); err != nil {
			return card, err
		}
		card.Registry.FormerKeys = former(card, before)
		err = r.write(ctx, &card, revision)
		if errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrKeyExists) {
			continue
		}
		if err == nil {
			err = r.bucket.Sync()
		}
		return card, err
	}
	return api.Card{}, errContention
}

// maxFormer are the keys that a card remembers that its principal signed with.
const maxFormer = 32

// former are the keys that a principal signed with, once it has changed its card.
func former(c api.Card, before performatives.Key) []performatives.Key {
	keys := slices.DeleteFunc(slices.Clone(c.Registry.FormerKeys), func(k performatives.Key) bool { return k == before || k == c.Key })
	if before != "" && before != c.Key {
		keys = append(keys, before)
	}
	return keys[max(0, len(keys)-maxFormer):]
}

// change is update for a principal who must be registered.
func (r *Registry) change(ctx context.Context, a performatives.Agent, change func(*api.Card) error) (api.Card, error) {
	return r.update(ctx, a, func(card *api.Card, registered bool) error {
		if !registered {
			return unregistered(a)
		}
		return change(card)
	})
}

// write stores a card if the principal still is at a revision, 0 for not registered.
func (r *Registry) write(ctx context.Context, c *api.Card, last uint64) error {
	now := r.o.Now().UTC().Format(time.RFC3339Nano)
	c.Registry.RegisteredAt, c.Registry.UpdatedAt = cmp.Or(c.Registry.RegisteredAt, now), now
	data, err := json.Marshal(c)
	if err != nil {
		return err
	}
	var revision uint64
	if key := toKey(c.Agent.Token()); last == 0 {
		revision, err = r.bucket.Create(ctx, key, data)
	} else {
		revision, err = r.bucket.Update(ctx, key, data, last)
	}
	if err != nil {
		return err
	}
	r.apply(*c, revision)
	return nil
}

// Remove unregisters a principal and returns its last card. Transcripts keep what
// they pinned.
func (r *Registry) Remove(ctx context.Context, a performatives.Agent) (api.Card, error) {
	defer r.holdConnections(a)()
	for range maxAttempts {
		card, revision, err := r.current(ctx, a)
		switch {
		case err != nil:
			return card, err
		case revision == 0:
			return card, unregistered(a)
		}
		// Many consumers take their time. They go first: a removal that fails halfway can be made again,
		// as long as there is a card to remove.
		if err := r.closeInbox(ctx, a); err != nil {
			return card, err
		}
		err = r.bucket.DeleteIf(ctx, toKey(a.Token()), revision)
		if errors.Is(err, store.ErrConflict) {
			continue
		}
		if err != nil {
			return card, err
		}
		r.evict(a, revision)
		// Again, for what the principal opened meanwhile.
		return card, errors.Join(r.bucket.Sync(), r.closeInbox(ctx, a))
	}
	return api.Card{}, errContention
}

// openInbox creates the durable consumer through which a principal reads its inbox.
// It has to be there before the card is.
func (r *Registry) openInbox(ctx context.Context, a performatives.Agent) error {
	return r.o.Store.EnsureConsumer(ctx, store.Consumer{Stream: api.InboxStream, Name: a.Token(), Subject: api.InboxOf(a), Description: string(a)})
}

// closeInbox removes that consumer, and those of single sessions.
func (r *Registry) closeInbox(ctx context.Context, a performatives.Agent) error {
	return r.o.Store.RemoveConsumers(ctx, api.InboxStream, api.InboxOf(a), append(api.SessionConsumers(a.Token()), a.Token())...)
}

// toKey makes a subject token a bucket key, which may contain neither ~ nor @.
// No token contains / or =40, so two tokens never have the same key.
func toKey(token string) string {
	return strings.ReplaceAll(strings.Replace(token, "@", "=40", 1), "~", "/")
}

func fromKey(key string) string {
	if rest, human := strings.CutPrefix(key, "=40"); human {
		key = "@" + rest
	}
	return strings.ReplaceAll(key, "/", "~")
}

func unregistered(a performatives.Agent) error {
	return session.Refuse(session.UnknownAgent, "%.300s is not registered", a)
}
