package fault_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/parley-asp/parley/broker"
	"github.com/parley-asp/parley/server"
	"github.com/parley-asp/parley/test/natsserver"
)

// The test binary is also the broker that is killed: where childData is set it
// is a node with this data directory, and childListen or childNATS is where its
// NATS server is.
const childData, childListen, childNATS, childReplicas = "PARLEY_FAULT_DATA", "PARLEY_FAULT_LISTEN", "PARLEY_FAULT_NATS", "PARLEY_FAULT_REPLICAS"

// childLog has the children say on standard error what they have to say.
const childLog = "PARLEY_FAULT_LOG"

// programs are built when a test first needs one.
var programs struct {
	dir          string
	nats, parley func() (string, error)
}

func TestMain(m *testing.M) {
	if data := os.Getenv(childData); data != "" {
		serve(data, os.Getenv(childListen), os.Getenv(childNATS))
		return
	}
	dir, err := os.MkdirTemp("", "parley-fault-")
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	programs.nats = sync.OnceValues(func() (string, error) { return natsserver.Build(dir) })
	programs.parley = sync.OnceValues(func() (string, error) {
		program := filepath.Join(dir, "parley")
		out, err := exec.Command("go", "build", "-o", program, "github.com/parley-asp/parley/cmd/parley").CombinedOutput()
		if err != nil {
			err = fmt.Errorf("go build: %w\n%s", err, out)
		}
		return program, err
	})
	status := m.Run()
	if err := os.RemoveAll(dir); err != nil {
		fmt.Println(err)
	}
	os.Exit(status)
}

// serve runs a node until the parent is gone or kills it. It is told on its
// standard input what is to happen to it.
func serve(data, listen, url string) {
	var off atomic.Int64
	replicas, _ := strconv.Atoi(os.Getenv(childReplicas))
	log := zap.NewNop()
	if os.Getenv(childLog) != "" {
		log = zap.Must(zap.NewDevelopment(zap.IncreaseLevel(zap.WarnLevel)))
	}
	n, err := server.Start(context.Background(), server.Options{
		Log:  log,
		Data: data, Listen: listen, Dev: true, NATS: url, Replicas: replicas,
		Now: func() time.Time { return time.Now().Add(time.Duration(off.Load())) },
	})
	if err != nil {
		fmt.Println("failed:", err)
		os.Exit(1)
	}
	fmt.Println(n.URL)
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		what, rest, _ := strings.Cut(in.Text(), " ")
		switch what {
		case "die": // at this point of the way of the next act
			var begun atomic.Bool // what is settled until then is that of acts before
			n.AtFailpoints(func(point string) {
				if point == broker.Failpoints()[0] {
					begun.Store(true)
				}
				if point == rest && begun.Load() {
					syscall.Kill(os.Getpid(), syscall.SIGKILL) //nolint:errcheck // nobody is left to hear of it
					select {}
				}
			})
		case "clock": // is off by as much
			d, err := time.ParseDuration(rest)
			if err != nil {
				fmt.Println("failed:", err)
				os.Exit(1)
			}
			off.Store(int64(d))
		}
		fmt.Println("told")
	}
}

// A child is a process that faults happen to.
type child struct {
	*exec.Cmd
	t    testing.TB
	url  string
	in   io.WriteCloser
	said *bufio.Reader
}

// startNode starts a node with a server of its own.
func startNode(t testing.TB, data, listen string) *child {
	t.Helper()
	return startChild(t, childData+"="+data, childListen+"="+listen)
}

// startBroker starts a broker at a NATS server elsewhere. All have the same keys.
func startBroker(t testing.TB, at *natsServer) *child {
	t.Helper()
	return startChild(t, childData+"="+filepath.Join(at.dir, "keys"), childNATS+"="+at.url)
}

// startReplicated starts a broker that keeps three copies of everything, at one
// or more servers of a cluster.
func startReplicated(t testing.TB, keys, urls string) *child {
	t.Helper()
	return startChild(t, childData+"="+keys, childNATS+"="+urls, childReplicas+"=3")
}

func startChild(t testing.TB, env ...string) *child {
	t.Helper()
	c := &child{Cmd: exec.Command(os.Args[0]), t: t}
	c.Env, c.Stderr = append(os.Environ(), env...), os.Stderr
	var err error
	if c.in, err = c.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.said = bufio.NewReader(out)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.kill)
	line, err := c.said.ReadString('\n')
	c.url = strings.TrimSpace(line)
	if err != nil || !strings.HasPrefix(c.url, "nats://") {
		t.Fatalf("the child says %q, %v", line, err)
	}
	return c
}

// tell tells a child what is to happen to it.
func (c *child) tell(what string) {
	c.t.Helper()
	if _, err := fmt.Fprintln(c.in, what); err != nil {
		c.t.Fatal(err)
	}
	if line, err := c.said.ReadString('\n'); line != "told\n" {
		c.t.Fatalf("told %q, the child says %q, %v", what, line, err)
	}
}

// kill is kill -9: nothing is flushed, nobody is told.
func (c *child) kill() {
	if c.ProcessState != nil {
		return
	}
	if err := c.Process.Kill(); err != nil {
		c.t.Error(err)
	}
	c.Wait() //nolint:errcheck // it was killed
}

// dies waits until the child has killed itself.
func (c *child) dies() {
	c.t.Helper()
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	select {
	case <-ended:
	case <-time.After(time.Minute):
		c.t.Error("the child did not get to where it was to die")
		c.Process.Kill() //nolint:errcheck // it may be gone after all
		<-ended
	}
}

// pause takes all time from the child until it is resumed.
func (c *child) pause()  { c.signal(syscall.SIGSTOP) }
func (c *child) resume() { c.signal(syscall.SIGCONT) }

func (c *child) signal(s syscall.Signal) {
	if err := c.Process.Signal(s); err != nil {
		c.t.Error(err)
	}
}
