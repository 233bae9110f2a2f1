package server

import (
	"net"
	"runtime"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

// gathered is a connection to a server elsewhere on which what many goroutines
// send at about the same time goes out in one piece. The client writes whatever
// there is as soon as there is something, which with several brokers beside each
// other on a machine is a system call for each message, here and in the server.
// Here a goroutine of its own writes, and lets all that is ready to run go first:
// with many acts on their way that is many messages, and with one it is nobody.
type gathered struct {
	net.Conn
	mu      sync.Mutex
	changed sync.Cond // any of what follows
	waits   []byte    // what is to be written
	failure error     // of writing; nothing is taken any more

	done chan struct{} // nothing will be written any more
}

const (
	maxGathered = 1 << 20                // bytes; whoever comes then waits, as without this
	lastWords   = 100 * time.Millisecond // for what was written before the connection is closed
)

// gather is how connections are made that gather.
type gather struct{}

func (gather) Dial(network, address string) (net.Conn, error) {
	c, err := net.DialTimeout(network, address, nats.DefaultTimeout)
	if err != nil {
		return nil, err
	}
	return newGathered(c), nil
}

func newGathered(c net.Conn) *gathered {
	g := &gathered{Conn: c, done: make(chan struct{})}
	g.changed.L = &g.mu
	go g.run()
	return g
}

// Write takes bytes that will be written. That they could not be is known to the
// next who writes, and to whoever reads.
func (g *gathered) Write(p []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for len(g.waits) >= maxGathered && g.failure == nil {
		g.changed.Wait()
	}
	if g.failure != nil {
		return 0, g.failure
	}
	g.waits = append(g.waits, p...)
	g.changed.Broadcast()
	return len(p), nil
}

func (g *gathered) run() {
	defer close(g.done)
	var out []byte
	for {
		if out = g.next(out[:0]); len(out) == 0 {
			return
		}
		if _, err := g.Conn.Write(out); err != nil {
			g.fail(err)
			g.Conn.Close() //nolint:errcheck // a part of it may have been written, so nothing can follow
			return
		}
	}
}

// next is what is to be written now, in place of what was; nothing at the end.
func (g *gathered) next(was []byte) []byte {
	g.mu.Lock()
	defer g.mu.Unlock()
	for len(g.waits) == 0 && g.failure == nil {
		g.changed.Wait()
	}
	g.mu.Unlock()
	runtime.Gosched()
	g.mu.Lock()
	out := g.waits
	g.waits = was
	g.changed.Broadcast()
	return out
}

func (g *gathered) fail(why error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.failure == nil {
		g.failure = why
	}
	g.changed.Broadcast()
}

// Close writes what was taken, unless the other side does not read it.
func (g *gathered) Close() error {
	g.fail(net.ErrClosed)
	select {
	case <-g.done:
	case <-time.After(lastWords):
	}
	return g.Conn.Close()
}
