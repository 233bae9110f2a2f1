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
