package server_test

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/server"
	"github.com/parley-asp/parley/test/testkit"
)

// Removing a principal closes its connections and refuses its logins. Other principals stay connected.
func TestRemovedIsOut(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, o server.Options) {
		w := start(t, o)
		a, b := w.registers(alpha), w.registers(beta)
		one, two, other := w.logsIn(alpha, a), w.logsIn(alpha, a), w.logsIn(beta, b)
		_, err := w.OperatorClient().RemoveAgent(w.Ctx, alpha)
		testkit.Must(t, err)
		testkit.Cut(t, one)
		testkit.Cut(t, two)
		if _, err := w.dial(alpha, testkit.Login(t, a)); !errors.Is(err, nats.ErrAuthorization) {
			t.Errorf("logging in again: %v, want %v", err, nats.ErrAuthorization)
		}
		w.asks(other, beta)
	})
}

// Rotating a key closes the connections made with the old one.
func TestRotatedKeyIsOut(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, o server.Options) {
		w := start(t, o)
		before := w.registers(alpha)
		old := w.logsIn(alpha, before)
		after := w.registers(alpha)
		testkit.Cut(t, old)
		w.asks(w.logsIn(alpha, after), alpha)
		if _, err := w.dial(alpha, testkit.Login(t, before)); !errors.Is(err, nats.ErrAuthorization) {
			t.Errorf("logging in with the old key: %v, want %v", err, nats.ErrAuthorization)
		}
	})
}

// A login that was authorized just before its key was revoked is closed just after.
func TestConcurrentLoginIsOut(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, o server.Options) {
		gate := newGate()
		o.Log = gate.log(2) // the operator is first
		w := start(t, o)
		before := w.registers(alpha)
		late := make(chan *nats.Conn)
		go func() {
			l, err := w.dial(alpha, testkit.Login(t, before))
			if err != nil {
				t.Error(err)
			}
			late <- l
		}()
		<-gate.reached
		after := w.registers(alpha)
		close(gate.open)
		old, current := <-late, w.logsIn(alpha, after)
		testkit.Cut(t, old)
		w.asks(current, alpha)
		if current.IsClosed() {
			t.Error("the connection with the new key is closed too")
		}
	})
}

// Every broker learns of a key that another one revoked, and closes the logins
// that it authorized at the last moment.
func TestRemovedByAnotherBroker(t *testing.T) {
	t.Parallel()
	for mode, options := range map[string]func(testing.TB) server.Options{"config": testkit.Configured, "operator": inOperatorMode} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			removesByAnother(t, options(t))
		})
	}
}

func removesByAnother(t *testing.T, o server.Options) {
	t.Helper()
	one := start(t, o)
	start(t, o)
	for range 10 {
		key := one.registers(alpha)
		var l *nats.Conn
		testkit.Eventually(t, "both brokers know the key", func() (known bool) {
			var err error
			l, err = one.dial(alpha, testkit.Login(t, key))
			if errors.Is(err, nats.ErrAuthorization) {
				return false
			}
			testkit.Must(t, err)
			return true
		})
		_, err := one.OperatorClient().RemoveAgent(one.Ctx, alpha)
		testkit.Must(t, err)
		late, err := one.dial(alpha, testkit.Login(t, key))
		testkit.Cut(t, l)
		if err == nil {
			testkit.Cut(t, late)
		}
	}
}

// A broker without a heartbeat for 3 seconds is disconnected, so that a stopped or
// partitioned broker does not keep receiving acts for minutes. If it is alive it
// reconnects at once. Other brokers, which log in as the same user, stay connected.
func TestSuspectedBrokerIsDisconnected(t *testing.T) {
	t.Parallel()
	for mode, options := range map[string]func(testing.TB) server.Options{"config": testkit.Configured, "operator": inOperatorMode} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			o := options(t)
			w := start(t, o)
			owner, err := server.ReadSeed(filepath.Join(o.Data, server.BrokerLogin))
			testkit.Must(t, err)
			login := testkit.Bare(t, owner)
			if o.NATSCreds != "" {
				login = nats.UserCredentials(o.NATSCreds)
			}
			out, back := make(chan string, 9), make(chan string, 9)
			var suspected *nats.Conn
			for _, id := range []string{"another", "suspected"} {
				suspected, err = nats.Connect(w.URL, login, nats.Name("parley broker "+id), nats.ReconnectWait(time.Millisecond),
					nats.DisconnectErrHandler(func(*nats.Conn, error) { out <- id }), nats.ReconnectHandler(func(*nats.Conn) { back <- id }))
				testkit.Must(t, err)
				t.Cleanup(suspected.Close)
			}
			js, err := jetstream.New(suspected)
			testkit.Must(t, err)
			brokers, err := js.KeyValue(w.Ctx, api.BrokersBucket)
			testkit.Must(t, err)
			_, err = brokers.Put(w.Ctx, "suspected", []byte(`{"applied":0}`))
			testkit.Must(t, err)
			for _, events := range []chan string{out, back} {
				select {
				case id := <-events:
					if id != "suspected" {
						t.Errorf("the connection of %s was closed", id)
					}
				case <-w.Ctx.Done():
					t.Fatal("the suspected broker's connection is not closed")
				}
			}
			testkit.Must(t, suspected.FlushTimeout(testkit.Patience))
			if len(out) > 0 {
				t.Errorf("then that of %s was closed too", <-out)
			}
		})
	}
}
