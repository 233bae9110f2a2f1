package broker

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"
	"go.uber.org/zap"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/store"
)

// registry knows the principals. The bucket is the truth; memory follows it.
type registry struct {
	b      *Broker
	bucket *store.Bucket

	mu    sync.RWMutex
	cards map[performatives.Agent]api.Card
	keys  map[performatives.Key]performatives.Agent
	orgs  map[performatives.Organisation]map[performatives.Agent]bool // humans who may decide
	news  map[performatives.Agent]uint64                              // the bucket's revision that memory is at
	going map[performatives.Agent]*going

	devices map[performatives.Key]performatives.Agent // keys that sign and do not log in
	seen    atomic.Uint64                             // the bucket's newest revision that memory has
}

func (b *Broker) openRegistry(ctx context.Context) error {
	bucket, err := b.store.Bucket(ctx, api.AgentsBucket, "principals: cards, keys, trust", 0)
	if err != nil {
		return err
	}
	r := &registry{
		b: b, bucket: bucket, cards: map[performatives.Agent]api.Card{}, keys: map[performatives.Key]performatives.Agent{},
		orgs: map[performatives.Organisation]map[performatives.Agent]bool{}, news: map[performatives.Agent]uint64{},
		going: map[performatives.Agent]*going{}, devices: map[performatives.Key]performatives.Agent{},
	}
	b.registry = r
	return bucket.Watch(ctx, b.work, r.saw)
}

func (r *registry) saw(e store.Entry) {
	defer r.seen.Store(e.Revision)
	if e.Deleted {
		if a, err := performatives.ParseToken(fromKey(e.Key)); err == nil {
			r.drop(a, e.Revision)
		}
		return
	}
	var c api.Card
	if err := json.Unmarshal(e.Value, &c); err != nil {
		r.b.Log.Error("registry record", zap.String("key", e.Key), zap.Error(err))
		return
	}
	r.keep(c, e.Revision)
}

// keep takes a card from this revision of the bucket into memory. What comes
// back from the bucket after it was written here is no news.
func (r *registry) keep(c api.Card, revision uint64) {
	r.mu.Lock()
	if revision <= r.news[c.Agent] {
		r.mu.Unlock()
		return
	}
	r.news[c.Agent] = revision
	old := r.cards[c.Agent]
	r.hold(old, c)
	r.mu.Unlock()
	// What a connection may do was decided when it was made: who may do less comes again.
	if old.Key != c.Key || r.b.decides(old) && !r.b.decides(c) {
		r.departed(old)
	}
}

func (r *registry) hold(old, c api.Card) {
	delete(r.keys, old.Key)
	r.holdDevices(old, c)
	r.cards[c.Agent] = c
	if c.Key != "" {
		r.keys[c.Key] = c.Agent
	}
	org := c.Agent.Organisation()
	if r.b.decides(c) {
		if r.orgs[org] == nil {
			r.orgs[org] = map[performatives.Agent]bool{}
		}
		r.orgs[org][c.Agent] = true
	} else {
		delete(r.orgs[org], c.Agent)
	}
}

// drop forgets a card, as this revision of the bucket says, or 0 before the
// bucket has said so.
func (r *registry) drop(a performatives.Agent, revision uint64) {
	r.mu.Lock()
	if revision > 0 {
		if revision <= r.news[a] {
			r.mu.Unlock()
			return
		}
		delete(r.news, a)
	}
	old := r.cards[a]
	delete(r.keys, old.Key)
	r.holdDevices(old, api.Card{})
	delete(r.cards, a)
	delete(r.orgs[a.Organisation()], a)
	r.mu.Unlock()
	r.departed(old)
}

// departed tells of a key that is its principal's no more.
func (r *registry) departed(old api.Card) {
	if old.Key == "" || r.b.Departed == nil {
		return
	}
	r.mu.Lock()
	g := r.going[old.Agent]
	if g != nil {
		g.keys = append(g.keys, old.Key)
	}
	r.mu.Unlock()
	if g == nil {
		r.b.Departed(old.Agent, old.Key)
	}
}

// decides tells whether the card is of a human who may decide; under --dev
// every human may, for its organisation. An auditor may not.
func (b *Broker) decides(c api.Card) bool {
	return c.Agent.IsHuman() && (b.Dev || c.Registry.MayDecide) && !c.Registry.Auditor
}

// toKey makes a subject token a key-value key, which may hold neither ~ nor @;
// neither / nor =40 stands in a token, so this is injective.
func toKey(token string) string {
	return strings.ReplaceAll(strings.Replace(token, "@", "=40", 1), "~", "/")
}

func fromKey(key string) string {
	if rest, human := strings.CutPrefix(key, "=40"); human {
		key = "@" + rest
	}
	return strings.ReplaceAll(key, "/", "~")
}

// Card finds a principal's card.
func (r *registry) Card(a performatives.Agent) (api.Card, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	c, ok := r.cards[a]
	return c, ok
}

// Member is what a transcript pins of a principal. Under --dev everybody is
// known, by a card that is written when an act of theirs, or that names them,
// is accepted.
func (r *registry) Member(a performatives.Agent) (performatives.Member, bool) {
	c, ok := r.Card(a)
	if !ok {
		if !r.b.Dev {
			return performatives.Member{}, false
		}
		c = strangersCard(a)
	}
	return r.b.pinned(c), true
}

func (b *Broker) pinned(c api.Card) performatives.Member {
	m := performatives.Member{
		Agent: c.Agent, Key: c.Key, Kind: c.Kind, Authority: performatives.AuthorityPrincipal, TrustScore: c.Registry.TrustScore,
	}
	if b.decides(c) {
		m.Authority = performatives.AuthorityDecide
		m.Limited, m.Limits = len(c.Registry.Limits) > 0, c.Registry.Limits
	}
	return m
}

// Deciders are the humans who may decide for an organisation.
func (r *registry) Deciders(org performatives.Organisation) []performatives.Member {
	r.mu.RLock()
	defer r.mu.RUnlock()
	members := make([]performatives.Member, 0, len(r.orgs[org]))
	for a := range r.orgs[org] {
		members = append(members, r.b.pinned(r.cards[a]))
	}
	return members
}

// byKey finds the principal that a public key belongs to.
func (r *registry) byKey(k performatives.Key) (performatives.Agent, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	a, ok := r.keys[k]
	return a, ok
}

// put writes a card and makes sure of the inbox behind it.
func (r *registry) put(ctx context.Context, c api.Card) (api.Card, error) {
	now := r.b.Now().UTC().Format(time.RFC3339Nano)
	if old, ok := r.Card(c.Agent); ok {
		c.Registry.RegisteredAt, c.Registry.Devices = old.Registry.RegisteredAt, old.Registry.Devices
	}
	c.Registry.RegisteredAt = cmp.Or(c.Registry.RegisteredAt, now)
	c.Registry.UpdatedAt = now
	data, err := json.Marshal(c)
	if err != nil {
		return c, err
	}
	if err := r.openInbox(ctx, c.Agent); err != nil {
		return c, err
	}
	revision, err := r.bucket.Put(ctx, toKey(c.Agent.Token()), data)
	if err != nil {
		return c, err
	}
	r.keep(c, revision)
	return c, nil
}

// remove forgets a principal; transcripts keep what they pinned.
func (r *registry) remove(ctx context.Context, a performatives.Agent) error {
	if _, ok := r.Card(a); !ok { // or this broker has not heard of it yet
		_, err := r.bucket.Get(ctx, toKey(a.Token()))
		if errors.Is(err, store.ErrNoKey) {
			return session.Refuse(session.UnknownAgent, "%s is not registered", a)
		}
		if err != nil {
			return err
		}
	}
	if err := r.bucket.Delete(ctx, toKey(a.Token())); err != nil && !errors.Is(err, store.ErrNoKey) {
		return err
	}
	r.drop(a, 0)
	return r.b.store.RemoveConsumer(ctx, api.InboxStream, a.Token())
}

// list is the cards that a request asks for, by URI.
func (r *registry) list(wanted func(api.Card) bool) []api.Card {
	r.mu.RLock()
	defer r.mu.RUnlock()
	var found []api.Card
	for _, c := range r.cards {
		if wanted(c) {
			found = append(found, c)
		}
	}
	slices.SortFunc(found, func(a, b api.Card) int { return strings.Compare(string(a.Agent), string(b.Agent)) })
	return found
}

// openInbox creates the durable consumer by which a principal reads its inbox.
func (r *registry) openInbox(ctx context.Context, a performatives.Agent) error {
	return r.b.store.EnsureConsumer(ctx, store.Consumer{Stream: api.InboxStream, Name: a.Token(), Subject: api.InboxOf(a), Description: string(a)})
}
