package persist

import (
	"fmt"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// A table says what a map of the language says, and what was said of an older
// one stays true.
func TestTable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table, oracle := Table[string, int]{}, map[string]int{}
		var olds []Table[string, int]
		var oracles []map[string]int
		key := rapid.Custom(func(t *rapid.T) string { return fmt.Sprint(rapid.IntRange(0, 60).Draw(t, "number")) })
		t.Repeat(map[string]func(*rapid.T){
			"with": func(t *rapid.T) {
				k, v := key.Draw(t, "key"), rapid.Int().Draw(t, "value")
				table, oracle[k] = table.With(k, v), v
			},
			"without": func(t *rapid.T) {
				k := key.Draw(t, "key")
				table = table.Without(k)
				delete(oracle, k)
			},
			"keep": func(*rapid.T) {
				olds, oracles = append(olds, table), append(oracles, maps.Clone(oracle))
			},
			"": func(t *rapid.T) {
				same(t, table, oracle)
				for i, old := range olds {
					same(t, old, oracles[i])
				}
			},
		})
	})
}

func same(t *rapid.T, table Table[string, int], oracle map[string]int) {
	if diff := cmp.Diff(oracle, maps.Collect(table.All())); diff != "" || table.Len() != len(oracle) {
		t.Fatalf("%d keys, not %d: (-want +got)\n%s", table.Len(), len(oracle), diff)
	}
	for i := range 61 {
		k := fmt.Sprint(i)
		want, has := oracle[k]
		if got, found := table.Get(k); got != want || found != has {
			t.Fatalf("%s is %d, %t; not %d, %t", k, got, found, want, has)
		}
	}
}

// Keys of one hash are told apart still, also where no bit of it is left.
func TestCollisions(t *testing.T) {
	const h = 5
	var top *node[string, int]
	for i := range 40 {
		top, _ = top.with(h, &node[string, int]{hash: h, key: fmt.Sprint(i), value: i})
	}
	for i := 0; i < 40; i += 2 {
		var removed int
		if top, removed = top.without(h, h, fmt.Sprint(i)); removed != 1 {
			t.Errorf("%d was not there", i)
		}
	}
	left := maps.Collect(Table[string, int]{top, 20}.All())
	for i := 1; i < 40; i += 2 {
		if left[fmt.Sprint(i)] != i {
			t.Errorf("%d is not there: %v", i, left)
		}
	}
	if len(left) != 20 {
		t.Errorf("left is %v", left)
	}
}

// Whoever stops early is not called again.
func TestAllStops(t *testing.T) {
	var table Table[string, int]
	for i := range 100 {
		table = table.With(fmt.Sprint(i), i)
	}
	seen := 0
	for range table.All() {
		if seen++; seen == 3 {
			break
		}
	}
	if seen != 3 {
		t.Errorf("saw %d", seen)
	}
}
