//go:build long

// Package upgrade replaces brokers by those of another release while agents negotiate. The programs of earlier
// commits stand for releases; .ci/upgrade builds them. What is expected: nothing that was accepted is missing, every
// inbox has it once, and nothing is refused but as unavailable.
package upgrade_test

import (
	"context"
	_ "embed"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/server"
	"github.com/parley-asp/parley/test/testkit"
)

const (
	alpha = performatives.Agent("agent://acme.com/alpha")
	beta  = performatives.Agent("agent://widgets.co/beta")
	alice = performatives.Agent("human://acme.com/alice")

	// patience is how long one test may take.
	patience = 6 * time.Minute
)

var built = flag.String("releases", "", "the directory in which .ci/upgrade has built earlier releases")

//go:embed releases.txt
var pinned string

// release is the program of a commit in releases.txt.
func release(t *testing.T, name string) string {
	t.Helper()
	for line := range strings.Lines(pinned) {
		if is, commit, _ := strings.Cut(strings.TrimSpace(line), " "); is == name {
			path := filepath.Join(*built, commit, "parley")
			if _, err := os.Stat(path); err != nil {
				t.Fatalf("%v: .ci/upgrade builds it", err)
			}
			return path
		}
	}
	t.Fatalf("releases.txt has no %s", name)
	return ""
}

// now is the program of this commit.
var now string

func TestMain(m *testing.M) {
	flag.Parse()
	dir, err := os.MkdirTemp("", "upgrade")
	if err == nil {
		now = filepath.Join(dir, "parley")
		var out []byte
		if out, err = exec.Command("go", "build", "-ldflags=-s -w", "-o", now, "github.com/parley-asp/parley/cmd/parley").CombinedOutput(); err != nil {
			err = fmt.Errorf("go build: %w\n%s", err, out)
		}
	}
	status := 1
	if err == nil {
		status = m.Run()
		err = os.RemoveAll(dir)
	}
	if err != nil {
		fmt.Println(err)
	}
	os.Exit(status)
}

// A world is a NATS server, the brokers' directory and their operator.
type world struct {
	*testing.T
	ctx      context.Context //nolint:containedctx // the test's own
	data     string
	url      string
	operator *client.Operator
	js       jetstream.JetStream // as the broker, in its account
	key      performatives.Key   // of the broker
	conns    map[performatives.Agent]*nats.Conn
	alpha    *testkit.Principal
	beta     *testkit.Principal
	alice    *testkit.Principal
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return newWorldOf(t, testkit.Shards)
}

// newWorldOf is a world whose store is to have so many shards.
func newWorldOf(t *testing.T, shards int) *world {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	w := &world{T: t, ctx: ctx, data: t.TempDir()}
	config, err := server.Config(w.data, shards)
	testkit.Must(w, err)
	w.url = testkit.StartServerProcess(t, config).URL()
	return w
}

// connects logs in the operator and registers the principals, once there is a broker.
func (w *world) connects() {
	w.Helper()
	var err error
	w.operator, err = client.ConnectOperator(w.ctx, w.url, client.LoginFile(filepath.Join(w.data, server.OperatorSeed)))
	testkit.Must(w, err)
	w.Cleanup(func() { w.operator.Close() })
	w.key, err = w.operator.BrokerKey(w.ctx)
	testkit.Must(w, err)
	login, err := nats.NkeyOptionFromSeed(filepath.Join(w.data, server.BrokerLogin))
	testkit.Must(w, err)
	nc, err := nats.Connect(w.url, login)
	testkit.Must(w, err)
	w.Cleanup(nc.Close)
	w.js, err = jetstream.New(nc)
	testkit.Must(w, err)
	w.alpha, w.beta, w.alice = w.joins(alpha), w.joins(beta), w.joins(alice)
	w.conns = map[performatives.Agent]*nats.Conn{alpha: w.alpha.Conn(), beta: w.beta.Conn(), alice: w.alice.Conn()}
}

func (w *world) joins(a performatives.Agent) *testkit.Principal {
	w.Helper()
	p := &testkit.Principal{TB: w, Agent: a, URL: w.url}
	p.SetKey(testkit.NewKey(w))
	card := api.Card{Agent: a, Key: p.Signer.Key(), LoginKeys: testkit.LoginKeys(w, p.Key)}
	card.Registry.MayDecide = a.IsHuman()
	_, err := w.operator.AddAgent(w.ctx, card)
	testkit.Must(w, err)
	return p
}

// runs runs a command of a program as the operator.
func (w *world) runs(program string, args ...string) (string, error) {
	out, err := exec.Command(program, append(args, "--url", w.url, "--data", w.data)...).CombinedOutput()
	return string(out), err
}

// A broker is parley serve in a process.
type broker struct {
	*world
	cmd     *exec.Cmd
	program string
	monitor string
	said    *testkit.Output
	ended   chan struct{}
}

// serves starts a broker on the world's NATS server, and returns when it could accept an act.
func (w *world) serves(program string, more ...string) *broker {
	w.Helper()
	b := w.starts(program, append(more, "--nats", w.url)...)
	testkit.Must(w, b.ready())
	return b
}

// starts runs a broker without limits that the load would reach.
func (w *world) starts(program string, more ...string) *broker {
	w.Helper()
	monitor := testkit.FreeAddress(w)
	b := &broker{world: w, program: program, monitor: monitor, said: &testkit.Output{}, ended: make(chan struct{})}
	b.cmd = exec.Command(program, append([]string{
		"serve", "--data", w.data, "--http", "", "--monitor", monitor, "--limit-rate", "-1", "--limit-sessions", "-1",
		"--limit-items", "-1", "--limit-invitations", "-1", "--limit-principal-bytes", "-1", "--limit-bytes-out", "-1", "--limit-cpu", "-1s",
	}, more...)...)
	b.cmd.Stdout, b.cmd.Stderr = b.said, b.said
	testkit.Must(w, b.cmd.Start())
	go func() {
		b.cmd.Wait() //nolint:errcheck // ends asks
		close(b.ended)
	}()
	w.Cleanup(func() {
		b.ends(syscall.SIGKILL)
		if w.Failed() {
			w.Logf("%s said:\n%s", filepath.Base(filepath.Dir(program)), b.said)
		}
	})
	return b
}

// ready waits for /readyz. The error has what the broker said if it ends instead.
func (b *broker) ready() error {
	ctx, cancel := context.WithCancel(b.ctx)
	defer cancel()
	go func() {
		<-b.ended
		cancel()
	}()
	if err := testkit.Serving(ctx, http.DefaultClient, "http://"+b.monitor+"/readyz"); err != nil {
		return fmt.Errorf("%w\n%s", err, b.said)
	}
	return nil
}

// logs waits for what the broker says: it may answer before its line is read here.
func (b *broker) logs(text string) {
	b.Helper()
	testkit.Eventually(b, "the broker's log has "+text, func() bool { return strings.Contains(b.said.String(), text) })
}

// ends stops the broker by a signal, and reports whether it ended in order.
func (b *broker) ends(by os.Signal) (inOrder bool) {
	b.cmd.Process.Signal(by) //nolint:errcheck // it may have ended
	<-b.ended
	return b.cmd.ProcessState.Success()
}

// replaced is another program's broker in the place of this one.
func (b *broker) replaced(by os.Signal, program string) *broker {
	b.Helper()
	if inOrder := b.ends(by); by == syscall.SIGTERM && !inOrder {
		b.Errorf("drained, the broker ended with %s:\n%s", b.cmd.ProcessState, b.said)
	}
	return b.serves(program)
}
