package server

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"go.uber.org/zap"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/inbox"
	"github.com/parley-asp/parley/performatives"
)

// web is the HTTP listener: what an orchestrator asks of a process, and the
// escalation inbox for people.
type web struct {
	addr   string
	server *http.Server
	inbox  *inbox.Inbox
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
		data, err := json.Marshal(map[string]string{"version": api.Version, "broker": string(n.Key())}, json.Deterministic(true))
		if err == nil {
			w.Write(append(data, '\n')) //nolint:errcheck // the client went away
		}
	})
	pages := inbox.New(inbox.Options{Broker: n.Broker, Key: n.Key(), Dev: n.Dev, Humans: n.humans, Meet: n.meet, Log: log, Now: n.Now})
	mux.Handle("/inbox/", http.StripPrefix("/inbox", pages))
	for _, path := range []string{"GET /{$}", "GET /inbox"} {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "inbox/") // relative: a proxy in front may have a prefix
			w.WriteHeader(http.StatusSeeOther)
		})
	}
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
	return &web{listener.Addr().String(), server, pages}, nil
}

func (w *web) close(ctx context.Context) {
	w.inbox.Close()        // who follows live would never be idle
	w.server.Shutdown(ctx) //nolint:errcheck // the process ends
}

// crash goes without a word.
func (w *web) crash() {
	w.inbox.Close()
	w.server.Close() //nolint:errcheck // nobody is told
}

// humans are those to pick from under --dev.
func (n *Node) humans(ctx context.Context) ([]api.Card, error) {
	agents, err := ask(ctx, n, api.AgentList, api.ListAgents{Kind: performatives.KindHuman, Limit: api.MaxPage})
	return agents.Agents, err
}

// meet registers a human who is named for the first time, under --dev.
func (n *Node) meet(ctx context.Context, a performatives.Agent) error {
	humans, err := n.humans(ctx)
	if err != nil || slices.ContainsFunc(humans, func(c api.Card) bool { return c.Agent == a }) {
		return err
	}
	card := api.Card{Agent: a, Kind: performatives.KindHuman}
	card.Registry.MayDecide = true
	_, err = n.AddAgent(ctx, card)
	return err
}
