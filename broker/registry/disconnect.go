package registry

import (
	"slices"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
)

// held are the keys of a principal whose connections close once nobody holds them.
type held struct {
	holders int
	keys    []performatives.Key
}

// apply takes a card of this revision into the cache. A connection keeps the
// permissions that it was made with, so whoever loses some has to connect again.
func (r *Registry) apply(c api.Card, revision uint64) {
	r.replace(c.Agent, func() []performatives.Key {
		old, changed := r.cache.put(c, revision)
		switch {
		case !changed:
			return nil
		case r.decides(old) && !r.decides(c):
			return r.logins(old)
		}
		stay := r.logins(c)
		return slices.DeleteFunc(r.logins(old), func(k performatives.Key) bool { return slices.Contains(stay, k) })
	})
}

// evict takes a card of at most this revision out of the cache.
func (r *Registry) evict(a performatives.Agent, revision uint64) {
	r.replace(a, func() []performatives.Key {
		old, changed := r.cache.remove(a, revision)
		if !changed {
			return nil
		}
		return r.logins(old)
	})
}

// logins are the keys that a card's principal may log in with.
func (r *Registry) logins(c api.Card) []performatives.Key {
	if r.o.Shared && len(c.LoginKeys) == 0 && c.Key != "" {
		return []performatives.Key{c.Key}
	}
	return slices.Clone(c.LoginKeys)
}

// replace changes the cache. The connections of the keys that have lost something close, now
// or when they are released.
func (r *Registry) replace(a performatives.Agent, change func() (lost []performatives.Key)) {
	r.mu.Lock()
	lost := change()
	if h := r.held[a]; h != nil {
		h.keys = append(h.keys, lost...)
		lost = nil
	}
	r.mu.Unlock()
	r.disconnect(a, lost)
}

func (r *Registry) disconnect(a performatives.Agent, keys []performatives.Key) {
	for _, k := range keys {
		if r.o.Disconnect != nil {
			r.o.Disconnect(a, k)
		}
	}
}

// Reconnect closes the connections of a principal, who gets other permissions with its next login.
func (r *Registry) Reconnect(a performatives.Agent) {
	r.replace(a, func() []performatives.Key {
		card, _, known := r.cache.card(a)
		if !known {
			return nil
		}
		return r.logins(card)
	})
}

// holdConnections keeps a principal's connections open until every holder has called
// release, which closes those of keys that have lost something. A writer holds them,
// so that they are closed when it returns even if the watch was first to see the
// change. AgentRotate holds them longer: its reply goes to the old key's connection.
func (r *Registry) holdConnections(a performatives.Agent) (release func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.held[a]
	if h == nil {
		h = &held{}
		r.held[a] = h
	}
	h.holders++
	return func() {
		r.mu.Lock()
		var keys []performatives.Key
		if h.holders--; h.holders == 0 {
			keys = h.keys
			delete(r.held, a)
		}
		r.mu.Unlock()
		r.disconnect(a, keys)
	}
}
