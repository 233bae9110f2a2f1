package store

import (
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Of five servers two may fail.
func TestMissing(t *testing.T) {
	t.Parallel()
	for away, want := range map[string]string{
		"": "", "n5": "4 of 5 NATS servers are there", "n4 n5": "3 of 5 NATS servers are there; the next failure stops all acts",
		"n3 n4 n5": "2 of 5 NATS servers are there: too few for any act",
	} {
		names := strings.Fields(away)
		if got := (Servers{There: 5 - len(names), Away: names}).Missing(); got != want {
			t.Errorf("without %q: %q, want %q", away, got, want)
		}
	}
}

// A stream stores something while its leader reaches a majority.
func TestQuorum(t *testing.T) {
	t.Parallel()
	peer := func(active time.Duration) *jetstream.PeerInfo { return &jetstream.PeerInfo{Active: active} }
	offline := &jetstream.PeerInfo{Active: time.Second, Offline: true}
	for name, c := range map[string]struct {
		cluster  *jetstream.ClusterInfo
		writable bool
	}{
		"in no cluster":              {nil, true},
		"without a leader":           {&jetstream.ClusterInfo{}, false},
		"of three, none leads":       {&jetstream.ClusterInfo{Replicas: []*jetstream.PeerInfo{peer(1), peer(time.Second), peer(time.Minute)}}, false},
		"one copy":                   {&jetstream.ClusterInfo{Leader: "n1"}, true},
		"all there":                  {&jetstream.ClusterInfo{Leader: "n1", Replicas: []*jetstream.PeerInfo{peer(1), peer(time.Second)}}, true},
		"one silent":                 {&jetstream.ClusterInfo{Leader: "n1", Replicas: []*jetstream.PeerInfo{peer(time.Minute), peer(time.Second)}}, true},
		"both silent":                {&jetstream.ClusterInfo{Leader: "n1", Replicas: []*jetstream.PeerInfo{peer(time.Minute), peer(silentAfter)}}, false},
		"one silent, one never seen": {&jetstream.ClusterInfo{Leader: "n1", Replicas: []*jetstream.PeerInfo{peer(time.Minute), peer(0)}}, false},
		"one silent, one offline":    {&jetstream.ClusterInfo{Leader: "n1", Replicas: []*jetstream.PeerInfo{peer(time.Minute), offline}}, false},
		"one of two":                 {&jetstream.ClusterInfo{Leader: "n1", Replicas: []*jetstream.PeerInfo{peer(time.Minute)}}, false},
	} {
		are := serversOf(&jetstream.StreamInfo{Cluster: c.cluster})
		if all := are.There + len(are.Away); (are.Missing() != "") != (are.There < all) {
			t.Errorf("%s: of %d of %d servers it says %q", name, are.There, all, are.Missing())
		}
		if err := quorum(&jetstream.StreamInfo{Cluster: c.cluster}); (err == nil) != c.writable {
			t.Errorf("%s: %v, want it writable: %t", name, err, c.writable)
		}
	}
}
