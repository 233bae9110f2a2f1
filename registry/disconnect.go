package registry

import (
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
	r.replace(func() (old api.Card, lost bool) {
		old, changed := r.cache.put(c, revision)
		return old, changed && (old.Key != c.Key || r.decides(old) && !r.decides(c))
	})
}

// evict takes a card of at most this revision out of the cache.
func (r *Registry) evict(a performatives.Agent, revision uint64) {
	r.replace(func() (old api.Card, lost bool) { return r.cache.remove(a, revision) })
}

// replace changes the cache. If a key has lost something, its connections close, now
// or when they are released.
func (r *Registry) replace(change func() (old api.Card, lost bool)) {
	r.mu.Lock()
	old, lost := change()
	if h := r.held[old.Agent]; h != nil && lost {
		h.keys = append(h.keys, old.Key)
		lost = false
	}
	r.mu.Unlock()
	if lost {
		r.disconnect(old.Agent, old.Key)
	}
}

func (r *Registry) disconnect(a performatives.Agent, k performatives.Key) {
	if k != "" && r.o.Disconnect != nil {
		r.o.Disconnect(a, k)
	}
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
		for _, k := range keys {
			r.disconnect(a, k)
		}
	}
}
