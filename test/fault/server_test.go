package fault_test

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
)

// A natsServer is a nats-server process that keeps its address and its store when
// it is started again.
type natsServer struct {
	t            testing.TB
	program, dir string
	url          string
	cmd          *exec.Cmd
}

// startServer starts one with a store in a directory.
func startServer(t testing.TB, dir string) *natsServer {
	t.Helper()
	program, err := programs.nats()
	if err != nil {
		t.Fatal(err)
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &natsServer{t: t, program: program, dir: dir, url: "nats://" + free.Addr().String()}
	config := fmt.Sprintf("listen: %q\njetstream { store_dir: %q }\n", free.Addr(), filepath.Join(dir, "store"))
	if err := os.WriteFile(filepath.Join(dir, "server.conf"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	free.Close()
	s.start()
	t.Cleanup(s.kill)
	return s
}

// start starts it, and returns when clients can connect.
func (s *natsServer) start() {
	s.t.Helper()
	var said bytes.Buffer
	s.cmd = exec.Command(s.program, "-c", filepath.Join(s.dir, "server.conf"))
	s.cmd.Stderr = &said
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	nc, err := nats.Connect(s.url, nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1), nats.ReconnectWait(5*time.Millisecond), nats.ReconnectJitter(0, 0))
	if err != nil {
		s.t.Fatal(err)
	}
	defer nc.Close()
	if err := nc.FlushTimeout(30 * time.Second); err != nil {
		s.kill()
		s.t.Fatalf("nats-server: %v\n%s", err, said.String())
	}
}

// kill is kill -9.
func (s *natsServer) kill() {
	if s.cmd.ProcessState != nil {
		return
	}
	if err := s.cmd.Process.Signal(syscall.SIGKILL); err != nil {
		s.t.Error(err)
	}
	s.cmd.Wait() //nolint:errcheck // it was killed
}
