package server

import (
	"os"
	"path/filepath"

	"github.com/parley-asp/parley/api"
)

// storeWritable looks for directories of the embedded store that the broker's user, who has its key, cannot write, as
// when root has restored it.
func (e *examiner) storeWritable(dir string) {
	broker, known := 0, false
	if info, err := os.Stat(filepath.Join(dir, BrokerSeed)); err == nil {
		broker, _, known = ownerOf(info)
	}
	streams, _ := filepath.Glob(filepath.Join(dir, "nats", "jetstream", "*", "streams", "*")) // the pattern is good
	for _, stream := range streams {
		info, err := os.Stat(stream)
		if err != nil || !info.IsDir() {
			continue
		}
		user, _, _ := ownerOf(info)
		if info.Mode()&0o222 == 0 || known && broker > 0 && user == 0 && info.Mode()&0o022 == 0 {
			e.add(Fail, "data", "chown -R it, and chmod -R u+w it, for the broker's user.", "the broker's user cannot write %s", stream)
			return
		}
	}
}

// shards counts the streams with transcripts of a store that no broker has open.
func (e *examiner) shards(dir string) {
	names, _ := filepath.Glob(filepath.Join(dir, "nats", "jetstream", "*", "streams", api.SessionsStream+"*")) // the pattern is good
	is := 0
	for _, name := range names {
		if api.Unsharded(filepath.Base(name)) == api.SessionsStream {
			is++
		}
	}
	e.shardsOf(is)
}
