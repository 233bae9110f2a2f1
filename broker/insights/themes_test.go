package insights

import (
	"maps"
	"slices"
	"testing"
)

// A theme is a phrase of two words that recurs, or a word that recurs beside it.
func TestThemes(t *testing.T) {
	t.Parallel()
	counts := map[string]int{}
	for _, reasoning := range []string{
		"The delivery date is too late. Budget: tight", "We cannot keep that delivery date", "Delivery, date and budget", "The budget",
		"the date of delivery",
	} {
		for _, theme := range slices.Compact(slices.Sorted(slices.Values(themes(reasoning)))) {
			counts[theme]++
		}
	}
	want := map[string]int{"delivery date": 2, "delivery": 4, "date": 4, "budget": 3, "late": 1, "keep": 1, "tight": 1}
	if got := recurring(counts); !maps.Equal(got, want) {
		t.Errorf("the themes are %v, want %v", got, want)
	}
	if got := recurring(map[string]int{"delivery date": 2, "delivery": 2, "date": 3, "date tight": 1}); !maps.Equal(got, map[string]int{"delivery date": 2, "date": 3}) {
		t.Errorf("words that a phrase says as often stay: %v", got)
	}
	if long := themes(string(slices.Repeat([]byte("budget delivery "), 1000))); len(long) > maxNames+1 {
		t.Errorf("%d themes are kept of one act", len(long))
	}
}
