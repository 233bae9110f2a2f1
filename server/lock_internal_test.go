package server

import (
	"os"
	"path/filepath"
	"testing"
)

// A data directory that takes no writes makes the broker not ready.
func TestWritable(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	for flags, want := range map[int]bool{os.O_RDWR | os.O_CREATE: true, os.O_RDONLY | os.O_CREATE: false} {
		file, err := os.OpenFile(path, flags, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		if err := (&Server{lock: file}).writable(); (err == nil) != want {
			t.Errorf("opened with flags %#x: %v", flags, err)
		}
		if err := file.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
