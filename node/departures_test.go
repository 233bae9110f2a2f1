package node_test

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/parley-asp/parley/node"
)

// Who is removed is out at once, and stays out; nobody else notices.
func TestRemovedIsOut(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, o node.Options) {
		w := start(t, o)
		a, b := w.registers(alpha), w.registers(beta)
		one, two, other := w.logsIn(alpha, a), w.logsIn(alpha, a), w.logsIn(beta, b)
		_, err := w.operator.RemoveAgent(w.ctx, alpha)
		must(t, err)
		w.isOut(one)
		w.isOut(two)
		if _, err := w.dial(alpha, withKey(t, a)); !errors.Is(err, nats.ErrAuthorization) {
			t.Errorf("logging in again: %v, want %v", err, nats.ErrAuthorization)
		}
		w.asks(other, beta)
	})
}

// Of a principal that has a new key, what is connected with the old one is closed.
func TestRotatedKeyIsOut(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, o node.Options) {
		w := start(t, o)
		before := w.registers(alpha)
		old := w.logsIn(alpha, before)
		after := w.registers(alpha)
		w.isOut(old)
		w.asks(w.logsIn(alpha, after), alpha)
		if _, err := w.dial(alpha, withKey(t, before)); !errors.Is(err, nats.ErrAuthorization) {
			t.Errorf("logging in with the old key: %v, want %v", err, nats.ErrAuthorization)
		}
	})
}

// A login that was let in just before its key was taken away is closed just after.
func TestLoginUnderWayIsOut(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, o node.Options) {
		gate := newGate()
		o.Log = gate.log(2) // the operator is first
		w := start(t, o)
		before := w.registers(alpha)
		late := make(chan line)
		go func() {
			l, err := w.dial(alpha, withKey(t, before))
			if err != nil {
				t.Error(err)
			}
			late <- l
		}()
		<-gate.reached
		after := w.registers(alpha)
		close(gate.open)
		old, current := <-late, w.logsIn(alpha, after)
		w.isOut(old)
		w.asks(current, alpha)
		if current.IsClosed() {
			t.Error("the connection with the new key is closed too")
		}
	})
}

// Whichever broker took a key away, the others hear of it: what they let in at the last moment
// is closed too.
func TestRemovedByAnotherBroker(t *testing.T) {
	t.Parallel()
	t.Run("config", func(t *testing.T) {
		t.Parallel()
		data := t.TempDir()
		removesByAnother(t, node.Options{Data: data, NATS: external(t, data)})
	})
	t.Run("operator", func(t *testing.T) {
		t.Parallel()
		data := t.TempDir()
		removesByAnother(t, node.Options{Data: data, NATS: operator(t, data), NATSCreds: filepath.Join(data, node.CredsFile)})
	})
}

func removesByAnother(t *testing.T, o node.Options) {
	t.Helper()
	one := start(t, o)
	start(t, o)
	for range 10 {
		key := one.registers(alpha)
		l, err := one.dial(alpha, withKey(t, key))
		for errors.Is(err, nats.ErrAuthorization) && one.ctx.Err() == nil { // by the one that has not heard of it yet
			l, err = one.dial(alpha, withKey(t, key))
		}
		must(t, err)
		_, err = one.operator.RemoveAgent(one.ctx, alpha)
		must(t, err)
		late, err := one.dial(alpha, withKey(t, key))
		one.isOut(l)
		if err == nil {
			one.isOut(late)
		}
	}
}
