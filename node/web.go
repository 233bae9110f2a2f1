package node

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"time"

	"go.uber.org/zap"

	"github.com/parley-asp/parley/broker"
)

// web is the HTTP listener: for now, what an orchestrator asks of a process.
type web struct {
	addr   string
	server *http.Server
}

func openWeb(address string, tlsConfig *tls.Config, log *zap.Logger, n *Node) (*web, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, r *http.Request) {
		if err := n.Healthy(r.Context()); err != nil {
			http.Error(w, "unavailable", http.StatusServiceUnavailable)
			return
		}
		w.Write([]byte("ok\n")) //nolint:errcheck // the client went away
	})
	mux.HandleFunc("GET /version", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(map[string]string{"version": broker.Version, "broker": string(n.Key())}) //nolint:errcheck // the client went away
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	// What it has to say is about strangers, such as one that speaks no TLS.
	if server.ErrorLog, err = zap.NewStdLogAt(log, zap.DebugLevel); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	if tlsConfig != nil {
		server.TLSConfig = tlsConfig.Clone() // it adds HTTP/2 to it
		go server.ServeTLS(listener, "", "") //nolint:errcheck // it ends with close
	} else {
		go server.Serve(listener) //nolint:errcheck // it ends with close
	}
	return &web{listener.Addr().String(), server}, nil
}

func (w *web) close(ctx context.Context) { w.server.Shutdown(ctx) } //nolint:errcheck // the process ends
