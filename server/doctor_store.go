package server

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/parley-asp/parley/api"
)

// storeWritable looks for directories of the embedded store that the broker's user, who has its key, cannot write, as
// when root has restored it.
func (e *examiner) storeWritable(dir string) {
	broker, known := 0, false
	if info, err := os.Stat(filepath.Join(dir, BrokerSeed)); err == nil {
		broker, _, known = ownerOf(info)
	}
	root := filepath.Join(dir, "nats")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		user, _, _ := ownerOf(info)
		if info.Mode()&0o200 == 0 || known && broker > 0 && user != broker {
			e.add(Fail, "data", "chown -R it, and chmod -R u+w it, for the broker's user.", "the broker's user cannot write %s", path)
			return fs.SkipAll
		}
		if below, _ := filepath.Rel(root, path); strings.Count(below, string(filepath.Separator)) >= 3 { // a stream
			return fs.SkipDir
		}
		return nil
	})
	if err != nil {
		e.add(Fail, "data", "Let the broker's user read and write it.", "%v", err)
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
