package cluster_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/test/testkit"
)

// GET /healthz says ok only while an act could be accepted. With two of three servers paused it stops
// saying so until they go on.
func TestHealth(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := testkit.StartBrokerProcess(w, testkit.ProcessOptions{Data: w.data, NATS: w.URL(), HTTP: "127.0.0.1:0", Replicas: 3})
	w.connects()
	healthy := func() bool {
		a, err := (&http.Client{Timeout: 10 * time.Second}).Get("http://" + b.HTTPAddr + "/healthz")
		testkit.Must(w, err)
		testkit.Must(w, a.Body.Close())
		return a.StatusCode == http.StatusOK
	}
	buyer := w.joins(alpha)
	w.joins(beta)
	accepted := func() {
		t.Helper()
		_, err := buyer.Invite(w.ctx, client.Invitation{With: []performatives.Agent{beta}, Purpose: "health"})
		testkit.Must(w, err)
	}
	testkit.Eventually(w, "the broker is healthy", healthy)
	accepted()
	leader := w.leader(api.SessionsStream)
	for _, other := range w.Servers {
		if other.Name != leader {
			other.Pause()
		}
	}
	cut := time.Now()
	testkit.Eventually(w, "the broker is not healthy", func() bool { return !healthy() })
	t.Logf("the broker says that it accepts nothing after %s", time.Since(cut))
	for range 5 {
		if healthy() {
			t.Error("the broker says that it is healthy again, and two of three servers are paused")
		}
	}
	for _, other := range w.Servers {
		if other.Name != leader {
			other.Resume()
		}
	}
	testkit.Eventually(w, "the broker is healthy again", healthy)
	accepted()
}
