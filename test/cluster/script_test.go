package cluster_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-asp/parley/server"
	"github.com/parley-asp/parley/test/testkit"
)

// scripts/cluster is what OPERATIONS.md has people start: its servers carry three copies of every
// stream, lose one and take it back while acts go on, and are gone when they are told to.
func TestScript(t *testing.T) {
	t.Parallel()
	dir, port := filepath.Join(t.TempDir(), "cluster"), freeWindow(t)
	script := func(ctx context.Context, args ...string) string {
		t.Helper()
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		cmd := exec.CommandContext(ctx, "../../scripts/cluster", append(args, dir)...)
		cmd.Env = append(os.Environ(), fmt.Sprint("PORT=", port), fmt.Sprint("SHARDS=", max(1, testkit.Shards)))
		cmd.WaitDelay = time.Second // its servers do not keep it
		said, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("scripts/cluster %s: %v\n%s", strings.Join(args, " "), err, said)
		}
		return string(said)
	}
	runs := func(ctx context.Context, want ...bool) { // whether it has caught up is another question
		t.Helper()
		said := strings.Split(strings.TrimSpace(script(ctx, "status")), "\n")
		if len(said) != len(want) {
			t.Fatalf("status says %q", said)
		}
		for i, line := range said {
			state, is := strings.CutPrefix(line, fmt.Sprintf("n%d  127.0.0.1:%d  ", i+1, port+i))
			if !is || (state != "down") != want[i] {
				t.Errorf("status says %q, want it running: %t", line, want[i])
			}
		}
	}
	t.Cleanup(func() {
		script(context.Background(), "down")
		runs(context.Background(), false, false, false)
	})
	said := script(t.Context(), "up")
	w := &world{T: t, data: filepath.Join(dir, "parley"), Cluster: &testkit.Cluster{}}
	for n := range 3 {
		w.Servers = append(w.Servers, &testkit.ServerProcess{Address: fmt.Sprint("127.0.0.1:", port+n)})
	}
	if want := fmt.Sprintf("parley serve --data %s --nats %s --replicas 3 --shards %d\n", w.data, w.URL(), max(1, testkit.Shards)); !strings.Contains(said, want) {
		t.Errorf("up says\n%s\nwant in it %s", said, want)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	w.ctx = ctx
	w.broker()
	w.connects()
	m := w.opens(2)
	m.goesOn(5)
	script(ctx, "kill", "1")
	m.goesOn(5)
	runs(ctx, false, true, true)
	testkit.Eventually(t, "doctor misses n1", func() bool {
		return slices.ContainsFunc(server.Examine(ctx, server.Options{Data: w.data, NATS: w.Servers[1].URL()}), func(f server.Finding) bool {
			return f.Status == server.Warn && strings.HasPrefix(f.What, "n1 is away, which keeps ") && strings.HasSuffix(f.What, ": 2 of 3 NATS servers are there; the next failure stops all acts")
		})
	})
	script(ctx, "start", "1")
	runs(ctx, true, true, true)
	m.ends()
}

// freeWindow finds a port such that nothing listens on any that the script uses with it.
func freeWindow(t *testing.T) int {
	t.Helper()
	for range 1000 {
		port := 30_000 + rand.IntN(2_700) // below those that systems give out, above those of testkit
		free := true
		for _, offset := range []int{0, 1, 2, 10, 11, 12, 20, 21, 22} {
			l, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", port+offset))
			if free = free && err == nil; err == nil {
				l.Close()
			}
		}
		if free {
			return port
		}
	}
	t.Fatal("no free ports")
	return 0
}
