package server

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// What root writes in the data directory of another user belongs to that user.
func TestRotationKeepsOwner(t *testing.T) {
	t.Parallel()
	user, group := 12345, 12345
	if os.Geteuid() != 0 { // only root may give files away
		user, group = os.Geteuid(), os.Getegid()
	}
	dir := t.TempDir()
	_, err := openKeys(dir)
	must(t, err)
	must(t, os.Chown(dir, user, group))
	files, err := os.ReadDir(dir)
	must(t, err)
	for _, f := range files {
		must(t, os.Chown(filepath.Join(dir, f.Name()), user, group))
	}
	for range 2 { // with new files, and with such that replace others
		_, err = RotateBrokerKey(dir, time.Now())
		must(t, err)
		files, err = os.ReadDir(dir)
		must(t, err)
		for _, f := range files {
			info, err := f.Info()
			must(t, err)
			if has, of, known := ownerOf(info); known && (has != user || of != group) {
				t.Errorf("%s has the owner %d:%d", f.Name(), has, of)
			}
		}
	}
}
