package gateway_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"

	"github.com/parley-asp/parley/gateway"
	"github.com/parley-asp/parley/test/testkit"
)

// one is a listener with one connection.
type one struct {
	conn chan net.Conn
	once sync.Once
}

func (o *one) Accept() (net.Conn, error) {
	if conn, open := <-o.conn; open {
		return conn, nil
	}
	return nil, net.ErrClosed
}
func (o *one) Close() error   { o.once.Do(func() { close(o.conn) }); return nil }
func (o *one) Addr() net.Addr { return &net.TCPAddr{} }

// served serves a handler on one connection, in a bubble of its own time.
func served(t *testing.T, handler http.HandlerFunc, test func(t *testing.T, conn net.Conn)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		listener := &one{conn: make(chan net.Conn, 1)}
		listener.conn <- theirs
		protocols := new(http.Protocols)
		protocols.SetHTTP1(true)
		protocols.SetUnencryptedHTTP2(true)
		server := &http.Server{Handler: gateway.Deadlines(handler), Protocols: protocols, WriteTimeout: gateway.AnswerIn}
		go server.Serve(listener) //nolint:errcheck // returns when closed
		test(t, ours)
		ours.Close()
		server.Close()
	})
}

// pass lets time pass on the clock of the bubble.
func pass(ctx context.Context, d time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	<-ctx.Done()
}

// A client of HTTP/1.1 that does not read has its request ended, also by what is still in a buffer.
func TestDeadlinesHTTP1(t *testing.T) {
	t.Parallel()
	for name, size := range map[string]int{"small": 10, "large": 1 << 20} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			served(t, func(w http.ResponseWriter, _ *http.Request) {
				io.WriteString(w, strings.Repeat("x", size)) //nolint:errcheck // the client reads nothing
			}, func(t *testing.T, conn net.Conn) {
				begun := time.Now()
				_, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
				testkit.Must(t, err)
				pass(t.Context(), gateway.WriteWithin+time.Second)
				if _, err := io.Copy(io.Discard, conn); err != nil || time.Since(begun) > gateway.WriteWithin+2*time.Second {
					t.Errorf("after %s: %v", time.Since(begun), err)
				}
			})
		})
	}
}

// A client that takes its answer slowly has a minute for it.
func TestDeadlinesTrickle(t *testing.T) {
	t.Parallel()
	var took time.Duration
	served(t, func(w http.ResponseWriter, _ *http.Request) {
		begun := time.Now()
		io.WriteString(w, strings.Repeat("x", 10<<20)) //nolint:errcheck // the client reads little
		took = time.Since(begun)
	}, func(t *testing.T, conn net.Conn) {
		_, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
		testkit.Must(t, err)
		for err == nil {
			pass(t.Context(), time.Second)
			_, err = io.ReadFull(conn, make([]byte, 32<<10))
		}
		synctest.Wait()
		if took < gateway.AnswerIn-2*time.Second || took > gateway.AnswerIn+2*time.Second {
			t.Errorf("it was written to for %s", took)
		}
	})
}

// Requests of an HTTP/2 connection whose windows are closed end.
func TestDeadlinesClosedWindow(t *testing.T) {
	t.Parallel()
	for name, kind := range map[string]string{"an answer": "text/plain", "a stream": "text/event-stream"} {
		for _, size := range []int{10, 100_000} {
			t.Run(fmt.Sprint(name, " of ", size), func(t *testing.T) {
				t.Parallel()
				const requests = 50
				var over atomic.Int32
				served(t, func(w http.ResponseWriter, _ *http.Request) {
					defer over.Add(1)
					w.Header().Set("Content-Type", kind)
					io.WriteString(w, strings.Repeat("x", size)) //nolint:errcheck // the client takes nothing
				}, func(t *testing.T, conn net.Conn) {
					begun := time.Now()
					client := testkit.NewHTTP2(t, conn, 0)
					go func() {
						for range requests {
							client.Get("/")
						}
					}()
					for ended := 0; ended < requests; {
						frame, err := client.Next()
						testkit.Must(t, err)
						if _, is := frame.(*http2.RSTStreamFrame); is {
							ended++
						}
					}
					synctest.Wait()
					if took := time.Since(begun); took > gateway.WriteWithin+time.Second || over.Load() < requests {
						t.Errorf("after %s, %d of %d are over", took, over.Load(), requests)
					}
				})
			})
		}
	}
}

// A stream of events is idle for as long as it likes, and lasts.
func TestDeadlinesIdleStream(t *testing.T) {
	t.Parallel()
	const events = 5
	served(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for range events {
			if _, err := io.WriteString(w, "data: x\n\n"); err != nil {
				t.Error(err)
			}
			w.(http.Flusher).Flush() //nolint:forcetypeassert // a test
			pass(r.Context(), time.Minute)
		}
	}, func(t *testing.T, conn net.Conn) {
		client := testkit.NewHTTP2(t, conn, 1000)
		go client.Get("/")
		for came := 0; came < events; {
			frame, err := client.Next()
			testkit.Must(t, err)
			switch frame := frame.(type) {
			case *http2.DataFrame:
				came += strings.Count(string(frame.Data()), "data: x")
			case *http2.RSTStreamFrame, *http2.GoAwayFrame:
				t.Fatalf("after %d events comes %v", came, frame)
			}
		}
	})
}
