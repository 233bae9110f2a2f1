package server_test

import (
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/server"
	"github.com/parley-asp/parley/test/testkit"
)

// PROTOCOL.md §2: an external server maps a principal's submit to the partition of
// its session. A principal cannot address a partition itself, neither by publishing
// to it nor through a reply subject.
func TestRoutedToPartitionOwner(t *testing.T) {
	t.Parallel()
	for mode, options := range map[string]func(testing.TB) server.Options{"config": testkit.Configured, "operator": inOperatorMode} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			o := options(t)
			w := start(t, o)
			a := w.logsIn(alpha, w.registers(alpha))
			owner, err := server.ReadSeed(filepath.Join(o.Data, server.BrokerLogin))
			testkit.Must(t, err)
			inside, err := nats.Connect(w.URL, testkit.Bare(t, owner))
			testkit.Must(t, err)
			t.Cleanup(inside.Close)
			spy, err := inside.SubscribeSync("asp.*.>")
			testkit.Must(t, err)
			testkit.Must(t, inside.Flush())

			for range 20 {
				id := performatives.SessionID(uuid.Must(uuid.NewV7()).String())
				m, err := a.RequestWithContext(w.Ctx, api.Submit(alpha, id), []byte("{}"))
				testkit.Must(t, err)
				if code := m.Header.Get(api.ErrorCodeHeader); code != "400" {
					t.Fatalf("answered %q: %s", code, m.Data)
				}
				got := submits(t, inside, spy)
				if want := "asp.route." + strconv.Itoa(api.PartitionOf(id)) + ".agent." + alpha.Token() + ".submit." + string(id); len(got) != 1 || got[0] != want {
					t.Fatalf("the brokers received %q, not %s", got, want)
				}
			}

			id := uuid.Must(uuid.NewV7()).String()
			for _, of := range []performatives.Agent{alpha, beta} {
				partition := "asp.route.0.agent." + of.Token() + ".submit." + id
				l := w.logsIn(alpha, w.registers(alpha))
				testkit.Must(t, l.Publish(partition, []byte("{}")))
				if testkit.Allowed(t, l) {
					t.Errorf("%s may publish on %s", alpha, partition)
				}
				l = w.logsIn(alpha, w.registers(alpha))
				testkit.Must(t, l.PublishRequest(api.Call(alpha, api.SessionList.Name), partition, nil))
				if !testkit.Allowed(t, l) {
					t.Error("the call did not reach the broker")
				}
				w.asks(l, alpha) // calls are answered in order
			}
			if got := submits(t, inside, spy); len(got) > 0 {
				t.Errorf("the brokers received %q", got)
			}
		})
	}
}

// submits returns the subjects of the acts that brokers received.
func submits(t *testing.T, nc *nats.Conn, spy *nats.Subscription) (all []string) {
	t.Helper()
	testkit.Must(t, nc.Flush())
	for n, _, err := spy.Pending(); n > 0; n, _, err = spy.Pending() {
		testkit.Must(t, err)
		m, err := spy.NextMsg(testkit.Patience)
		testkit.Must(t, err)
		if strings.Contains(m.Subject, ".submit.") {
			all = append(all, m.Subject)
		}
	}
	return all
}
