package server_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/parley-asp/parley/server"
	"github.com/parley-asp/parley/test/testkit"
)

// One of those who write a key file at once wins, nobody sees a part of it, and nothing else is left.
func TestWriteSecret(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	path := filepath.Join(dir, "some.nk")
	var writing sync.WaitGroup
	won := make(chan string, 8)
	for _, letter := range strings.Split("abcdefgh", "") {
		writing.Go(func() {
			text := strings.Repeat(letter, 60)
			err := server.WriteSecret(path, []byte(text))
			if err == nil {
				won <- text
			} else if !strings.Contains(err.Error(), "never overwrites a key") {
				t.Error(err)
			}
			if seen, err := os.ReadFile(path); err != nil || len(seen) != len(text) {
				t.Errorf("it has %d bytes: %v", len(seen), err)
			}
		})
	}
	writing.Wait()
	close(won)
	text, err := os.ReadFile(path)
	testkit.Must(t, err)
	if string(text) != <-won || len(won) > 0 {
		t.Errorf("%s was written over", text)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("its mode is %v: %v", info.Mode(), err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("%v is left: %v", left, err)
	}
}
