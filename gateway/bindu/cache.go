package bindugateway

import (
	"crypto/sha256"
	"sync"

	"github.com/parley-asp/parley/discovery"
	"github.com/parley-asp/parley/performatives"
)

// maxCached is how many bytes of answers are kept, at most and about.
const (
	maxCached = 8 << 20
	ofAnEntry = 256 // besides its answer
)

// A cache keeps the answers that were asked for last, in two halves: once the younger half is full it
// becomes the older one. The zero cache is empty.
type cache struct {
	mu             sync.Mutex
	bytes          int // of the younger half
	younger, older map[key]answer
}

// A key is a card and a task. A card that changed has another profile.
type key struct {
	profile *discovery.Profile
	queue   int // -1 is unknown
	task    [sha256.Size]byte
}

func keyOf(card Card, task []byte) key {
	k := key{card.Profile, -1, sha256.Sum256(task)}
	if card.Queue != nil {
		k.queue = *card.Queue
	}
	return k
}

// key is what an answer is kept by; false is none.
func (g *Gateway) key(a performatives.Agent, task []byte) (k key, ok bool) {
	card, known := g.o.Card(a)
	if !known || g.o.Similar != nil {
		return k, false
	}
	return keyOf(card, task), true
}

// get returns an answer that is kept, or none.
func (c *cache) get(k key, ok bool) answer {
	if !ok {
		return answer{}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if a, there := c.younger[k]; there {
		return a
	}
	a, there := c.older[k]
	if there {
		c.keep(k, a)
	}
	return a
}

func (c *cache) put(k key, a answer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keep(k, a)
}

// keep puts an answer into the younger half; under mu.
func (c *cache) keep(k key, a answer) {
	size := len(a.body) + ofAnEntry
	if _, there := c.younger[k]; there {
		return
	}
	if c.younger == nil || c.bytes+size > maxCached/2 {
		c.older, c.younger, c.bytes = c.younger, map[key]answer{}, 0
	}
	c.younger[k] = a
	c.bytes += size
}
