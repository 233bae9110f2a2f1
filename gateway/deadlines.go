package gateway

import (
	"net/http"
	"time"
)

// Bounds of how slowly a client takes an answer.
const (
	WriteWithin = 10 * time.Second // each piece, and each flush
	AnswerIn    = time.Minute      // all of an answer that is no stream of events
	writePiece  = 64 << 10         // bytes
)

// Deadlines gives each write of a handler a deadline of its own, so that a client which takes nothing
// ends its request, whether it stops reading from its connection or closes the window of a stream. A
// stream of events may be idle, and last.
func Deadlines(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d := &deadlines{ResponseWriter: w, out: http.NewResponseController(w), end: time.Now().Add(AnswerIn)}
		defer d.begin() // what is still in a buffer is sent when the handler has returned
		handler.ServeHTTP(d, r)
	})
}

type deadlines struct {
	http.ResponseWriter
	out *http.ResponseController
	end time.Time // of an answer that is no stream
}

func (d *deadlines) streams() bool { return d.Header().Get("Content-Type") == "text/event-stream" }

// begin sets the deadline of a write. Where there is none, such as in tests, nothing waits.
func (d *deadlines) begin() {
	at := time.Now().Add(WriteWithin)
	if at.After(d.end) && !d.streams() {
		at = d.end
	}
	d.out.SetWriteDeadline(at) //nolint:errcheck // of a connection that has deadlines
}

// rest sets the deadline between writes: in HTTP/2 it ends a stream at once, though nothing is written.
func (d *deadlines) rest() {
	at := d.end
	if d.streams() {
		at = time.Time{}
	}
	d.out.SetWriteDeadline(at) //nolint:errcheck // of a connection that has deadlines
}

func (d *deadlines) Write(data []byte) (n int, err error) {
	defer d.rest()
	for {
		d.begin()
		wrote, err := d.ResponseWriter.Write(data[n:min(n+writePiece, len(data))])
		if n += wrote; err != nil || n == len(data) {
			return n, err
		}
	}
}

// FlushError sends what was written.
func (d *deadlines) FlushError() error {
	defer d.rest()
	d.begin()
	return d.out.Flush()
}

// Flush is FlushError for those who look for an http.Flusher.
func (d *deadlines) Flush() { d.FlushError() } //nolint:errcheck // the client went away

func (d *deadlines) Unwrap() http.ResponseWriter { return d.ResponseWriter }
