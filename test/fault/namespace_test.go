//go:build long

package fault_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/parley-asp/parley/server"
	"github.com/parley-asp/parley/test/testkit"
)

// inside is set where a test runs in namespaces of its own.
const inside = "PARLEY_FAULT_INSIDE"

// alone runs a test again in user, mount and network namespaces of its own, in
// which it is root: what it mounts and connects there is gone with it. It tells
// whether this is that run.
func alone(t *testing.T) bool {
	t.Helper()
	if os.Getenv(inside) != "" {
		run(t, "ip", "link", "set", "lo", "up")
		return true
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=20m", fmt.Sprint("-test.short=", testing.Short()))
	cmd.Env = append(os.Environ(), inside+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS | syscall.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
	}
	out, err := cmd.CombinedOutput()
	if t.Logf("in namespaces of its own:\n%s", out); err != nil {
		if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) {
			t.Fatalf("this test needs user, mount and network namespaces: %v", err)
		}
		t.Fatal(err)
	}
	return false
}

// run is a command of the system's.
func run(t testing.TB, command ...string) {
	t.Helper()
	if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(command, " "), err, out)
	}
}

// TestFullDisk fills the disk under a broker. From then on nothing is accepted;
// when there is room again, and the broker was started again, all that it
// promised is there and all go on. The public log never forks, and has one leaf for each
// agreement and each ended session. Nor does it start meanwhile on a read-only disk.
func TestFullDisk(t *testing.T) {
	if !alone(t) {
		return
	}
	disk := t.TempDir()
	run(t, "mount", "-t", "tmpfs", "-o", "size=48m", "tmpfs", disk)
	t.Cleanup(func() { run(t, "umount", "--lazy", disk) })
	o := testkit.ProcessOptions{Data: filepath.Join(disk, "data"), HTTP: "127.0.0.1:0", Monitor: testkit.FreeAddress(t), Dev: true}
	c := testkit.StartBrokerProcess(t, o)
	o.Listen = strings.TrimPrefix(c.URL, "nats://")
	k, w := startTalk(t, c.URL, 2, 6), newWatch(t)
	status := func(address string) int {
		t.Helper()
		health, err := http.Get("http://" + address + "/healthz")
		testkit.Must(t, err)
		testkit.Must(t, health.Body.Close())
		return health.StatusCode
	}
	times := 3
	if testing.Short() {
		times = 1
	}
	for range times {
		k.after(3)
		w.grows(c)
		ballast := fill(t, filepath.Join(disk, "ballast"))
		k.standsStill()
		testkit.Eventually(t, "the broker says that it stores nothing", func() bool { return status(c.HTTPAddr) == http.StatusServiceUnavailable })
		if got := status(o.Monitor); got != http.StatusOK {
			t.Errorf("an orchestrator is told to restart it while the disk is full: %d", got)
		}
		testkit.Must(t, os.Remove(ballast))
		testkit.Eventually(t, "an orchestrator is told to restart it", func() bool { return status(o.Monitor) == http.StatusServiceUnavailable })
		c.Kill()
		run(t, "mount", "-o", "remount,ro", disk)
		if _, err := server.Start(t.Context(), server.Options{Data: o.Data, Listen: "127.0.0.1:-1", Dev: true}); !errors.Is(err, syscall.EROFS) {
			t.Errorf("on a read-only disk it starts, or says: %v", err)
		}
		run(t, "mount", "-o", "remount,rw", disk)
		c = testkit.StartBrokerProcess(t, o)
		w.grows(c)
	}
	k.after(3)
	k.check(t, c.URL, times, "times that the disk was full")
	w.complete(c, len(k.sessions))
	w.grows(c)
}

// fill writes a file until the disk has no room for more.
func fill(t testing.TB, name string) string {
	t.Helper()
	f, err := os.Create(name)
	testkit.Must(t, err)
	defer f.Close()
	for page := bytes.Repeat([]byte{1}, 4096); err == nil; {
		_, err = f.Write(page)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	return name
}

// standsStill waits until every party was refused twice, and nobody answered meanwhile.
func (k *talk) standsStill() {
	k.allow(mostActs)
	all := len(k.sessions) * (len(parties) + 1)
	for before, misses := k.answered.Load(), 0; misses < 2*all; misses++ {
		select {
		case <-k.Missed():
		case <-k.over:
			return
		}
		if now := k.answered.Load(); now != before {
			before, misses = now, 0
		}
	}
}
