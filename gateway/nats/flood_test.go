package natsgateway

import (
	"testing"
	"time"

	"github.com/parley-asp/parley/performatives"
)

// What is useless is counted by the second and the principal, and who sends too much may come back.
func TestFloods(t *testing.T) {
	t.Parallel()
	const many, few = performatives.Agent("agent://acme.com/many"), performatives.Agent("agent://acme.com/few")
	const most = 100
	var f floods
	now := time.Now()
	for second := range 3 {
		for range most - 1 {
			if f.add(many, 1, most, now) {
				t.Fatalf("second %d: it floods by less than too many", second)
			}
		}
		if now = now.Add(time.Second); f.has(many, now) {
			t.Fatalf("second %d: it floods", second)
		}
	}
	floods := 0
	for range 2 * most {
		if f.add(many, 1, most, now) {
			floods++
			f.keepAway(many, now)
		}
	}
	if floods != 1 || !f.has(many, now.Add(awayFor-1)) || f.has(many, now.Add(awayFor)) || f.has(few, now) {
		t.Errorf("of twice too many it floods %d times; %v", floods, f.away)
	}
}
