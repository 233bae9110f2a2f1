// Package natsserver runs the nats-server program, of the version that go.mod names, in
// processes of their own, alone or as a cluster: for tests of what parley says to a server
// elsewhere, and of what it does when one is gone.
package natsserver

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// patience is how long a server has to say that it is ready.
const patience = time.Minute

// Build builds the program in a folder. It needs nothing but Go.
func Build(dir string) (program string, err error) {
	program = filepath.Join(dir, "nats-server")
	out, err := exec.Command("go", "build", "-o", program, "github.com/nats-io/nats-server/v2").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return program, nil
}

var listening = regexp.MustCompile(`Listening for client connections on (\S+)`)

// Start starts the program with a configuration, on a free port of this machine and in a
// folder of its own. When it returns, clients can connect to the address that it returns. The
// process ends with the test.
func Start(t testing.TB, program, config string) (address string) {
	t.Helper()
	s := &Server{t: t, program: program, dir: t.TempDir()}
	s.write("listen: \"127.0.0.1:-1\"\ninclude ./tested.conf\n", config)
	s.Start()
	return s.Address
}

// A Server is the program in a folder of its own, running or not.
type Server struct {
	Name    string
	Address string // host:port for clients

	t       testing.TB
	program string
	dir     string
	cmd     *exec.Cmd
	said    chan string // all of it, when the process has ended
}

// write writes the configuration: what is the server's own and what is tested.
func (s *Server) write(own, tested string) {
	s.t.Helper()
	for file, text := range map[string]string{"server.conf": own, "tested.conf": tested} {
		if err := os.WriteFile(filepath.Join(s.dir, file), []byte(text), 0o600); err != nil {
			s.t.Fatal(err)
		}
	}
}

// Start starts the process, again after Stop or Kill, and returns when clients can connect.
func (s *Server) Start() {
	s.t.Helper()
	address, err := s.run()
	if err != nil {
		s.t.Fatal(err)
	}
	s.Address = address
}

func (s *Server) run() (address string, err error) {
	cmd := exec.Command(s.program, "-c", "server.conf")
	cmd.Dir = s.dir
	log, err := cmd.StderrPipe()
	if err != nil {
		return "", err
	}
	if err := cmd.Start(); err != nil {
		return "", err
	}
	ready, ended := make(chan string, 1), make(chan string, 1)
	go func() {
		var said strings.Builder
		where := ""
		for lines := bufio.NewScanner(log); lines.Scan(); {
			if !strings.Contains(lines.Text(), "[INF]") {
				fmt.Fprintln(&said, lines.Text())
			}
			if found := listening.FindStringSubmatch(lines.Text()); found != nil {
				where = found[1]
			}
			if strings.HasSuffix(lines.Text(), "Server is ready") {
				ready <- where
			}
		}
		ended <- said.String()
	}()
	s.cmd, s.said = cmd, ended
	s.t.Cleanup(func() { s.end(syscall.SIGKILL) })
	select {
	case address = <-ready:
		return address, nil
	case said := <-ended:
		ended <- said
		return "", fmt.Errorf("nats-server ended:\n%s", said)
	case <-time.After(patience):
		return "", errors.New("nats-server is not ready")
	}
}

// Stop ends the process as an operator would.
func (s *Server) Stop() { s.end(syscall.SIGTERM) }

// Kill is kill -9.
func (s *Server) Kill() { s.end(syscall.SIGKILL) }

// Pause is SIGSTOP, Resume SIGCONT: the process hears nothing in between.
func (s *Server) Pause() error { return s.cmd.Process.Signal(syscall.SIGSTOP) }

// Resume lets a paused process go on.
func (s *Server) Resume() error { return s.cmd.Process.Signal(syscall.SIGCONT) }

// end signals the process and waits for its end; once is enough.
func (s *Server) end(signal os.Signal) {
	if s.cmd == nil {
		return
	}
	if err := s.cmd.Process.Signal(signal); err == nil {
		said := <-s.said
		if s.t.Failed() {
			s.t.Logf("nats-server %s said:\n%s", s.Name, said)
		}
	}
	s.cmd.Wait() //nolint:errcheck // a signal ends it
	s.cmd = nil
}
