package fault_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-asp/parley/node"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/test/fault"
)

const (
	alpha = performatives.Agent("agent://acme.com/alpha")
	beta  = performatives.Agent("agent://widgets.co/beta")
	gamma = performatives.Agent("agent://gizmo.io/gamma")
)

// The test binary is also the program that is killed.
const childData, childListen = "PARLEY_FAULT_DATA", "PARLEY_FAULT_LISTEN"

func TestMain(m *testing.M) {
	if data := os.Getenv(childData); data != "" {
		serve(data, os.Getenv(childListen))
		return
	}
	os.Exit(m.Run())
}

// serve runs a node until the parent is gone or kills it.
func serve(data, listen string) {
	n, err := node.Start(context.Background(), node.Options{Data: data, Listen: listen, Dev: true})
	if err != nil {
		fmt.Println("failed:", err)
		os.Exit(1)
	}
	fmt.Println(n.URL)
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		fmt.Println("failed:", err)
	}
}

// A child is a node in a process of its own.
type child struct {
	*exec.Cmd
	url string
}

func start(t *testing.T, data, listen string) *child {
	t.Helper()
	c := &child{Cmd: exec.Command(os.Args[0])}
	c.Env = append(os.Environ(), childData+"="+data, childListen+"="+listen)
	c.Stderr = os.Stderr
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close() })
	line, err := bufio.NewReader(out).ReadString('\n')
	c.url = strings.TrimSpace(line)
	if err != nil || !strings.HasPrefix(c.url, "nats://") {
		c.kill(t)
		t.Fatalf("the child says %q, %v", line, err)
	}
	return c
}

// kill is kill -9: nothing is flushed, nobody is told.
func (c *child) kill(t *testing.T) {
	t.Helper()
	if err := c.Process.Kill(); err != nil {
		t.Error(err)
	}
	c.Wait() //nolint:errcheck // it was killed
}

// TestKilledUnderLoad kills the broker's process again and again while sessions
// go on, and then holds everything that was promised against what is there.
func TestKilledUnderLoad(t *testing.T) {
	const sessions, acts, kills, apart = 6, 60, 4, 60
	data := t.TempDir()
	c := start(t, data, "127.0.0.1:-1")
	listen := strings.TrimPrefix(c.url, "nats://")
	w := fault.NewWitness(t, c.url)

	var accepted atomic.Int64
	reached := make(chan struct{}, sessions*acts)
	talks := make([]*fault.Session, sessions)
	var talking sync.WaitGroup
	for i := range talks {
		talking.Go(func() {
			talks[i] = w.Open(alpha, beta, gamma)
			for n := range acts {
				haggle(talks[i], n)
				if accepted.Add(1)%apart == 0 {
					reached <- struct{}{}
				}
			}
		})
	}
	for range kills {
		<-reached
		c.kill(t)
		c = start(t, data, listen)
	}
	talking.Wait()
	for _, s := range talks {
		s.Again()
		s.Say(alpha, "CLOSE", "{}")
		s.Check(alpha, beta, gamma)
	}
	c.kill(t)
	c = start(t, data, listen)
	for _, s := range talks {
		s.Again()
		s.Check(alpha, beta, gamma)
	}
	c.kill(t)
}

// haggle is the n-th act of a conversation that may go on for ever.
func haggle(s *fault.Session, n int) {
	round := n / 4
	switch n % 4 {
	case 0:
		s.Say(alpha, "PROPOSE", fmt.Sprintf(`{"proposalId":"p%d","type":"x","subject":"x","terms":{"price":%d}}`, round, round))
	case 1:
		s.Say(beta, "COUNTER", fmt.Sprintf(`{"proposalId":"c%d","referenceId":"p%d","terms":{"price":%d}}`, round, round, round+1))
	case 2:
		s.Say(alpha, "ACCEPT", fmt.Sprintf(`{"referenceId":"c%d"}`, round))
	case 3:
		s.Say(gamma, "OBSERVE", fmt.Sprintf(`{"subject":"round %d"}`, round))
	}
}

// TestKilledWhileDeadlinesPass: what fell due while nobody was there falls due
// when somebody is again.
func TestKilledWhileDeadlinesPass(t *testing.T) {
	data := t.TempDir()
	c := start(t, data, "127.0.0.1:-1")
	w := fault.NewWitness(t, c.url)
	s := w.Invite(alpha, beta, 700*time.Millisecond)
	c.kill(t)
	<-time.After(time.Until(s.Deadline)) // time itself has to pass here
	c = start(t, data, strings.TrimPrefix(c.url, "nats://"))
	s.Closed(beta, "invitation_timeout")
	s.Again()
	s.Check(alpha, beta)
	c.kill(t)
}
