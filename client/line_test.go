package client_test

import (
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// line is a network between client and server that can be made bad: a TCP
// proxy.
type line struct {
	URL    string
	server string
	deaf   atomic.Bool // what the server says is lost

	mu    sync.Mutex
	conns []net.Conn
}

func newLine(t *testing.T, url string) *line {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n := &line{URL: "nats://" + l.Addr().String(), server: strings.TrimPrefix(url, "nats://")}
	t.Cleanup(func() {
		l.Close()
		n.cut()
	})
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			n.join(conn)
		}
	}()
	return n
}

func (n *line) join(near net.Conn) {
	far, err := net.Dial("tcp", n.server)
	if err != nil {
		near.Close()
		return
	}
	n.mu.Lock()
	n.conns = append(n.conns, near, far)
	n.mu.Unlock()
	go func() {
		defer near.Close()
		defer far.Close()
		io.Copy(far, near) //nolint:errcheck // it ends when one side does
	}()
	go func() {
		defer near.Close()
		defer far.Close()
		buf := make([]byte, 64<<10)
		for {
			k, err := far.Read(buf)
			if err != nil {
				return
			}
			if !n.deaf.Load() {
				if _, err := near.Write(buf[:k]); err != nil {
					return
				}
			}
		}
	}()
}

// cut breaks every connection; new ones work.
func (n *line) cut() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, c := range n.conns {
		c.Close()
	}
	n.conns = nil
}
