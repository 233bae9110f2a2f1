// Package natsserver runs the nats-server program, of the version that go.mod names, in a
// process of its own: for tests of what parley says to a server elsewhere.
package natsserver

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

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
	dir := t.TempDir()
	for file, text := range map[string]string{
		"server.conf": "listen: \"127.0.0.1:-1\"\ninclude ./tested.conf\n", "tested.conf": config,
	} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(program, "-c", "server.conf")
	cmd.Dir = dir
	log, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ready, ended := make(chan string, 1), make(chan string, 1)
	go func() {
		var said strings.Builder
		where := ""
		for lines := bufio.NewScanner(log); lines.Scan(); fmt.Fprintln(&said, lines.Text()) {
			if found := listening.FindStringSubmatch(lines.Text()); found != nil {
				where = found[1]
			}
			if strings.HasSuffix(lines.Text(), "Server is ready") {
				ready <- where
			}
		}
		ended <- said.String()
	}()
	t.Cleanup(func() {
		if err := cmd.Process.Signal(syscall.SIGTERM); err == nil {
			<-ended
		}
		cmd.Wait() //nolint:errcheck // a signal ends it
	})
	select {
	case address = <-ready:
	case said := <-ended:
		ended <- said
		t.Fatalf("nats-server ended:\n%s", said)
	}
	return address
}
