package registry_test

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker/registry"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/test/natskit"
)

func enrol(t *testing.T, r *registry.Registry, a performatives.Agent) string {
	t.Helper()
	e, err := r.HumanEnrol(t.Context(), operator, api.EnrolHuman{Agent: a})
	natskit.Must(t, err)
	return e.Code
}

// A code is good for 15 minutes, for one key, and however it is typed.
func TestCode(t *testing.T) {
	t.Parallel()
	clock := natskit.StoppedClock(time.Date(2025, 6, 1, 12, 0, 0, 0, time.UTC))
	r := open(t, natskit.StartServer(t), func(o *registry.Options) { o.Now = clock.Now })
	add(t, r, alice)

	expired := enrol(t, r, alice)
	clock.Advance(15 * time.Minute)
	if _, err := r.Redeem(t.Context(), expired, newKey(t), "late"); natskit.CodeOf(err) != session.Unauthorized {
		t.Errorf("after 15 minutes: %v", err)
	}
	valid := enrol(t, r, alice)
	clock.Advance(15*time.Minute - time.Second)
	if who, err := r.Redeem(t.Context(), strings.ToLower(strings.ReplaceAll(valid, "-", " ")), newKey(t), "phone"); err != nil || who != alice {
		t.Errorf("before 15 minutes are over: %q %v", who, err)
	}
	if _, err := r.Redeem(t.Context(), valid, newKey(t), "again"); natskit.CodeOf(err) != session.Unauthorized {
		t.Errorf("a second time: %v", err)
	}
	for a, want := range map[performatives.Agent]session.Code{alpha: session.MalformedEnvelope, anna: session.UnknownAgent} {
		if _, err := r.HumanEnrol(t.Context(), operator, api.EnrolHuman{Agent: a}); natskit.CodeOf(err) != want {
			t.Errorf("a code for %s: %v, want %s", a, err, want)
		}
	}
}

// A code for a human who was removed enrols nobody under the same name.
func TestCodeOfRemoved(t *testing.T) {
	t.Parallel()
	clock := natskit.StoppedClock(time.Date(2025, 6, 1, 12, 0, 0, 0, time.UTC))
	r := open(t, natskit.StartServer(t), func(o *registry.Options) { o.Now = clock.Now })
	add(t, r, alice)
	code := enrol(t, r, alice)
	_, err := r.Remove(t.Context(), alice)
	natskit.Must(t, err)
	clock.Advance(time.Second)
	add(t, r, alice)
	if _, err := r.Redeem(t.Context(), code, newKey(t), "phone"); natskit.CodeOf(err) != session.Unauthorized {
		t.Errorf("a code of before the removal: %v", err)
	}
}

// Of those who use one code at the same time, one enrols.
func TestCodeRace(t *testing.T) {
	t.Parallel()
	s := natskit.StartServer(t)
	brokers := []*registry.Registry{open(t, s), open(t, s)}
	if _, ok := brokers[1].Principal(login(t, add(t, brokers[0], alice))); !ok {
		t.Fatal("the other broker does not know alice")
	}
	shared := enrol(t, brokers[0], alice)
	var enrolled atomic.Int32
	var running sync.WaitGroup
	for i := range 6 {
		key := newKey(t)
		running.Go(func() {
			_, err := brokers[i%2].Redeem(t.Context(), shared, key, "browser")
			switch natskit.CodeOf(err) {
			case "":
				natskit.Must(t, err)
				enrolled.Add(1)
			case session.Unauthorized:
			default:
				t.Error(err)
			}
		})
	}
	running.Wait()
	if n := enrolled.Load(); n != 1 {
		t.Errorf("%d keys are enrolled with one code", n)
	}
}

// A human has 16 devices at most. One that is taken away makes room.
func TestMaxDevices(t *testing.T) {
	t.Parallel()
	r := open(t, natskit.StartServer(t))
	add(t, r, alice)
	var last performatives.Key
	for range 16 {
		last = newKey(t)
		_, err := r.Redeem(t.Context(), enrol(t, r, alice), last, strings.Repeat("é", 100))
		natskit.Must(t, err)
	}
	if name := r.Devices(alice)[0].Name; name != strings.Repeat("é", 80) {
		t.Errorf("the name has %d characters", len([]rune(name)))
	}
	more := enrol(t, r, alice)
	if _, err := r.Redeem(t.Context(), more, newKey(t), "one more"); natskit.CodeOf(err) != session.TooLarge {
		t.Errorf("one more: %v", err)
	}
	if _, err := r.HumanUnenrol(t.Context(), api.Caller{Agent: anna}, api.DeviceRef{Agent: alice, Key: last}); natskit.CodeOf(err) != session.Unauthorized {
		t.Errorf("taken away by another human: %v", err)
	}
	if _, err := r.HumanUnenrol(t.Context(), api.Caller{Agent: alpha}, api.DeviceRef{Key: last}); natskit.CodeOf(err) != session.MalformedEnvelope {
		t.Errorf("taken away by an agent: %v", err)
	}
	_, err := r.HumanUnenrol(t.Context(), api.Caller{Agent: alice}, api.DeviceRef{Key: last})
	natskit.Must(t, err)
	if _, err := r.HumanUnenrol(t.Context(), operator, api.DeviceRef{Agent: alice, Key: last}); natskit.CodeOf(err) != session.UnknownAgent {
		t.Errorf("taken away twice: %v", err)
	}
	if _, err := r.Redeem(t.Context(), more, last, "again"); err != nil {
		t.Errorf("the code is still good: %v", err)
	}
}
