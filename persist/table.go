// Package persist is a persistent map: setting a key yields a new map and
// leaves the old one as it was, at the cost of one path through a tree.
package persist

import "hash/maphash"

// A Table maps strings of one kind to values. The zero Table is empty.
//
// It is a tree in which every node has an entry, and four ways on by the next two
// bits of a key's hash. Setting a key copies the nodes on its way, some five of
// them among a few hundred keys.
type Table[K ~string, V any] struct {
	top *node[K, V]
	n   int
}

type node[K ~string, V any] struct {
	hash  uint64
	key   K
	value V
	ways  [ways]*node[K, V]
}

const (
	ways = 4
	bits = 2 // of the hash, to choose among so many
)

// hash is seeded per process: keys come from strangers, who must not be able to
// make them collide.
func hash[K ~string](k K) uint64 { return maphash.String(seed, string(k)) }

var seed = maphash.MakeSeed()

// Get finds a key's value.
func (t Table[K, V]) Get(k K) (V, bool) {
	if t.top != nil {
		h := hash(k)
		for n, left := t.top, h; n != nil; n, left = n.ways[left%ways], left>>bits {
			if n.is(h, k) {
				return n.value, true
			}
		}
	}
	var none V
	return none, false
}

// With is the table with one key set.
func (t Table[K, V]) With(k K, v V) Table[K, V] {
	h := hash(k)
	top, added := t.top.with(h, &node[K, V]{hash: h, key: k, value: v})
	return Table[K, V]{top, t.n + added}
}

// with puts an entry in, given what is left of its hash here.
func (n *node[K, V]) with(left uint64, entry *node[K, V]) (_ *node[K, V], added int) {
	if n == nil {
		return entry, 1
	}
	if n.is(entry.hash, entry.key) {
		entry.ways = n.ways
		return entry, 0
	}
	changed := *n
	way := &changed.ways[left%ways]
	*way, added = (*way).with(left>>bits, entry)
	return &changed, added
}

func (n *node[K, V]) is(hash uint64, k K) bool { return n.hash == hash && n.key == k }

// Without is the table less one key.
func (t Table[K, V]) Without(k K) Table[K, V] {
	h := hash(k)
	top, removed := t.top.without(h, h, k)
	return Table[K, V]{top, t.n - removed}
}

func (n *node[K, V]) without(left, hash uint64, k K) (_ *node[K, V], removed int) {
	if n == nil {
		return nil, 0
	}
	if n.is(hash, k) {
		return n.rest(), 1
	}
	way, removed := n.ways[left%ways].without(left>>bits, hash, k)
	if removed == 0 {
		return n, 0
	}
	changed := *n
	changed.ways[left%ways] = way
	return &changed, 1
}

// rest is what is below a node, with an entry from there in its place.
func (n *node[K, V]) rest() *node[K, V] {
	for way, below := range n.ways {
		if below != nil {
			up := *below
			up.ways = n.ways
			up.ways[way] = below.rest()
			return &up
		}
	}
	return nil
}

// Len counts the keys.
func (t Table[K, V]) Len() int { return t.n }

// All yields the keys and values, in no order that means anything: sort what
// you show.
func (t Table[K, V]) All() func(func(K, V) bool) {
	return func(yield func(K, V) bool) { t.top.all(yield) }
}

func (n *node[K, V]) all(yield func(K, V) bool) bool {
	if n == nil {
		return true
	}
	if !yield(n.key, n.value) {
		return false
	}
	for _, below := range n.ways {
		if !below.all(yield) {
			return false
		}
	}
	return true
}
