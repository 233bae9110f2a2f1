package embedded

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// Every block that may not be on the disk is fsynced, and not only the newest.
func TestEachBlockIsSynced(t *testing.T) {
	t.Parallel()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	f := &blocks{pattern: filepath.Join(t.TempDir(), "*.blk")}
	write := func(number int, ago time.Duration) {
		path := filepath.Join(filepath.Dir(f.pattern), strconv.Itoa(number)+".blk")
		must(os.WriteFile(path, nil, 0o600))
		must(os.Chtimes(path, time.Time{}, time.Now().Add(-ago)))
	}
	next := func(want int) {
		t.Helper()
		if got, err := f.newer(true); err != nil || got != want {
			t.Errorf("after block %d comes %d, %v; want %d", f.number, got, err, want)
		}
	}
	next(0)
	write(1, time.Hour)
	write(2, time.Hour)
	next(2) // all were written long ago
	write(3, time.Minute)
	write(10, 0)
	next(3)
	must(f.sync(0))
	next(0)
	write(11, time.Hour) // by a clock that was set back
	write(12, 0)
	next(11)
	must(os.Remove(f.block(11)))
	must(f.sync(0))
	if f.number != 12 {
		t.Errorf("the last block is %d", f.number)
	}
}
