package httpgateway

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

const (
	// mostOfMessage is what is read of a socket for one message, with the control frames and empty fragments among
	// it, and after it was told why it closes.
	mostOfMessage = 1 << 20
	endsWithin    = 5 * time.Second // that it was told
)

// A hijacker keeps hold of the connection that a WebSocket takes over, to bound what is read of it.
type hijacker struct {
	http.ResponseWriter

	conn *bounded
}

// Hijack is http.Hijacker's.
func (h *hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffered, err := http.NewResponseController(h.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	h.conn = &bounded{Conn: conn}
	return h.conn, buffered, nil
}

// A bounded connection ends once so much was read since the last message began.
type bounded struct {
	net.Conn

	read atomic.Int64
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.read.Load() >= mostOfMessage {
		return 0, io.EOF
	}
	n, err := b.Conn.Read(p)
	b.read.Add(int64(n))
	return n, err
}

// begins has as much read again.
func (b *bounded) begins() { b.read.Store(0) }

// ends has little more read, and not for long.
func (b *bounded) ends() {
	b.begins()
	b.SetReadDeadline(time.Now().Add(endsWithin)) //nolint:errcheck // it is closed then
}
