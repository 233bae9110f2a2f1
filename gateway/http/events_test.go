package httpgateway_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/parley-asp/parley/broker/limits"
)

// reads opens a stream of events after last and reads its lines.
func reads(t *testing.T, transport *http.Transport, last string) *bufio.Scanner {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://parley/v1/asp/sessions/s/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer t")
	if last != "" {
		r.Header.Set("Last-Event-ID", last)
	}
	reply, err := transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { reply.Body.Close() })
	if reply.StatusCode != http.StatusOK || reply.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("answered %s %v", reply.Status, reply.Header)
	}
	lines := bufio.NewScanner(reply.Body)
	lines.Buffer(nil, 1<<20)
	return lines
}

// GATEWAYS.md G2: a comment every 15 s, and nothing else while there is no event.
func TestEventsComment(t *testing.T) {
	bubble(t, idle{}, func(t *testing.T, transport *http.Transport) {
		lines, began, comments := reads(t, transport, ""), time.Now(), 0
		for comments < 4 && lines.Scan() {
			if lines.Text() != ": asp" { // a parser that takes each blank line for the end of an event would see empty ones
				t.Errorf("an idle stream has the line %q", lines.Text())
			}
			comments++
		}
		if took := time.Since(began); took != 45*time.Second {
			t.Errorf("the first comment and three more took %s", took)
		}
		transport.CloseIdleConnections()
	})
}

// A stream beyond the bound of its principal is refused, and one that ended leaves room.
func TestEventsBound(t *testing.T) {
	accounts := limits.NewAccounts(limits.Limits{Streams: 1}.WithDefaults(), time.Now)
	bubble(t, idle{limits: accounts}, func(t *testing.T, transport *http.Transport) {
		leave, err := accounts.Of(idler).Hold(limits.Streams, 1)
		if err != nil {
			t.Fatal(err)
		}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://parley/v1/asp/sessions/s/events", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer t")
		reply, err := transport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(reply.Body)
		reply.Body.Close()
		if err != nil || reply.StatusCode != http.StatusTooManyRequests || reply.Header.Get("Retry-After") != "1" || !strings.Contains(string(text), `"limit":"streams"`) {
			t.Errorf("answered %s %s %v", reply.Status, text, err)
		}
		leave()
		reads(t, transport, "")
	})
}

// A token that expires ends its streams.
func TestEventsExpire(t *testing.T) {
	bubble(t, idle{expires: time.Second}, func(t *testing.T, transport *http.Transport) {
		lines, began := reads(t, transport, ""), time.Now()
		for lines.Scan() {
			continue // until the stream ends
		}
		if took := time.Since(began); took != time.Second {
			t.Errorf("the stream ends after %s", took)
		}
	})
}

// GATEWAYS.md G2: a reader that is slow for 10 s loses its connection, and no entry.
func TestEventsSlowReader(t *testing.T) {
	const entries = 20
	bubble(t, idle{entries: entries}, func(t *testing.T, transport *http.Transport) {
		var received []int
		for last := ""; len(received) < entries; {
			lines, before := reads(t, transport, last), len(received)
			id := ""
			for lines.Scan() {
				switch field, value, _ := strings.Cut(lines.Text(), ": "); field {
				case "id":
					id = value
				case "data":
					n, err := strconv.Atoi(id)
					if err != nil {
						continue // of session_state
					}
					last, id, received = id, "", append(received, n)
					if len(received) == before+2 && len(received) < entries-4 { // then it reads nothing for 11 s
						later, cancel := context.WithTimeout(t.Context(), 11*time.Second)
						<-later.Done()
						cancel()
					}
				}
				if len(received) == entries {
					break
				}
			}
			if len(received) == before {
				t.Fatalf("after %v a stream brings nothing", received)
			}
			if len(received) == entries && before == 0 {
				t.Error("a slow reader kept its connection")
			}
		}
		for n, got := range received {
			if n != got {
				t.Fatalf("it received %v", received)
			}
		}
	})
}

// An event's data is the entry, byte for byte: whoever verifies it needs what was signed. What
// Unicode calls a line break ends no line of an event stream.
func TestEventsAreExact(t *testing.T) {
	const breaks = "\u0085\u2028\u2029"
	bubble(t, idle{entries: 1, text: breaks}, func(t *testing.T, transport *http.Transport) {
		for lines := reads(t, transport, ""); lines.Scan(); {
			data, is := strings.CutPrefix(lines.Text(), "data: ")
			if !is || !strings.Contains(data, `"text"`) {
				continue
			}
			if !strings.HasSuffix(data, breaks+`"}`) {
				t.Errorf("the entry ends with %q", data[len(data)-40:])
			}
			break
		}
		transport.CloseIdleConnections()
	})
}

// A body is read as it comes: one that is said to be encoded is refused, and its act is not accepted.
func TestEncodedBody(t *testing.T) {
	bubble(t, idle{}, func(t *testing.T, transport *http.Transport) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://parley/v1/asp/sessions/s/messages", strings.NewReader(`{"performative":"OBSERVE","body":{"subject":"x"}}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer t")
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Content-Encoding", "gzip")
		reply, err := transport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		defer reply.Body.Close()
		if reply.StatusCode != http.StatusUnsupportedMediaType || reply.Header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("answered %s %v", reply.Status, reply.Header)
		}
	})
}

// A body that comes too slowly is refused, and its act is not accepted.
func TestSlowBody(t *testing.T) {
	bubble(t, idle{}, func(t *testing.T, transport *http.Transport) {
		body, rest := io.Pipe()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://parley/v1/asp/sessions/s/messages", body)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer t")
		r.Header.Set("Content-Type", "application/json")
		go io.WriteString(rest, `{"performative":`) //nolint:errcheck // and then nothing
		began := time.Now()
		reply, err := transport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		defer reply.Body.Close()
		if took := time.Since(began); reply.StatusCode != http.StatusRequestTimeout || reply.Header.Get("Content-Type") != "application/problem+json" || took != 30*time.Second {
			t.Errorf("answered %s %v after %s", reply.Status, reply.Header, took)
		}
		rest.Close()
	})
}
