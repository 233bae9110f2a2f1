// Package persist is a persistent map: setting a key yields a new map and
// leaves the old one as it was, at the cost of one path through a tree.
package persist

import (
	"hash/maphash"

	"github.com/benbjohnson/immutable"
)

// A Table maps strings of one kind to values. The zero Table is empty.
// All tables share one type of map, so that the compiler generates its code once.
type Table[K ~string, V any] struct{ m *immutable.Map[string, any] }

// Get finds a key's value.
func (t Table[K, V]) Get(k K) (V, bool) {
	if t.m == nil {
		var none V
		return none, false
	}
	found, has := t.m.Get(string(k))
	v, _ := found.(V)
	return v, has
}

// With is the table with one key set.
func (t Table[K, V]) With(k K, v V) Table[K, V] {
	m := t.m
	if m == nil {
		m = immutable.NewMap[string, any](hasher{})
	}
	return Table[K, V]{m.Set(string(k), v)}
}

// Without is the table less one key.
func (t Table[K, V]) Without(k K) Table[K, V] {
	if t.m == nil {
		return t
	}
	return Table[K, V]{t.m.Delete(string(k))}
}

// Len counts the keys.
func (t Table[K, V]) Len() int {
	if t.m == nil {
		return 0
	}
	return t.m.Len()
}

// All yields the keys and values, in no order that means anything: sort what
// you show.
func (t Table[K, V]) All() func(func(K, V) bool) {
	return func(yield func(K, V) bool) {
		if t.m == nil {
			return
		}
		for it := t.m.Iterator(); !it.Done(); {
			k, found, _ := it.Next()
			if v, _ := found.(V); !yield(K(k), v) {
				return
			}
		}
	}
}

// hasher is seeded per process: keys come from clients, who must not be able
// to make them collide.
type hasher struct{}

var seed = maphash.MakeSeed()

func (hasher) Hash(k string) uint32   { return uint32(maphash.String(seed, k)) } //nolint:gosec // half of the hash is a hash
func (hasher) Equal(a, b string) bool { return a == b }
