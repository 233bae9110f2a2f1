package server

import (
	"context"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"
	"go.uber.org/zap"

	"github.com/parley-asp/parley/internal/telemetry"
)

// monitor has the probes of an orchestrator and the metrics. With --monitor it listens before the broker starts and
// until it has stopped. There is no login: it tells nothing of a session or a principal.
type monitor struct {
	addr     string       // "" where only a collector gets the metrics
	server   *http.Server // nil there
	families *telemetry.Metrics
	data     string
	state    atomic.Pointer[Server] // while it serves
	ending   atomic.Bool

	mu     sync.Mutex // one probe at a time asks the store
	asked  time.Time
	answer error
}

// Bounds of /readyz: how long the store may take to answer, and how long its answer holds.
const (
	readyWithin = 2 * time.Second
	readyFor    = time.Second
)

func openMonitor(o Options, log *zap.Logger) (*monitor, error) {
	m := &monitor{families: newMetrics(), data: o.Data}
	m.families.Gauge("ready", "1 while an act could be accepted, as /readyz says, else 0.", nil, func(set telemetry.Set) {
		if m.unready() == "" {
			set(1)
		} else {
			set(0)
		}
	})
	if o.Monitor == "" {
		return m, nil
	}
	listener, err := net.Listen("tcp", o.Monitor)
	if err != nil {
		return nil, err
	}
	m.addr = listener.Addr().String()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { probed(w, m.wedged()) })
	mux.HandleFunc("GET /startupz", func(w http.ResponseWriter, _ *http.Request) {
		if m.state.Load() == nil && !m.ending.Load() {
			probed(w, "starting")
			return
		}
		probed(w, "")
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) { probed(w, m.unready()) })
	if m.server, err = newHTTPServer(mux, log); err != nil {
		listener.Close() //nolint:errcheck // the first error counts
		return nil, err
	}
	mux.Handle("GET /metrics", m.families.Handler(m.server.ErrorLog))
	go m.server.Serve(listener) //nolint:errcheck // returns when closed
	return m, nil
}

// wedged says why only a restart helps; "" if it would not, or nothing has to be helped.
func (m *monitor) wedged() string {
	s := m.state.Load()
	if s == nil || s.nats == nil || m.ending.Load() {
		return ""
	}
	why := s.nats.Broken()
	if why == nil || s.writable() != nil {
		return ""
	}
	if free, size, ok := diskOf(m.data); !ok || free < min(fewBytes, size/8) {
		return ""
	}
	return "the embedded server stores nothing until it is restarted: " + why.Error()
}

// healthy says why no act could be stored now.
func (s *Server) healthy(ctx context.Context) error {
	if s.nats != nil {
		if err := s.writable(); err != nil {
			return err
		}
	}
	return s.Broker.Command.Healthy(ctx)
}

// unready says why no act could be accepted now; "" if one could.
func (m *monitor) unready() string {
	s := m.state.Load()
	switch {
	case m.ending.Load():
		return "stopping"
	case s == nil:
		return "starting"
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if time.Since(m.asked) > readyFor {
		// Not the prober's context: others get the answer too.
		ctx, cancel := context.WithTimeout(context.Background(), readyWithin)
		m.answer = s.healthy(ctx)
		cancel()
		m.asked = time.Now()
	}
	if m.answer != nil {
		return m.answer.Error()
	}
	return ""
}

// probed answers a probe by one line of JSON: 503 with the reason, if there is one.
func probed(w http.ResponseWriter, reason string) {
	status, body := http.StatusOK, map[string]string{"status": "ok"}
	if reason != "" {
		status, body = http.StatusServiceUnavailable, map[string]string{"status": "unavailable", "reason": reason}
	}
	data, err := json.Marshal(body, json.Deterministic(true))
	if err != nil {
		status, data = http.StatusInternalServerError, nil
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(append(data, '\n')) //nolint:errcheck // the client went away
}

// begin and stop say when s serves; a server without a monitor has nobody to tell.
func (m *monitor) begin(s *Server) {
	if m != nil {
		readMetrics(m.families, s, m.data)
		m.state.Store(s)
	}
}

func (m *monitor) stop() {
	if m != nil {
		m.ending.Store(true)
	}
}

func (m *monitor) close() {
	if m != nil && m.server != nil {
		m.server.Close() //nolint:errcheck // the process exits
	}
}
