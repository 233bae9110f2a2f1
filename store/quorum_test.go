package store

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

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
		"one copy":                   {&jetstream.ClusterInfo{Leader: "n1"}, true},
		"all there":                  {&jetstream.ClusterInfo{Leader: "n1", Replicas: []*jetstream.PeerInfo{peer(1), peer(time.Second)}}, true},
		"one silent":                 {&jetstream.ClusterInfo{Leader: "n1", Replicas: []*jetstream.PeerInfo{peer(time.Minute), peer(time.Second)}}, true},
		"both silent":                {&jetstream.ClusterInfo{Leader: "n1", Replicas: []*jetstream.PeerInfo{peer(time.Minute), peer(silentAfter)}}, false},
		"one silent, one never seen": {&jetstream.ClusterInfo{Leader: "n1", Replicas: []*jetstream.PeerInfo{peer(time.Minute), peer(0)}}, false},
		"one silent, one offline":    {&jetstream.ClusterInfo{Leader: "n1", Replicas: []*jetstream.PeerInfo{peer(time.Minute), offline}}, false},
		"one of two":                 {&jetstream.ClusterInfo{Leader: "n1", Replicas: []*jetstream.PeerInfo{peer(time.Minute)}}, false},
	} {
		if err := quorum(&jetstream.StreamInfo{Cluster: c.cluster}); (err == nil) != c.writable {
			t.Errorf("%s: %v, want it writable: %t", name, err, c.writable)
		}
	}
}
