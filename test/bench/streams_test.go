package bench

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"

	"github.com/parley-asp/parley/test/testkit"
)

var (
	streams = flag.Int("streams", 100, "event streams that BenchmarkStreams opens")
	clients = flag.Int("clients", 1000, "clients of MCP that BenchmarkMCPWait has wait")
	hold    = flag.String("hold", "", "hold event streams of this address open, in a process of their own")
	holdMCP = flag.String("hold-mcp", "", "the same, with clients of MCP that wait")
)

func TestMain(m *testing.M) {
	flag.Parse()
	var err error
	switch {
	case *hold != "":
		err = holdOpen(*streams, func(int) (net.Conn, error) { return openStream(*hold) })
	case *holdMCP != "":
		err = holdOpen(*clients, func(i int) (net.Conn, error) { return waitByMCP(*holdMCP, i) })
	default:
		os.Exit(m.Run())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// BenchmarkStreams is what a broker keeps of an event stream on which nothing happens: the
// memory and the goroutines of this process. Those who read are in another one, because a
// process may have only so many open files.
func BenchmarkStreams(b *testing.B) {
	w := testkit.NewWorld(b, testkit.Options{Dev: true, HTTP: "127.0.0.1:0", HTTPConnections: -1})
	memory, goroutines := inUse()
	resident := residentMemory(b)
	leave := connects(b, "-hold="+w.HTTPAddr, "-streams="+strconv.Itoa(*streams))
	for b.Loop() {
		more, then := inUse()
		each := float64(*streams)
		b.ReportMetric((more-memory)/each, "B/stream")
		b.ReportMetric((residentMemory(b)-resident)/each, "resident-B/stream")
		b.ReportMetric(float64(then-goroutines)/each, "goroutines/stream")
	}
	leave()
}

// connects runs this program as clients that hold connections open, until they leave.
func connects(b *testing.B, flags ...string) (leave func()) {
	b.Helper()
	others := exec.Command(os.Args[0], append([]string{"-test.run=^$"}, flags...)...)
	others.Stderr = os.Stderr
	stdin, err := others.StdinPipe()
	testkit.Must(b, err)
	stdout, err := others.StdoutPipe()
	testkit.Must(b, err)
	testkit.Must(b, others.Start())
	if ready, err := io.ReadAll(io.LimitReader(stdout, int64(len("ready")))); err != nil || string(ready) != "ready" {
		b.Fatal(string(ready), err)
	}
	return func() {
		b.Helper()
		testkit.Must(b, stdin.Close())
		testkit.Must(b, others.Wait())
	}
}

// holdOpen opens connections, says that it is ready, and holds them until its input ends.
func holdOpen(n int, connect func(i int) (net.Conn, error)) error {
	open := make(chan error)
	slots := make(chan struct{}, 16)
	connections := make([]net.Conn, n)
	for i := range connections {
		go func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			var err error
			connections[i], err = connect(i)
			open <- err
		}()
	}
	for range n {
		if err := <-open; err != nil {
			return err
		}
	}
	fmt.Print("ready")
	_, err := io.Copy(io.Discard, os.Stdin)
	for _, c := range connections {
		c.Close()
	}
	return err
}

func openStream(address string) (net.Conn, error) {
	c, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	if _, err := fmt.Fprintf(c, "GET /v1/asp/inbox/events HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer agent://acme.com/cron\r\n\r\n", address); err != nil {
		return nil, err
	}
	var head []byte
	for part := make([]byte, 1024); !bytes.Contains(head, []byte("\r\n: ")); { // the first comment
		n, err := c.Read(part)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", head, err)
		}
		head = append(head, part[:n]...)
	}
	return c, nil
}

// residentMemory is that of this process, once what is free was given back.
func residentMemory(b *testing.B) float64 {
	b.Helper()
	debug.FreeOSMemory()
	data, err := os.ReadFile("/proc/self/statm")
	testkit.Must(b, err)
	pages, err := strconv.Atoi(strings.Fields(string(data))[1])
	testkit.Must(b, err)
	return float64(pages * os.Getpagesize())
}
