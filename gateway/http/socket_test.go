package httpgateway_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"go.uber.org/zap"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker/custody"
	"github.com/parley-asp/parley/broker/limits"
	"github.com/parley-asp/parley/gateway"
	httpgateway "github.com/parley-asp/parley/gateway/http"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/test/testkit"
)

const idler = performatives.Agent("agent://acme.com/idler")

// idle is a session in which nothing happens, of anybody who comes; time passes in a bubble.
type idle struct {
	expires time.Duration // of the token; 0 is never
	pays    int           // for how many requests; 0 is any number
	entries uint64        // of the session, with 8 KiB each
	text    string        // at the end of each
	limits  *limits.Accounts
}

func (i idle) CallAs(_ context.Context, _ performatives.Agent, verb string, request []byte) ([]byte, error) {
	if verb == api.SessionGet.Name {
		return []byte(`{"sessionId":"s","state":"CONVERSING","head":{"sequenceNumber":0}}`), nil
	}
	var q api.ListMessages
	if err := json.Unmarshal(request, &q); err != nil {
		return nil, err
	}
	page := api.Messages{Messages: []jsontext.Value{}}
	for n := q.Since; n < i.entries; n++ {
		page.Messages = append(page.Messages, fmt.Appendf(nil, `{"sequenceNumber":%d,"integrity":{"receipt":{"state":"CONVERSING"}},"text":"%s"}`, n, strings.Repeat("x", 8<<10)+i.text))
	}
	return json.Marshal(page)
}

// service is a broker that has only this session.
func (i idle) service() *gateway.Service {
	var charged atomic.Int64
	return &gateway.Service{
		CallAs: i.CallAs,
		Tokens: func(context.Context, string) (pass custody.Pass, err error) {
			pass.Agent = idler
			if i.expires != 0 {
				pass.Expires = time.Now().Add(i.expires)
			}
			return pass, nil
		},
		WatchSession: func(context.Context, performatives.SessionID) (<-chan struct{}, func(), error) {
			return nil, func() {}, nil
		},
		Seen: func(performatives.Agent) {},
		Charge: func(_ performatives.Agent, requests int) error {
			if all := charged.Add(int64(requests)); i.pays > 0 && all > int64(i.pays) {
				return session.Refuse(session.RateLimited, "too many requests")
			}
			return nil
		},
		Accounts: i.limits,
		Log:      zap.NewNop(),
	}
}

// pipes is a listener whose connections are pipes in memory.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	c, open := <-p
	if !open {
		return nil, net.ErrClosed
	}
	return c, nil
}
func (p pipes) Close() error   { return nil }
func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }

// inBubble connects to a gateway in a bubble of its own time.
func inBubble(t *testing.T, i idle, test func(t *testing.T, conn *websocket.Conn)) {
	bubble(t, i, func(t *testing.T, transport *http.Transport) {
		conn, _, err := websocket.Dial(t.Context(), "ws://parley/v1/asp/sessions/s/ws", &websocket.DialOptions{HTTPClient: &http.Client{Transport: transport}}) //nolint:bodyclose // the connection is the body
		if err != nil {
			t.Fatal(err)
		}
		test(t, conn)
		conn.CloseNow() //nolint:errcheck // the test is over
	})
}

// bubble serves a gateway in a bubble of its own time.
func bubble(t *testing.T, i idle, test func(t *testing.T, transport *http.Transport)) {
	synctest.Test(t, func(t *testing.T) {
		served := httpgateway.New(httpgateway.Options{Service: i.service()})
		listener, server := make(pipes), &http.Server{Handler: gateway.Deadlines(served), ReadTimeout: 30 * time.Second}
		go server.Serve(listener) //nolint:errcheck // returns when closed
		transport := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
			ours, theirs := net.Pipe()
			listener <- theirs
			return ours, nil
		}}
		test(t, transport)
		served.Close()
		served.Wait(t.Context())
		close(listener)
		server.Close()
		transport.CloseIdleConnections()
	})
}

func says(t *testing.T, conn *websocket.Conn, text string) {
	t.Helper()
	if err := conn.Write(t.Context(), websocket.MessageText, []byte(text)); err != nil {
		t.Fatal(err)
	}
}

// receives reads a frame of this type; a number is the code that the connection is closed with.
func receives(t *testing.T, conn *websocket.Conn, kind string, code websocket.StatusCode) {
	t.Helper()
	_, data, err := conn.Read(t.Context())
	if code != 0 && websocket.CloseStatus(err) != code || code == 0 && !strings.HasPrefix(string(data), `{"type":"`+kind+`"`) {
		t.Fatalf("received %s, %v, want %s %d", data, err, kind, code)
	}
}

// GATEWAYS.md G2: who does not authenticate within 10 s is closed out.
func TestSocketWithoutAuth(t *testing.T) {
	inBubble(t, idle{}, func(t *testing.T, conn *websocket.Conn) {
		began := time.Now()
		receives(t, conn, "", 4001)
		if took := time.Since(began); took != 10*time.Second {
			t.Errorf("closed after %s", took)
		}
	})
}

// GATEWAYS.md G2: a heartbeat every 30 s, and two without a pong close.
func TestSocketHeartbeat(t *testing.T) {
	inBubble(t, idle{}, func(t *testing.T, conn *websocket.Conn) {
		says(t, conn, `{"type":"auth","token":"t","lastSequence":0}`)
		receives(t, conn, "auth_ok", 0)
		began := time.Now()
		for range 5 {
			receives(t, conn, "heartbeat", 0)
			says(t, conn, `{"type":"pong"}`)
		}
		if took := time.Since(began); took != 150*time.Second {
			t.Errorf("five heartbeats took %s", took)
		}
		receives(t, conn, "heartbeat", 0)
		receives(t, conn, "heartbeat", 0)
		receives(t, conn, "", 4008)
		if took := time.Since(began); took != 240*time.Second {
			t.Errorf("closed after %s", took)
		}
	})
}

// A frame is charged to its sender, whatever it is, and one that is not paid for closes the socket. Who is not known yet has
// a few pings.
func TestSocketChargesFrames(t *testing.T) {
	ping := func(t *testing.T, conn *websocket.Conn) error {
		conn.CloseRead(t.Context()) // which receives the pongs
		return conn.Ping(t.Context())
	}
	for kind, send := range map[string]func(t *testing.T, conn *websocket.Conn){
		"pongs": func(t *testing.T, conn *websocket.Conn) { says(t, conn, `{"type":"pong"}`) },
		"unknown": func(t *testing.T, conn *websocket.Conn) {
			says(t, conn, `{"type":"zzz"}`)
			receives(t, conn, "error", 0)
		},
		"no JSON": func(t *testing.T, conn *websocket.Conn) { says(t, conn, `{`); receives(t, conn, "error", 0) },
	} {
		t.Run(kind, func(t *testing.T) {
			inBubble(t, idle{pays: 3}, func(t *testing.T, conn *websocket.Conn) {
				says(t, conn, `{"type":"auth","token":"t","lastSequence":0}`)
				receives(t, conn, "auth_ok", 0)
				for range 10 + 3 { // ten are free
					send(t, conn)
				}
				says(t, conn, `{"type":"pong"}`)
				receives(t, conn, "", 4008)
			})
		})
	}
	for name, auth := range map[string]string{"with a token": `{"type":"auth","token":"t","lastSequence":0}`, "without one": ""} {
		t.Run("pings "+name, func(t *testing.T) {
			inBubble(t, idle{pays: 4}, func(t *testing.T, conn *websocket.Conn) {
				if auth != "" {
					says(t, conn, auth)
					receives(t, conn, "auth_ok", 0)
				}
				answered := 0
				for ; answered < 20 && ping(t, conn) == nil; answered++ {
				}
				if want := map[bool]int{false: 4, true: 10 + 4}[auth != ""]; answered != want {
					t.Errorf("%d pings are answered, want %d", answered, want)
				}
			})
		})
	}
}

// Who is closed out, and goes on sending, is read no further.
func TestSocketEndsFlood(t *testing.T) {
	bubble(t, idle{}, func(t *testing.T, transport *http.Transport) {
		conn, err := transport.DialContext(t.Context(), "", "")
		testkit.Must(t, err)
		go io.Copy(io.Discard, conn) //nolint:errcheck // until it is closed
		_, err = io.WriteString(conn, "GET /v1/asp/sessions/s/ws HTTP/1.1\r\nHost: parley\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"+
			"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n")
		testkit.Must(t, err)
		began, sent := time.Now(), 0
		for frame := append([]byte{0x81, 0x80 | 100, 0, 0, 0, 0}, bytes.Repeat([]byte("{"), 100)...); sent < 8<<20; sent += len(frame) {
			if _, err := conn.Write(frame); err != nil {
				break
			}
		}
		if took := time.Since(began); sent > 3<<20 || took > 0 {
			t.Errorf("%d bytes were read, for %s", sent, took)
		}
	})
}

// Who has no entry yet may say so as a sequence number: -1 comes before 0.
func TestSocketFromTheFirst(t *testing.T) {
	inBubble(t, idle{entries: 1}, func(t *testing.T, conn *websocket.Conn) {
		says(t, conn, `{"type":"auth","token":"t","lastSequence":-1}`)
		receives(t, conn, "auth_ok", 0)
		receives(t, conn, "session_state", 0)
		receives(t, conn, "message", 0)
	})
	inBubble(t, idle{entries: 1}, func(t *testing.T, conn *websocket.Conn) {
		says(t, conn, `{"type":"auth","token":"t","lastSequence":-2}`)
		receives(t, conn, "", 4001)
	})
}

// A token that expires ends its sockets.
func TestSocketExpires(t *testing.T) {
	inBubble(t, idle{expires: time.Second}, func(t *testing.T, conn *websocket.Conn) {
		says(t, conn, `{"type":"auth","token":"t","lastSequence":0}`)
		receives(t, conn, "auth_ok", 0)
		receives(t, conn, "", 4001)
	})
}

// A client that does not read is cut off after 10 s.
func TestSocketSlowReader(t *testing.T) {
	inBubble(t, idle{}, func(t *testing.T, conn *websocket.Conn) {
		says(t, conn, `{"type":"auth","token":"t","lastSequence":0}`)
		synctest.Wait() // auth_ok is on its way
		later, cancel := context.WithTimeout(t.Context(), 11*time.Second)
		defer cancel()
		<-later.Done()
		if _, data, err := conn.Read(t.Context()); err == nil {
			t.Errorf("after 11 s it reads %s", data)
		}
	})
}
