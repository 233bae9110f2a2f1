package server

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/mod/sumdb/note"
)

// CheckpointFile in a data directory is the newest checkpoint of the public log. It is
// outside the store, so a store that is restored cannot contradict it unnoticed.
const CheckpointFile = "log-checkpoint"

const replaceCheckpoint = "Replace it by the newest checkpoint that was published, such as that of 'parley log monitor'."

type checkpointFile struct{ path string }

func (f checkpointFile) Load() (string, error) {
	text, err := os.ReadFile(f.path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(text) == 0 {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	_, damaged := note.Open(text, nil)
	if _, unsigned := errors.AsType[*note.UnverifiedNoteError](damaged); !unsigned {
		err = fmt.Errorf("%s is damaged (%w). %s", f.path, damaged, replaceCheckpoint)
	}
	return string(text), err
}

// Save replaces the file, so that a crash leaves the old one or the new one.
func (f checkpointFile) Save(checkpoint string) (err error) {
	next, err := os.CreateTemp(filepath.Dir(f.path), CheckpointFile+"-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.Remove(next.Name()) //nolint:errcheck // the error is reported
		}
	}()
	_, err = next.WriteString(checkpoint)
	err = errors.Join(err, next.Sync(), next.Close())
	if err != nil {
		return err
	}
	return os.Rename(next.Name(), f.path)
}
