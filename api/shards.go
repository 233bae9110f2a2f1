package api

import (
	"strconv"
	"strings"

	"github.com/parley-asp/parley/performatives"
)

// MaxShards is how many streams there can be instead of one.
const MaxShards = 16

// ShardsStream is there if there are several. It says how many, and has the subjects of a store without shards, so that
// a broker that knows of none cannot make its own streams beside them.
const ShardsStream = "ASP_SHARDS"

// ShardedStreams are those that a store may have several of. The first has the plain name.
var ShardedStreams = []string{SessionsStream, InboxStream, IndexStream}

// AllStored is every subject that a sharded stream stores.
const AllStored = "asp.>"

// ShardName is the name of one of the streams.
func ShardName(stream string, n int) string {
	if n == 0 {
		return stream
	}
	return stream + "_" + strconv.Itoa(n)
}

// Unsharded is the stream of which a stream is a shard, or itself.
func Unsharded(name string) string {
	for _, stream := range ShardedStreams {
		if n, err := strconv.Atoi(strings.TrimPrefix(name, stream+"_")); err == nil && name == ShardName(stream, n) {
			return stream
		}
	}
	return name
}

// ToShard is where a message is sent to get to a shard, which stores it on its own subject.
func ToShard(n int, subject string) string {
	return "asp.shard." + strconv.Itoa(n) + strings.TrimPrefix(subject, "asp")
}

// ShardOf is the shard of a transcript, an inbox or a session row. A subject with wildcards may be of all.
func ShardOf(subject string, shards int) (n int, one bool) {
	if shards == 1 {
		return 0, true
	}
	t := strings.Split(subject, ".")
	key := ""
	switch {
	case len(t) == 5 && t[1] == "agent" && t[3] == "inbox":
		key = t[2]
	case len(t) == 3 && (t[1] == "session" || t[1] == "index"), len(t) == 4 && t[1] == "index":
		key = t[len(t)-1]
	}
	if key == "" || key == "*" {
		return 0, false
	}
	return PartitionOf(key) % shards, true
}

// InboxStreamOf is the stream of a principal's inbox.
func InboxStreamOf(a performatives.Agent, shards int) string {
	n, _ := ShardOf(InboxOf(a), shards)
	return ShardName(InboxStream, n)
}
