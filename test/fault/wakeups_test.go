package fault_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/test/fault"
)

// TestKilledDuringAWakeup kills the broker while it waits for the answer to a call: after the
// restart it calls again with the same id.
func TestKilledDuringAWakeup(t *testing.T) {
	t.Parallel()
	calls, killed := make(chan string, 10), make(chan struct{})
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls <- r.Header.Get("Webhook-Id")
		select {
		case <-killed:
		case <-r.Context().Done(): // the broker is gone
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(receiver.Close)
	data := t.TempDir()
	c := startNode(t, data, "127.0.0.1:-1")
	s := fault.NewWitness(t, c.URL).Open(parties...)
	var set api.Wakeup
	ask(t, c.URL, api.WakeupSet.Name, fmt.Sprintf(`{"url":%q}`, receiver.URL), &set)
	s.Say(alpha, "PROPOSE", `{"proposalId":"p","type":"service-agreement","subject":"s","terms":{"price":5}}`)
	first := <-calls
	c.Kill()
	close(killed)
	again(t, data, c)
	if second := <-calls; second != first || first == "" {
		t.Errorf("after the kill the call is %s, it was %s", second, first)
	}
	s.Say(alpha, "WITHDRAW", `{"referenceId":"p"}`)
	if next := <-calls; next == first {
		t.Error("an answered call comes again")
	}
}
