package fault_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/test/testkit"
)

// clusterKilled kills servers of a cluster of three, one at a time: the leader of the transcripts and
// another one, in turn. TestLeadersKilled does so in every run of the tests.
func clusterKilled(t *testing.T, seed uint64, kills int) tally {
	random := rand.New(rand.NewPCG(seed, 0))
	c := testkit.StartCluster(t, onDisk, 3)
	keys := t.TempDir()
	for range 3 {
		startReplicated(t, keys, c.URL())
	}
	k := startTalk(t, c.URL(), 2, seed)
	for n := range kills {
		k.after(2)
		victim := c.Servers[random.IntN(len(c.Servers))]
		if n%2 == 0 {
			victim = c.Named(leader(t, c.URL(), api.SessionsStream))
		}
		victim.Kill()
		k.after(2)
		victim.Start()
		c.Healthy()
	}
	return k.check(t, c.URL(), kills, "kills of servers of a cluster")
}

// leader is the server that leads a stream.
func leader(t testing.TB, url, stream string) string {
	t.Helper()
	nc, err := nats.Connect(url)
	testkit.Must(t, err)
	defer nc.Close()
	js, err := jetstream.New(nc)
	testkit.Must(t, err)
	var leads string
	testkit.Eventually(t, stream+" has a leader", func() bool {
		one, cancel := context.WithTimeout(context.Background(), time.Second) // what is asked in an election may be lost
		defer cancel()
		s, err := js.Stream(one, stream)
		if err == nil {
			leads = s.CachedInfo().Cluster.Leader
		}
		return leads != ""
	})
	return leads
}
