package node_test

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sync"
	"syscall"
	"testing"

	"github.com/parley-asp/parley/node"
)

// natsServer builds the nats-server program of the version that go.mod names, once.
var natsServer = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "parley-nats-server")
	if err != nil {
		return "", err
	}
	program := filepath.Join(dir, "nats-server")
	out, err := exec.Command("go", "build", "-o", program, "github.com/nats-io/nats-server/v2").CombinedOutput()
	if err != nil {
		return "", errors.New(string(out))
	}
	return program, nil
})

func TestMain(m *testing.M) {
	status := m.Run()
	if program, err := natsServer(); err == nil {
		os.RemoveAll(filepath.Dir(program))
	}
	os.Exit(status)
}

var listening = regexp.MustCompile(`Listening for client connections on (\S+)`)

// external runs a nats-server process with what Config says for the data directory, and
// returns its address.
func external(t *testing.T, data string) (url string) {
	t.Helper()
	program, err := natsServer()
	must(t, err)
	text, err := node.Config(data)
	must(t, err)
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "parley.conf"), []byte(text), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "server.conf"), []byte("listen: \"127.0.0.1:-1\"\ninclude ./parley.conf\n"), 0o600))
	return run(t, dir, program, "-c", "server.conf")
}

// run starts a server process, which ends with the test, and returns when it is ready.
func run(t *testing.T, dir, program string, args ...string) (url string) {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Dir = dir
	log, err := cmd.StderrPipe()
	must(t, err)
	must(t, cmd.Start())
	read := make(chan struct{})
	t.Cleanup(func() {
		must(t, cmd.Process.Signal(syscall.SIGTERM))
		<-read
		cmd.Wait() //nolint:errcheck // a signal ended it
	})
	said, address := "", make(chan string)
	go func() {
		defer close(read)
		defer close(address)
		lines := bufio.NewScanner(log)
		for lines.Scan() {
			line := lines.Text()
			if found := listening.FindStringSubmatch(line); found != nil {
				url = "nats://" + found[1]
			}
			if regexp.MustCompile(`Server is ready`).MatchString(line) {
				address <- url
				continue
			}
			said += line + "\n"
		}
	}()
	url, ready := <-address
	if !ready {
		t.Fatal(said)
	}
	return url
}
