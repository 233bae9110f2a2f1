package testkit

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// programs are what a test's own binary can be instead, in a process that the test can kill or
// pause. Nothing has to be built for it.
var programs = map[string]func() error{"nats-server": natsServer, "broker": brokerProcess}

// program names the one to be, in the environment.
const program = "PARLEY_TESTKIT"

func init() {
	run, found := programs[os.Getenv(program)]
	if !found {
		return
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// A Process is one of the programs. It ends with the test.
type Process struct {
	t     testing.TB
	name  string
	cmd   *exec.Cmd
	in    io.WriteCloser
	out   *bufio.Reader
	log   Output
	ended chan struct{}
}

// start starts a program, by a command that runs it unless that is empty. The program reports
// with a line on standard output that it is ready.
func start(t testing.TB, via []string, name, dir string, env ...string) (p *Process, ready string, err error) {
	binary, err := os.Executable()
	if err != nil {
		return nil, "", err
	}
	command := append(slices.Clone(via), binary)
	p = &Process{t: t, name: name, cmd: exec.Command(command[0], command[1:]...), ended: make(chan struct{})}
	p.cmd.Dir, p.cmd.Env, p.cmd.Stderr = dir, append(os.Environ(), append(env, program+"="+name)...), &p.log
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, "", err
	}
	out, in, err := os.Pipe()
	if err != nil {
		return nil, "", err
	}
	p.cmd.Stdout, p.out = in, bufio.NewReader(out)
	err = p.cmd.Start()
	in.Close() // the process has its own; nothing more comes once that is closed
	if err != nil {
		return nil, "", err
	}
	go func() {
		p.cmd.Wait() //nolint:errcheck // a signal ends it
		close(p.ended)
	}()
	t.Cleanup(func() {
		p.Kill()
		out.Close()
		if t.Failed() {
			t.Logf("%s said:\n%s", name, information.ReplaceAllString(p.log.String(), ""))
		}
	})
	if ready, err = p.line(); err != nil {
		p.Kill()
		return nil, "", fmt.Errorf("%s is not ready: %w\n%s", name, err, p.log.String())
	}
	return p, ready, nil
}

// information is what a NATS server says when all is well.
var information = regexp.MustCompile(`(?m)^.*\[INF\].*\n`)

// line reads a line of standard output.
func (p *Process) line() (string, error) {
	late := time.AfterFunc(Patience, func() { p.signal(syscall.SIGKILL) })
	defer late.Stop()
	line, err := p.out.ReadString('\n')
	return strings.TrimSuffix(line, "\n"), err
}

// Tell writes a line to the process, which must repeat it when it has done what it says.
func (p *Process) Tell(what string) {
	p.t.Helper()
	if _, err := fmt.Fprintln(p.in, what); err != nil {
		p.t.Fatal(err)
	}
	if line, err := p.line(); err != nil || line != what {
		p.t.Fatalf("%s was told %q and says %q, %v", p.name, what, line, err)
	}
}

// Kill is kill -9: nothing is flushed, nobody is told.
func (p *Process) Kill() { p.end(syscall.SIGKILL) }

// Stop ends the process in order.
func (p *Process) Stop() { p.end(syscall.SIGTERM) }

// Pause takes all time from the process until it is resumed.
func (p *Process) Pause() { p.signal(syscall.SIGSTOP) }

// Resume lets a paused process go on.
func (p *Process) Resume() { p.signal(syscall.SIGCONT) }

// Dies waits until the process has ended by itself.
func (p *Process) Dies() {
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	select {
	case <-p.ended:
	case <-ctx.Done():
		p.t.Errorf("%s did not end", p.name)
		p.Kill()
	}
}

func (p *Process) end(s syscall.Signal) {
	select {
	case <-p.ended:
	default:
		p.signal(s)
		<-p.ended
	}
}

func (p *Process) signal(s syscall.Signal) {
	p.cmd.Process.Signal(s) //nolint:errcheck // it may have ended
}

// Output is what somebody writes, to be read at any time.
type Output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

// String is all that was written so far.
func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}
