package fault_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/server"
	"github.com/parley-asp/parley/test/fault"
	"github.com/parley-asp/parley/test/testkit"
)

// A program is parley serve in a process, and what it says.
type program struct {
	*exec.Cmd
	said string // file
}

// serveProgram starts the program, and returns when clients can connect.
func serveProgram(t *testing.T, data, listen string, more ...string) *program {
	t.Helper()
	path, err := parley()
	testkit.Must(t, err)
	out, err := os.CreateTemp(t.TempDir(), "said")
	testkit.Must(t, err)
	defer out.Close()
	p := &program{said: out.Name()}
	p.Cmd = exec.Command(path, append([]string{"serve", "--dev", "--http", "", "--data", data, "--listen", listen, "--sync", "1s", "--log-level", "info"}, more...)...)
	p.Stdout, p.Stderr = out, out
	testkit.Must(t, p.Start())
	t.Cleanup(func() { p.end(os.Kill) })
	nc, err := nats.Connect("nats://"+listen, nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1), nats.ReconnectWait(5*time.Millisecond), nats.ReconnectJitter(0, 0))
	testkit.Must(t, err)
	defer nc.Close()
	if err := nc.FlushTimeout(testkit.Patience); err != nil {
		t.Fatalf("%v\n%s", err, p.says(t))
	}
	return p
}

// end ends it by a signal, and waits.
func (p *program) end(by os.Signal) {
	if p.ProcessState == nil {
		p.Process.Signal(by) //nolint:errcheck // it may be gone
		p.Wait()             //nolint:errcheck // a signal ends it
	}
}

func (p *program) says(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(p.said)
	testkit.Must(t, err)
	return string(text)
}

// Sessions go on and end after the archive was written, and the broker is killed: the server
// then reads whole what they wrote to, and of the archive and its list the summaries.
func TestArchiveIsNotReadWholeAfterAKill(t *testing.T) {
	t.Parallel()
	data, listen := t.TempDir(), testkit.FreeAddress(t)
	p := serveProgram(t, data, listen, "--archive-after", "100ms")
	w := fault.NewWitness(t, "nats://"+listen)
	var all []*fault.Session
	for range 5 {
		s := w.Open(alpha, beta)
		s.Say(alpha, "CLOSE", "{}")
		all = append(all, s)
	}
	open := w.Open(alpha, beta)
	archived(t, data, listen, len(all))
	p.end(os.Interrupt) // the server writes its summaries, as it does every few minutes

	p = serveProgram(t, data, listen, "--archive-after", "24h")
	ended := w.Open(alpha, beta)
	ended.Say(beta, "CLOSE", "{}")
	open.Say(beta, "OBSERVE", `{"subject":"going on"}`)
	p.end(os.Kill)

	p = serveProgram(t, data, listen, "--archive-after", "24h")
	for _, s := range append(all, open, ended) {
		s.Again()
		s.Check(alpha, beta)
	}
	verifyAll(t, "nats://"+listen)
	said := p.says(t)
	// Whether the session list was written to since is a matter of its lag.
	for stream, whole := range map[string]bool{
		api.SessionsStream: true, api.InboxStream: true, api.ArchiveStream: false, api.ArchiveIndexStream: false,
	} {
		if !strings.Contains(said, fmt.Sprintf("> %s' in ", stream)) {
			t.Errorf("the server does not say that it has %s again:\n%s", stream, said)
		}
		if got := strings.Contains(said, "["+stream+"] Stream state outdated"); got != whole {
			t.Errorf("%s was read whole: %t, want %t", stream, got, whole)
		}
	}
}

// archived waits until the archive has so many sessions, and the list among the open ones none of them.
func archived(t *testing.T, data, listen string, sessions int) {
	t.Helper()
	login, err := nats.NkeyOptionFromSeed(filepath.Join(data, server.BrokerLogin))
	testkit.Must(t, err)
	nc, err := nats.Connect("nats://"+listen, login)
	testkit.Must(t, err)
	defer nc.Close()
	js, err := jetstream.New(nc)
	testkit.Must(t, err)
	testkit.Eventually(t, "the ended sessions are archived", func() bool {
		archive, err := js.Stream(t.Context(), api.ArchiveStream)
		testkit.Must(t, err)
		index, err := js.Stream(t.Context(), api.IndexStream)
		testkit.Must(t, err)
		lines, err := index.Info(t.Context(), jetstream.WithSubjectFilter(api.AllOver))
		testkit.Must(t, err)
		return archive.CachedInfo().State.Msgs == uint64(sessions) && len(lines.State.Subjects) == 0 //nolint:gosec // a count
	})
}
