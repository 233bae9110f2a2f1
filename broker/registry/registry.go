// Package registry knows the principals of an installation: their cards and keys,
// the devices that humans enrolled, and the terms schemas of organisations.
//
//	r, err := registry.Open(ctx, registry.Options{Store: s, Now: time.Now, Log: log, …})
//	if err != nil { … }
//	defer r.Close()
//	card, err := r.Add(ctx, api.Card{Agent: "agent://acme.com/buyer", Key: key})
//	agent, ok := r.Principal(key) // who logs in with this key
//
// The bucket is the truth, and a cache in memory answers every read. The cache never
// goes back to an older revision of a card. A change is written only if the card is
// still as the change found it, so no change undoes another. A verb that writes
// returns when the store has synced the write. Whoever loses a key or the right to
// decide is disconnected, on every broker.
package registry

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"go.uber.org/zap"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/internal/background"
	"github.com/parley-asp/parley/internal/outbound"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/store"
)

// Options say how a registry runs.
type Options struct {
	Store    *store.Store
	Broker   performatives.Key   // the broker's own key, which no principal may have
	Reserved []performatives.Key // other keys of the installation, likewise
	Dev      bool                // anyone is anyone: requests may be unsigned, unknown principals are registered
	Standbys bool                // hosted agents that name no standby have that of their organisation, api.StandbyOf
	Shared   bool                // who has no login key may log in with the key that signs, as before login keys
	Alone    bool                // no other broker writes to the registry
	Now      func() time.Time
	Log      *zap.Logger

	// Timely refuses a request whose timestamp is too far from the broker's clock.
	Timely func(at time.Time) error

	// Disconnect, if there is one, closes the connections that a principal made with a
	// key. It must not wait for the registry.
	Disconnect func(performatives.Agent, performatives.Key)

	// Prove asks a host whether it vouches for a key, by dns or file; nil asks the public internet.
	Prove func(ctx context.Context, host string, key performatives.Key, by string) error

	// Available reports whether an agent is online, and when it was last seen.
	Available func(performatives.Agent) (online bool, last time.Time)

	// Named finds for whom a name in MACP is kept by a token; nil knows none.
	Named func(name string) (performatives.Agent, bool)

	// HasRole reports whether the rules give a human one of these roles; nil gives none.
	HasRole func(who performatives.Agent, roles ...string) bool

	// Document reads the DID document at a URL; nil reads none.
	Document func(ctx context.Context, url string) ([]byte, error)

	// Credentials, if there is one, makes the user JWT of a principal's NATS credentials
	// file. Without it the NATS server does not read such files.
	Credentials func(performatives.Agent, performatives.Key) (userJWT string, err error)
}

// A Registry is open until it is closed.
type Registry struct {
	o      Options
	bucket *store.Bucket // cards
	codes  *store.Bucket // enrolment codes that nobody has used yet, by their hash
	cache  *cache
	work   *background.Group
	asking *outbound.Pool // for questions to domains

	mu   sync.Mutex
	held map[performatives.Agent]*held // disconnects that wait for an answer
}

// Open reads the registry, and follows it until Close.
func Open(ctx context.Context, o Options) (*Registry, error) {
	if o.Prove == nil {
		o.Prove = PublicDomain().Prove
	}
	bucket, err := o.Store.Bucket(ctx, api.AgentsBucket, "principals: cards, keys, trust", 0)
	if err != nil {
		return nil, err
	}
	codes, err := o.Store.Bucket(ctx, api.EnrolBucket, "codes by which browsers enrol", 2*codeValid)
	if err != nil {
		return nil, err
	}
	r := &Registry{o: o, bucket: bucket, codes: codes, work: background.New(), asking: outbound.New(askingBounds), held: map[performatives.Agent]*held{}}
	r.cache = newCache(r.decides, o.Shared)
	if err := bucket.Watch(ctx, r.work, r.saw); err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

// Close stops following the bucket.
func (r *Registry) Close() { r.work.Close() }

// saw takes a change of the bucket into the cache.
func (r *Registry) saw(e store.Entry) {
	if e.Deleted {
		if a, err := performatives.ParseToken(fromKey(e.Key)); err == nil {
			r.evict(a, e.Revision)
		}
		return
	}
	var c api.Card
	if err := json.Unmarshal(e.Value, &c); err != nil {
		r.o.Log.Error("registry record", zap.String("key", e.Key), zap.Error(err))
		return
	}
	r.apply(c, e.Revision)
}

// Card finds a principal's card.
func (r *Registry) Card(a performatives.Agent) (api.Card, bool) {
	card, _, ok := r.cache.card(a)
	return card, ok
}

// NameOf returns a principal's display name, or "".
func (r *Registry) NameOf(a performatives.Agent) string {
	card, _ := r.Card(a)
	return card.Name
}

// RemoteAgents lists the cards that name a server elsewhere, if anything changed since a revision.
func (r *Registry) RemoteAgents(since uint64) (cards []api.Card, revision uint64) {
	if revision = r.bucket.Seen(); revision == since {
		return nil, revision
	}
	return r.cache.list(func(c api.Card) bool { return c.Registry.A2A != "" }), revision
}

// HostedStandbys lists the standbys of organisations that the installation signs for, if anything
// changed since a revision.
func (r *Registry) HostedStandbys(since uint64) (agents []performatives.Agent, revision uint64) {
	if revision = r.bucket.Seen(); revision == since {
		return nil, revision
	}
	for _, c := range r.cache.list(func(c api.Card) bool { return c.Agent == api.StandbyOf(c.Agent.Organisation()) }) {
		if _, hosted := hostedKey(c); c.Kind == performatives.KindSystem && (hosted || r.o.Dev) {
			agents = append(agents, c.Agent)
		}
	}
	return agents, revision
}

// Member is what a transcript pins of a principal. Under --dev every principal is
// known; the card of a new one is written when an act of it, or one that names it, is
// accepted.
func (r *Registry) Member(a performatives.Agent) (performatives.Member, bool) {
	card, ok := r.Card(a)
	if !ok {
		if !r.o.Dev {
			return performatives.Member{}, false
		}
		card = r.newcomer(a)
	}
	return r.member(card), true
}

func (r *Registry) member(c api.Card) performatives.Member {
	m := performatives.Member{
		Agent: c.Agent, Key: c.Key, Kind: c.Kind, Authority: performatives.AuthorityPrincipal, TrustScore: c.Registry.TrustScore,
		Standby: c.Standby, Context: c.CCC, DID: c.Registry.DID, MaxValue: c.MaxTransactionValue,
	}
	if m.MaxValue != nil {
		m.Currency = c.Currency
	}
	if level := ""; json.Unmarshal(c.ConformanceLevel, &level) == nil && strings.EqualFold(level, performatives.Minimal) && !c.Agent.IsHuman() {
		m.Conformance = performatives.Minimal
	}
	key, hosted := hostedKey(c)
	if hosted && m.Key == "" {
		m.Key, m.Custody = key, performatives.Hosted
	}
	if r.o.Standbys && m.Standby == "" && m.Kind == performatives.KindPersonal && (hosted || r.o.Dev) {
		m.Standby = api.StandbyOf(c.Agent.Organisation())
	}
	if r.decides(c) {
		m.Authority = performatives.AuthorityDecide
		m.Limited, m.Limits = len(c.Registry.Limits) > 0, c.Registry.Limits
	}
	return m
}

// decides reports whether the card is of a human who may decide. Under --dev every
// human may, for their organisation, except an auditor.
func (r *Registry) decides(c api.Card) bool {
	return c.Agent.IsHuman() && (r.o.Dev || c.Registry.MayDecide) && !c.Registry.Auditor
}

// Deciders are the humans who may decide for an organisation, in no order.
func (r *Registry) Deciders(org performatives.Organisation) []performatives.Member {
	cards := r.cache.decidersOf(org)
	members := make([]performatives.Member, len(cards))
	for i, c := range cards {
		members[i] = r.member(c)
	}
	return members
}

// Audits reports whether the caller is an auditor.
func (r *Registry) Audits(c api.Caller) bool {
	card, _ := r.Card(c.Agent)
	return !c.Operator && card.Registry.Auditor
}

// ReadsAll reports whether the caller may read whatever its organisation takes part in: an auditor,
// and who has a role by the rules.
func (r *Registry) ReadsAll(c api.Caller) bool {
	if c.Operator || c.Agent == "" {
		return false
	}
	return r.Audits(c) || r.o.HasRole != nil && r.o.HasRole(c.Agent, escalation.RoleOwner, escalation.RoleAuditor)
}

// Operates reports whether the caller may read how the installation does: an operator, and a human who is
// one by the rules.
func (r *Registry) Operates(c api.Caller) bool {
	return c.Operator || r.o.HasRole != nil && r.o.HasRole(c.Agent, escalation.RoleOperator)
}

// Count counts principals by kind, and those of them that are online.
func (r *Registry) Count() (n api.PrincipalCounts) {
	for _, card := range r.cache.list(func(api.Card) bool { return true }) {
		online, _ := r.o.Available(card.Agent)
		all, there := &n.Agents, &n.AgentsOnline
		if card.Agent.IsHuman() {
			all, there = &n.Humans, &n.HumansOnline
		}
		if *all++; online {
			*there++
		}
	}
	return n
}

// RefuseAuditors refuses to have a caller who is an auditor do more than read.
func (r *Registry) RefuseAuditors(c api.Caller) error {
	if r.Audits(c) {
		return session.Refuse(session.Unauthorized, "an auditor reads, and does nothing else")
	}
	return nil
}

// Owner is the principal that a key belongs to, whatever it is for. The
// installation's own keys belong to the broker.
func (r *Registry) Owner(k performatives.Key) (performatives.Agent, bool) {
	owner, _ := r.owner(k)
	return owner, owner != ""
}

// owner is Owner, and what the key is for.
func (r *Registry) owner(k performatives.Key) (performatives.Agent, role) {
	if a, is := r.cache.owner(k); a != "" {
		return a, is
	}
	if k == r.o.Broker || slices.Contains(r.o.Reserved, k) {
		return performatives.BrokerAgent(k), signs
	}
	return "", ""
}

// NoLogin are the principals who have a key that signs and none that logs in. Before there were login keys, the
// one did both.
func (r *Registry) NoLogin() (agents []performatives.Agent) {
	for _, card := range r.cache.list(func(c api.Card) bool {
		_, hosted := hostedKey(c) // that one acts with a token
		return c.Key != "" && len(c.LoginKeys) == 0 && !hosted
	}) {
		agents = append(agents, card.Agent)
	}
	return agents
}

// Devices are the keys that a human's browsers sign with.
func (r *Registry) Devices(a performatives.Agent) []api.Device {
	card, _ := r.Card(a)
	return card.Registry.Devices
}

// Principal finds the principal that logs in with a key.
func (r *Registry) Principal(k performatives.Key) (performatives.Agent, bool) {
	a, ok := r.cache.login(k)
	if !ok && !r.o.Alone { // another broker may have registered it just now
		r.bucket.CatchUp(r.work.Context()) //nolint:errcheck // it answers from what it has
		a, ok = r.cache.login(k)
	}
	return a, ok
}

// Registered reports whether a principal is registered.
func (r *Registry) Registered(a performatives.Agent) bool {
	_, known := r.Card(a)
	if !known && !r.o.Alone { // another broker may have registered it just now
		r.bucket.CatchUp(r.work.Context()) //nolint:errcheck // it answers from what it has
		_, known = r.Card(a)
	}
	return known
}
