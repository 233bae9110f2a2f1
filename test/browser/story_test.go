//go:build browser

package browser

import (
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/parley-asp/parley/test/testbroker"
)

func unmarshal(data []byte, into any) error { return json.Unmarshal(data, into) }

// TestStory is the seed's escalation pattern, with a human in a browser.
func TestStory(t *testing.T) {
	w := newWorld(t, testbroker.Options{})
	buyer, _, id := w.asks("Enterprise plan", "high", plan)
	b := w.enters(alice, "items/"+id)
	b.sees("#item")
	b.reads(".title", "Enterprise plan")
	b.reads(".stake", "USD 15,000")
	b.clicks("[data-open=approve]")
	b.types("#approve-comment", "Approved at $15k")
	b.clicks("#approve button[type=submit]")
	b.reads("#item .notice", "approved by alice")
	if got := w.state(buyer); got != "CONVERSING" {
		t.Errorf("the session is %s after the decision", got)
	}
}
