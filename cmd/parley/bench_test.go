package main

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/parley-asp/parley/test/testkit"
)

// TestBenchInterrupted: a bench whose terminal or reader goes away stops its servers and removes their stores.
func TestBenchInterrupted(t *testing.T) {
	t.Parallel()
	for name, interrupt := range map[string]func(bench *os.Process, progress io.Closer) error{
		"terminal": func(bench *os.Process, _ io.Closer) error { return bench.Signal(syscall.SIGHUP) },
		"reader":   func(_ *os.Process, progress io.Closer) error { return progress.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
			defer cancel()
			dir := t.TempDir()
			bench := exec.CommandContext(ctx, "parley", "bench", "--dir", dir, "--pairs", "1", "--sync", "1m", "--seconds", ".3", "--sessions", "1,2,3")
			progress, err := bench.StderrPipe()
			testkit.Must(t, err)
			testkit.Must(t, bench.Start())
			line, err := bufio.NewReader(progress).ReadString('\n')
			testkit.Must(t, err)
			testkit.Must(t, interrupt(bench.Process, progress))
			if err := bench.Wait(); err == nil {
				t.Errorf("it went on after %q", line)
			}
			left, err := os.ReadDir(dir)
			testkit.Must(t, err)
			if len(left) > 0 {
				t.Errorf("it leaves %v", left)
			}
		})
	}
}
