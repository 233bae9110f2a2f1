// Package web carries what a client asks over HTTP with a token, in place of NATS.
package web

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
)

// A Conn is a broker's HTTP, and the token of a principal.
type Conn struct {
	Agent performatives.Agent // whose token it is

	url, token string
	transport  *http.Transport
}

// New is the broker's HTTP at an address such as http://127.0.0.1:8080. It keeps so many idle
// connections.
func New(address, token string, idle int) (*Conn, error) {
	at, err := url.Parse(address)
	if err != nil || at.Host == "" {
		return nil, fmt.Errorf("%q is no URL of HTTP", address)
	}
	return &Conn{url: strings.TrimSuffix(address, "/"), token: token, transport: &http.Transport{Proxy: http.ProxyFromEnvironment, MaxIdleConnsPerHost: idle}}, nil
}

// Close closes what is idle.
func (w *Conn) Close() { w.transport.CloseIdleConnections() }

// send sends a request with the token.
func (w *Conn) send(ctx context.Context, method, path, contentType string, body []byte, last string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, w.url+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+w.token)
	if w.Agent != "" {
		r.Header.Set(api.AgentHeader, string(w.Agent))
	}
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	if last != "" {
		r.Header.Set("Last-Event-ID", last)
	}
	if traceparent := Trace(ctx); traceparent != "" {
		r.Header.Set(TraceParent, traceparent)
	}
	reply, err := w.transport.RoundTrip(r)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", nats.ErrDisconnected, err) // to be asked again
	}
	if reply.StatusCode < http.StatusBadRequest {
		return reply, nil
	}
	defer reply.Body.Close() //nolint:errcheck // it has been read
	data, err := io.ReadAll(reply.Body)
	var problem struct {
		api.Error
		Detail string `json:"detail"`
	}
	if err != nil || json.Unmarshal(data, &problem) != nil || problem.Code == "" {
		return nil, fmt.Errorf("client: the broker answered %s: %.200s", reply.Status, data)
	}
	problem.Message = problem.Detail
	return nil, api.ErrorReply{Error: problem.Error}.Refusal()
}

// Request does over HTTP what a NATS request on the subject does.
func (w *Conn) Request(ctx context.Context, subject string, data []byte) ([]byte, error) {
	method, path, contentType, body, err := route(subject, data)
	if err != nil {
		return nil, err
	}
	reply, err := w.send(ctx, method, path, contentType, body, "")
	if err != nil {
		return nil, err
	}
	defer reply.Body.Close() //nolint:errcheck // it has been read
	answer, err := io.ReadAll(reply.Body)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", nats.ErrDisconnected, err)
	}
	if reply.StatusCode == http.StatusNoContent {
		return []byte("{}"), nil
	}
	if strings.HasSuffix(subject, api.BrokerInfo.Name) {
		var version struct {
			Broker performatives.Key        `json:"broker"`
			Keys   performatives.KeyHistory `json:"keys"`
		}
		if err := json.Unmarshal(answer, &version); err != nil {
			return nil, err
		}
		return json.Marshal(api.Broker{Key: version.Broker, Keys: version.Keys})
	}
	return answer, nil
}

// Events calls each with what comes to the inbox after an event, until the stream ends.
func (w *Conn) Events(ctx context.Context, after uint64, each func(id uint64, data []byte) error) error {
	reply, err := w.send(ctx, http.MethodGet, api.InboxEventsEndpoint.Path(), "", nil, strconv.FormatUint(after, 10))
	if err != nil {
		return err
	}
	defer reply.Body.Close() //nolint:errcheck // nobody reads it any more
	lines := bufio.NewScanner(reply.Body)
	lines.Buffer(nil, 2*performatives.MaxEnvelope)
	var id uint64
	for lines.Scan() {
		switch field, value, _ := strings.Cut(lines.Text(), ": "); field {
		case "id":
			if id, err = strconv.ParseUint(value, 10, 64); err != nil {
				return err
			}
		case "data":
			if err := each(id, []byte(value)); err != nil {
				return err
			}
		}
	}
	return lines.Err()
}
