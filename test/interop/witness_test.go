package interop

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A witness is PyPI's aics-witness.
type witness struct {
	*testing.T
	config, key, address string
}

func newWitness(t *testing.T, name string) *witness {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listener.Close() //nolint:errcheck // its port is free
	w := &witness{T: t, config: filepath.Join(t.TempDir(), "witness.json"), address: listener.Addr().String()}
	said := strings.Fields(w.run("init", "--name", name, "--listen", w.address))
	w.key = said[len(said)-1]
	return w
}

func (w *witness) command(args ...string) *exec.Cmd {
	args = append([]string{"-m", "aics_witness", args[0], "--config", w.config}, args[1:]...)
	return exec.CommandContext(w.Context(), *python, args...)
}

func (w *witness) run(args ...string) string {
	w.Helper()
	out, err := w.command(args...).Output()
	if err != nil {
		w.Fatalf("aics-witness %v: %v: %s", args, err, out)
	}
	return string(out)
}

func (w *witness) serve() {
	w.Helper()
	running := w.command("serve", "--log-level", "ERROR")
	running.Cancel = func() error { return running.Process.Signal(os.Interrupt) }
	if err := running.Start(); err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { running.Wait() }) //nolint:errcheck // it was interrupted
}

// TestWitness: witnesses of others cosign a log, which is published once they have.
func TestWitness(t *testing.T) {
	w1, w2, other := newWitness(t, "w1.example/a"), newWitness(t, "w2.example/b"), newWitness(t, "other.example/c")
	b := serve(t, "--witness", w1.key+" http://"+w1.address, "--witness", w2.key+" http://"+w2.address)
	key := b.parley("log", "key")
	log := func(args ...string) (string, error) {
		return b.try(append([]string{"log", args[0], "--log-url", b.site + "/log", "--log-key", key}, args[1:]...)...)
	}
	if out, err := log("verify"); err == nil {
		t.Errorf("a log is published that no witness has cosigned: %s", out)
	}
	origin, _, _ := strings.Cut(key, "+")
	for _, w := range []*witness{w1, w2} {
		w.run("add-log", "--origin", origin, "--vkey", key)
		w.serve()
	}
	state := filepath.Join(t.TempDir(), "newest")
	for n, leaves := range []string{" 2 leaves", " 4 leaves", " 6 leaves"} {
		b.deal(n)
		out, err := log("verify", "--witness-key", w1.key, "--witness-key", w2.key)
		for !strings.Contains(out, leaves) && t.Context().Err() == nil {
			out, err = log("verify", "--witness-key", w1.key, "--witness-key", w2.key)
		}
		if err != nil {
			t.Errorf("%v: %s", err, out)
		}
		if out, err := log("monitor", "--once", "--state", state, "--witness-key", w2.key); err != nil || strings.Count(out, "\n") != 1 {
			t.Errorf("%v: %s", err, out)
		}
	}
	if out, err := log("verify", "--witness-key", other.key); err == nil || !strings.Contains(out, "has not cosigned") {
		t.Errorf("a witness that was not asked has cosigned: %v: %s", err, out)
	}
	for _, w := range []*witness{w1, w2} {
		if out := w.run("status"); !strings.Contains(out, "6") {
			t.Errorf("the witness says: %s", out)
		}
	}
}
