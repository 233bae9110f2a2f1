package registry_test

import (
	"testing"
	"time"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker/registry"
	"github.com/parley-asp/parley/test/natskit"
)

// An absence ends by itself, survives a new card, and begins when it is set at the
// earliest.
func TestAway(t *testing.T) {
	t.Parallel()
	clock := natskit.StoppedClock(time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC))
	r := open(t, natskit.StartServer(t), func(o *registry.Options) { o.Now = clock.Now })
	add(t, r, alice)
	add(t, r, anna)
	until := clock.Now().Add(48 * time.Hour)
	card, err := r.HumanAway(t.Context(), api.Caller{Agent: alice}, api.SetAway{To: anna, From: clock.Now().Add(-time.Hour), Until: until})
	natskit.Must(t, err)
	if away := card.Registry.Away; away == nil || away.To != anna || !away.From.Equal(clock.Now()) || !away.Until.Equal(until) {
		t.Fatalf("%+v", away)
	}
	add(t, r, alice)
	seen := func() *api.Away {
		card, err := r.AgentGet(t.Context(), api.Caller{Agent: anna}, api.AgentRef{Agent: alice})
		natskit.Must(t, err)
		return card.Registry.Away
	}
	if seen() == nil {
		t.Error("a new card ends the absence")
	}
	clock.Advance(48*time.Hour - time.Second)
	if seen() == nil {
		t.Error("it ends a second early")
	}
	clock.Advance(time.Second)
	if away := seen(); away != nil || !card.Registry.Away.At(until.Add(-time.Second)) || card.Registry.Away.At(until) {
		t.Errorf("it does not end: %+v", away)
	}
}
