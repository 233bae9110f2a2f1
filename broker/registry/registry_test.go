package registry_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker/registry"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/store"
	"github.com/parley-asp/parley/test/natskit"
)

const (
	alpha = performatives.Agent("agent://acme.com/alpha")
	beta  = performatives.Agent("agent://widgets.co/beta")
	alice = performatives.Agent("human://acme.com/alice")
	anna  = performatives.Agent("human://acme.com/anna")
)

var operator = api.Caller{Operator: true}

// open opens the registry of one broker; those on the same server share it.
func open(t *testing.T, s *natskit.Server, change ...func(*registry.Options)) *registry.Registry {
	t.Helper()
	o := registry.Options{
		Store: openStore(t, s), Broker: s.Signer.Key(), Now: time.Now, Log: zap.NewNop(), Timely: func(time.Time) error { return nil },
	}
	for _, c := range change {
		c(&o)
	}
	r, err := registry.Open(t.Context(), o)
	natskit.Must(t, err)
	t.Cleanup(r.Close)
	return r
}

func openStore(t *testing.T, s *natskit.Server) *store.Store {
	t.Helper()
	opened, err := store.Open(t.Context(), store.Options{Conn: s.Connect()})
	natskit.Must(t, err)
	t.Cleanup(opened.Close)
	return opened
}

// add registers a principal with a new key. Humans may decide.
func add(t *testing.T, r *registry.Registry, a performatives.Agent) performatives.Signer {
	t.Helper()
	signer := natskit.Signer(t, natskit.NewKey(t))
	_, err := r.Add(t.Context(), api.Card{Agent: a, Key: signer.Key(), LoginKeys: natskit.LoginKeys(t, signer), Registry: api.Registry{MayDecide: a.IsHuman()}})
	natskit.Must(t, err)
	return signer
}

// login is the login key of who signs.
func login(t *testing.T, signer performatives.Signer) performatives.Key {
	t.Helper()
	return natskit.LoginKeys(t, signer)[0]
}

func newKey(t *testing.T) performatives.Key {
	t.Helper()
	return performatives.Key(natskit.Public(t, natskit.NewKey(t)))
}

// A login finds what another broker has just registered, and so does who asks for a
// principal. A registry that is closed learns nothing any more.
func TestTwoBrokers(t *testing.T) {
	t.Parallel()
	s := natskit.StartServer(t)
	one, two, closed := open(t, s), open(t, s), open(t, s)
	closed.Close()
	signer := add(t, one, alpha)
	key := signer.Key()
	if a, ok := two.Principal(login(t, signer)); !ok || a != alpha {
		t.Errorf("on the other broker, the key logs in as %q", a)
	}
	for n := range 20 {
		a := performatives.Agent(fmt.Sprintf("agent://acme.com/newcomer%d", n))
		add(t, one, a)
		if !two.Registered(a) {
			t.Errorf("the other broker does not know %s", a)
		}
	}
	if two.Registered(beta) {
		t.Error("the other broker knows who is not registered")
	}
	if closed.Registered(alpha) {
		t.Error("a closed registry follows the bucket")
	}
	later := open(t, s)
	if card, _ := later.Card(alpha); card.Key != key {
		t.Errorf("a broker that starts later reads the key %q", card.Key)
	}
}

// Of changes to one card at the same time, on two brokers, none is lost.
func TestConcurrentChanges(t *testing.T) {
	t.Parallel()
	s := natskit.StartServer(t)
	brokers := []*registry.Registry{open(t, s), open(t, s)}
	own := add(t, brokers[0], alice)
	if _, ok := brokers[1].Principal(login(t, own)); !ok {
		t.Fatal("the other broker does not know alice")
	}
	var keys []performatives.Key
	var running sync.WaitGroup
	for i := range 6 {
		r, key := brokers[i%2], newKey(t)
		keys = append(keys, key)
		e, err := r.HumanEnrol(t.Context(), operator, api.EnrolHuman{Agent: alice})
		natskit.Must(t, err)
		running.Go(func() {
			if _, err := r.Redeem(t.Context(), e.Code, key, "browser"); err != nil {
				t.Error(err)
			}
		})
		running.Go(func() {
			if _, err := r.Add(t.Context(), api.Card{Agent: alice, Key: own.Key(), Capabilities: []string{fmt.Sprint(i)}}); err != nil {
				t.Error(err)
			}
		})
	}
	running.Wait()
	card, _ := open(t, s).Card(alice)
	if len(card.Registry.Devices) != len(keys) {
		t.Errorf("alice has %d devices, want %d", len(card.Registry.Devices), len(keys))
	}
}

// A key belongs to one principal, and no principal has one of the installation's.
func TestKeyHasOneOwner(t *testing.T) {
	t.Parallel()
	s := natskit.StartServer(t)
	reserved := newKey(t)
	r := open(t, s, func(o *registry.Options) { o.Reserved = []performatives.Key{reserved} })
	taken := add(t, r, beta).Key()
	add(t, r, alpha)
	for name, key := range map[string]performatives.Key{"another's": taken, "the broker's": s.Signer.Key(), "the installation's": reserved} {
		if _, err := r.Add(t.Context(), api.Card{Agent: alpha, Key: key}); natskit.CodeOf(err) != session.Duplicate {
			t.Errorf("%s key is registered: %v", name, err)
		}
		if _, _, err := r.AgentRotate(t.Context(), operator, api.RotateKey{Agent: alpha, Key: key}); natskit.CodeOf(err) != session.Duplicate {
			t.Errorf("%s key is rotated to: %v", name, err)
		}
	}
	if _, err := r.Add(t.Context(), api.Card{Agent: beta, Key: taken}); err != nil {
		t.Errorf("the owner's own key: %v", err)
	}
}

// A key has one purpose: the one that signs does not log in, whoever's it is, nor do a browser's and one that
// signed once; and a login key signs nothing (PROTOCOL.md §3).
func TestKeyHasOnePurpose(t *testing.T) {
	t.Parallel()
	s := natskit.StartServer(t)
	r := open(t, s)
	a, b := add(t, r, alpha), add(t, r, beta)
	if who, logsIn := r.Principal(a.Key()); logsIn {
		t.Errorf("the key that signs logs in as %s", who)
	}
	add(t, r, alice)
	e, err := r.HumanEnrol(t.Context(), operator, api.EnrolHuman{Agent: alice})
	natskit.Must(t, err)
	browser, former, next := newKey(t), a.Key(), newKey(t)
	_, err = r.Redeem(t.Context(), e.Code, browser, "browser")
	natskit.Must(t, err)
	_, release, err := r.AgentRotate(t.Context(), operator, api.RotateKey{Agent: alpha, Key: next})
	natskit.Must(t, err)
	release()
	twice := newKey(t)
	for name, logins := range map[string][]performatives.Key{
		"that signs": {next}, "that signed once": {former}, "that another signs with": {b.Key()},
		"that another logs in with": {login(t, b)}, "of a browser": {browser}, "of the broker": {s.Signer.Key()},
		"that is none": {"U"}, "that is there twice": {twice, twice},
	} {
		_, err := r.Add(t.Context(), api.Card{Agent: alpha, Key: next, LoginKeys: logins})
		if is := natskit.CodeOf(err); is != session.Duplicate && is != session.SchemaInvalid {
			t.Errorf("a key %s is registered to log in: %v", name, err)
		}
		if _, _, err := r.AgentRotate(t.Context(), operator, api.RotateKey{Agent: alpha, Key: next, LoginKeys: logins}); err == nil {
			t.Errorf("a key %s is rotated to, to log in", name)
		}
	}
	for name, key := range map[string]performatives.Key{"logs in": login(t, a), "logs in for another": login(t, b)} {
		if _, err := r.Add(t.Context(), api.Card{Agent: alpha, Key: key}); natskit.CodeOf(err) != session.Duplicate {
			t.Errorf("a key that %s is registered to sign: %v", name, err)
		}
	}
	e, err = r.HumanEnrol(t.Context(), operator, api.EnrolHuman{Agent: alice})
	natskit.Must(t, err)
	if _, err := r.Redeem(t.Context(), e.Code, login(t, b), "browser"); natskit.CodeOf(err) != session.Duplicate {
		t.Errorf("a login key is enrolled as a browser's: %v", err)
	}
	if _, err := r.Add(t.Context(), api.Card{Agent: alpha, Key: next, LoginKeys: []performatives.Key{login(t, a), twice}}); err != nil {
		t.Errorf("two login keys: %v", err)
	}
}

// Before there were login keys, the one that signs logged in. For one release it still may.
func TestSharedKeys(t *testing.T) {
	t.Parallel()
	key := newKey(t)
	for _, shared := range []bool{false, true} {
		r := open(t, natskit.StartServer(t), func(o *registry.Options) { o.Shared = shared })
		_, err := r.Add(t.Context(), api.Card{Agent: alpha, Key: key})
		natskit.Must(t, err)
		if _, logsIn := r.Principal(key); logsIn != shared {
			t.Errorf("--shared-keys is %t, and the key logs in: %t", shared, logsIn)
		}
		if n := r.NoLogin(); !slices.Equal(n, []performatives.Agent{alpha}) {
			t.Errorf("without a login key are %q", n)
		}
		_, release, err := r.AgentRotate(t.Context(), operator, api.RotateKey{Agent: alpha, Key: newKey(t), LoginKeys: []performatives.Key{newKey(t)}})
		natskit.Must(t, err)
		release()
		if _, logsIn := r.Principal(key); logsIn {
			t.Error("the shared key logs in after it was replaced")
		}
	}
}

// Who is hosted acts with a token, so nobody is told that it lacks a login key, with a key of its own beside or without.
func TestNoLogin(t *testing.T) {
	t.Parallel()
	r := open(t, natskit.StartServer(t))
	add(t, r, alpha)
	_, err := r.AddHosted(t.Context(), api.Card{Agent: "agent://acme.com/hosted"}, newKey(t))
	natskit.Must(t, err)
	_, err = r.Add(t.Context(), api.Card{Agent: beta, Key: newKey(t)})
	natskit.Must(t, err)
	if n := r.NoLogin(); !slices.Equal(n, []performatives.Agent{beta}) {
		t.Errorf("without a login key are %q, not beta alone", n)
	}
	_, err = r.Host(t.Context(), beta, newKey(t))
	natskit.Must(t, err)
	if n := r.NoLogin(); len(n) > 0 {
		t.Errorf("without a login key are %q, also once beta is hosted", n)
	}
	_, err = r.Unhost(t.Context(), beta)
	natskit.Must(t, err)
	if n := r.NoLogin(); !slices.Equal(n, []performatives.Agent{beta}) {
		t.Errorf("without a login key are %q, once beta is hosted no more", n)
	}
}

// Whoever loses a key, or the right to decide, is disconnected on every broker. A
// principal that rotates its key has the reply first.
func TestDisconnect(t *testing.T) {
	t.Parallel()
	s := natskit.StartServer(t)
	var here []performatives.Key
	there := make(chan performatives.Key, 8)
	r := open(t, s, func(o *registry.Options) {
		o.Disconnect = func(_ performatives.Agent, k performatives.Key) { here = append(here, k) }
	})
	other := open(t, s, func(o *registry.Options) {
		o.Disconnect = func(_ performatives.Agent, k performatives.Key) { there <- k }
	})
	knows := func(a performatives.Agent, is func(api.Card) bool) { // or the next change replaces it
		natskit.Eventually(t, "the other registry knows of the change", func() bool {
			card, known := other.Card(a)
			return known && is(card)
		})
	}
	disconnected := func(what string, want performatives.Key) {
		t.Helper()
		if !slices.Equal(here, []performatives.Key{want}) {
			t.Errorf("%s: disconnected are %q, want %q", what, here, want)
		}
		here = nil
		if k := <-there; k != want {
			t.Errorf("%s: on the other broker %q is disconnected, want %q", what, k, want)
		}
	}

	old, next := add(t, r, alpha), newKey(t)
	knows(alpha, func(c api.Card) bool { return c.Key == old.Key() })
	_, release, err := r.AgentRotate(t.Context(), operator, api.RotateKey{Agent: alpha, Key: newKey(t)})
	natskit.Must(t, err)
	release()
	knows(alpha, func(c api.Card) bool { return c.Key != old.Key() })
	if len(here) > 0 {
		t.Error("a login key is disconnected with another key that signs")
	}
	_, release, err = r.AgentRotate(t.Context(), operator, api.RotateKey{Agent: alpha, Key: newKey(t), LoginKeys: []performatives.Key{next}})
	natskit.Must(t, err)
	if len(here) > 0 {
		t.Error("the old key is disconnected before the reply")
	}
	release()
	disconnected("a rotated key", login(t, old))

	_, err = r.Remove(t.Context(), alpha)
	natskit.Must(t, err)
	disconnected("a removed principal", next)

	signer := add(t, r, alice)
	decider, logins := signer.Key(), natskit.LoginKeys(t, signer)
	_, err = r.Add(t.Context(), api.Card{Agent: alice, Key: decider, LoginKeys: logins, Description: "on leave", Registry: api.Registry{MayDecide: true}})
	natskit.Must(t, err)
	knows(alice, func(c api.Card) bool { return c.Registry.MayDecide })
	_, err = r.Add(t.Context(), api.Card{Agent: alice, Key: decider, LoginKeys: logins})
	natskit.Must(t, err)
	disconnected("a human who may not decide any more", logins[0])
}

// Who is removed is not registered, and can be registered again.
func TestRemove(t *testing.T) {
	t.Parallel()
	r := open(t, natskit.StartServer(t))
	if _, err := r.Remove(t.Context(), alpha); natskit.CodeOf(err) != session.UnknownAgent {
		t.Errorf("removed before it was registered: %v", err)
	}
	signer := add(t, r, alpha)
	key := signer.Key()
	if card, err := r.Remove(t.Context(), alpha); err != nil || card.Key != key {
		t.Errorf("removed is %+v, %v", card, err)
	}
	if _, logsIn := r.Principal(login(t, signer)); logsIn {
		t.Error("a removed principal logs in")
	}
	if _, err := r.AgentRegister(t.Context(), api.Caller{Agent: alpha}, api.RegisterAgent{Card: &api.Card{}}); natskit.CodeOf(err) != session.UnknownAgent {
		t.Errorf("a removed principal registers itself: %v", err)
	}
	if add(t, r, alpha).Key() == key {
		t.Error("the key is the old one")
	}
}

// Who may decide for an organisation: its humans whom the operator lets, and under
// --dev every human who is no auditor.
func TestDeciders(t *testing.T) {
	t.Parallel()
	for dev, want := range map[bool]int{false: 1, true: 2} {
		s := natskit.StartServer(t)
		r := open(t, s, func(o *registry.Options) { o.Dev = dev })
		for _, c := range []api.Card{
			{Agent: alice, Registry: api.Registry{MayDecide: true}},
			{Agent: anna},
			{Agent: "human://acme.com/audrey", Registry: api.Registry{Auditor: true}},
			{Agent: alpha, Registry: api.Registry{MayDecide: true}},
			{Agent: "human://widgets.co/bob", Registry: api.Registry{MayDecide: true}},
		} {
			c.Key = newKey(t)
			_, err := r.Add(t.Context(), c)
			natskit.Must(t, err)
		}
		if got := r.Deciders("acme.com"); len(got) != want {
			t.Errorf("dev %t: %d may decide, want %d: %v", dev, len(got), want, got)
		}
	}
}

// Under --dev whoever is named is registered, once, and the broker is not.
func TestMeet(t *testing.T) {
	t.Parallel()
	s := natskit.StartServer(t)
	strict, dev := open(t, s), open(t, s, func(o *registry.Options) { o.Dev = true })
	natskit.Must(t, strict.Meet(t.Context(), alpha))
	if _, ok := strict.Member(alpha); ok {
		t.Error("a principal that nobody registered is a member without --dev")
	}
	if m, ok := dev.Member(alice); !ok || m.Authority != performatives.AuthorityDecide {
		t.Errorf("a new human under --dev is %+v", m)
	}
	for range 2 {
		natskit.Must(t, dev.Meet(t.Context(), alice, "", performatives.BrokerAgent(s.Signer.Key()), alpha))
	}
	all, err := dev.AgentList(t.Context(), operator, api.ListAgents{})
	natskit.Must(t, err)
	if len(all.Agents) != 2 || all.Agents[0].Agent != alpha || all.Agents[1].Agent != alice {
		t.Errorf("registered are %+v", all.Agents)
	}
}

// A list comes in pages, filtered. Limits and devices are for their own organisation.
func TestAgentList(t *testing.T) {
	t.Parallel()
	r := open(t, natskit.StartServer(t))
	for _, a := range []performatives.Agent{alpha, beta, anna} {
		add(t, r, a)
	}
	_, err := r.Add(t.Context(), api.Card{
		Agent: alice, Key: newKey(t), Capabilities: []string{"leases", "data.csv"},
		Registry: api.Registry{MayDecide: true, Limits: []performatives.Limit{{Currency: "USD", MaxAmount: 5}}},
	})
	natskit.Must(t, err)
	for _, test := range []struct {
		q    api.ListAgents
		want []performatives.Agent
		next string
	}{
		{api.ListAgents{}, []performatives.Agent{alpha, beta, alice, anna}, ""},
		{api.ListAgents{Limit: 3}, []performatives.Agent{alpha, beta, alice}, string(alice)},
		{api.ListAgents{Cursor: string(alice)}, []performatives.Agent{anna}, ""},
		{api.ListAgents{Organization: "acme.com", Kind: performatives.KindHuman}, []performatives.Agent{alice, anna}, ""},
		{api.ListAgents{Capability: "leases"}, []performatives.Agent{alice}, ""},
		{api.ListAgents{Capability: "data.*"}, []performatives.Agent{alice}, ""},
		{api.ListAgents{Capability: "data"}, nil, ""},
	} {
		found, err := r.AgentList(t.Context(), api.Caller{Agent: beta}, test.q)
		natskit.Must(t, err)
		var got []performatives.Agent
		for _, c := range found.Agents {
			got = append(got, c.Agent)
		}
		if !slices.Equal(got, test.want) || found.Next != test.next {
			t.Errorf("%+v: %q and next %q", test.q, got, found.Next)
		}
	}
	for caller, limits := range map[performatives.Agent]int{beta: 0, anna: 1} {
		card, err := r.AgentGet(t.Context(), api.Caller{Agent: caller}, api.AgentRef{Agent: alice})
		if err != nil || len(card.Registry.Limits) != limits {
			t.Errorf("%s reads %d limits, want %d: %v", caller, len(card.Registry.Limits), limits, err)
		}
	}
}
