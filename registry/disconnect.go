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

// disconnect closes the connections of a card's key, now or when they are released.
func (r *Registry) disconnect(old api.Card) {
	if old.Key == "" || r.o.Disconnect == nil {
		return
	}
	r.mu.Lock()
	h := r.held[old.Agent]
	if h != nil {
		h.keys = append(h.keys, old.Key)
	}
	r.mu.Unlock()
	if h == nil {
		r.o.Disconnect(old.Agent, old.Key)
	}
}

// holdConnections keeps a principal's connections open until release is called, so
// that a principal that changes its key gets the answer on the old key's connection.
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
			r.o.Disconnect(a, k)
		}
	}
}
