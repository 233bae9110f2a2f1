package httpgateway

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"sync/atomic"
)

// mostAtEnd is what is read of a socket after it was told why it closes: an answer, and what was on its way.
const mostAtEnd = 64 << 10

// A hijacker keeps hold of the connection that a WebSocket takes over, to bound what is read at its end.
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

// A bounded connection ends once so much was read after its end began.
type bounded struct {
	net.Conn

	ending atomic.Bool
	read   int // after the end began
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.ending.Load() && b.read >= mostAtEnd {
		return 0, io.EOF
	}
	n, err := b.Conn.Read(p)
	if b.ending.Load() {
		b.read += n
	}
	return n, err
}
