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

	"github.com/parley-asp/parley/internal/testkit"
)

var (
	streams = flag.Int("streams", 100, "event streams that BenchmarkStreams opens")
	hold    = flag.String("hold", "", "hold event streams of this address open, in a process of their own")
)

func TestMain(m *testing.M) {
	flag.Parse()
	if *hold == "" {
		os.Exit(m.Run())
	}
	if err := holdStreams(*hold, *streams); err != nil {
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
	readers := exec.Command(os.Args[0], "-test.run=^$", "-hold="+w.HTTPAddr, "-streams="+strconv.Itoa(*streams))
	readers.Stderr = os.Stderr
	stdin, err := readers.StdinPipe()
	testkit.Must(b, err)
	stdout, err := readers.StdoutPipe()
	testkit.Must(b, err)
	testkit.Must(b, readers.Start())
	if ready, err := io.ReadAll(io.LimitReader(stdout, int64(len("ready")))); err != nil || string(ready) != "ready" {
		b.Fatal(string(ready), err)
	}
	for b.Loop() {
		more, then := inUse()
		each := float64(*streams)
		b.ReportMetric((more-memory)/each, "B/stream")
		b.ReportMetric((residentMemory(b)-resident)/each, "resident-B/stream")
		b.ReportMetric(float64(then-goroutines)/each, "goroutines/stream")
	}
	testkit.Must(b, stdin.Close())
	testkit.Must(b, readers.Wait())
}

// holdStreams opens streams, says that it is ready, and holds them until its input ends.
func holdStreams(address string, n int) error {
	open := make(chan error)
	slots := make(chan struct{}, 16)
	connections := make([]net.Conn, n)
	for i := range connections {
		go func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			var err error
			connections[i], err = openStream(address)
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
