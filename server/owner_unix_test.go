//go:build unix

package server

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// What root writes in the data directory of another user belongs to that user.
func TestRotationKeepsOwner(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root may give files away")
	}
	const user = 12345
	dir := t.TempDir()
	_, err := openKeys(dir)
	must(t, err)
	must(t, os.Chown(dir, user, user))
	files, err := os.ReadDir(dir)
	must(t, err)
	for _, f := range files {
		must(t, os.Chown(filepath.Join(dir, f.Name()), user, user))
	}
	for range 2 { // with new files, and with such that replace others
		_, err = RotateBrokerKey(dir, time.Now())
		must(t, err)
		files, err = os.ReadDir(dir)
		must(t, err)
		for _, f := range files {
			info, err := f.Info()
			must(t, err)
			if of, ok := info.Sys().(*syscall.Stat_t); !ok || of.Uid != user || of.Gid != user {
				t.Errorf("%s has another owner: %+v", f.Name(), of)
			}
		}
	}
}
