package server

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/parley-asp/parley/internal/publicnet"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session/agreement"
)

// did serves the DID document of an agent that has a key, for everybody: what an
// agreement is signed with can be looked up where the party is registered.
func (s *Server) did(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Access-Control-Allow-Origin", "*")
	a, err := performatives.ParseToken(r.PathValue("token"))
	own, hosted := s.Broker.Parts.Registry.KeysOf(a)
	if err != nil || a.IsHuman() || own == "" && hosted == "" { // documents of humans would list who they are
		h.Set("Cache-Control", "no-store")
		http.Error(w, "no such DID", http.StatusNotFound)
		return
	}
	if own != "" { // what the installation holds speaks for nobody who has a key of its own
		hosted = ""
	}
	data, err := json.Marshal(agreement.DIDDocumentOf(a, own, hosted), json.Deterministic(true))
	if err != nil {
		http.Error(w, "no such DID", http.StatusInternalServerError)
		return
	}
	h.Set("Content-Type", "application/did+ld+json")
	h.Set("Cache-Control", "public, max-age=60") // a key may be replaced
	w.Write(append(data, '\n'))                  //nolint:errcheck // the client went away
}

// Bounds of a DID document, which is fetched only while an operator registers it.
const (
	didWithin   = 5 * time.Second
	maxDocument = 64 << 10 // bytes
)

var errDIDHost = errors.New("its host is none of those that --did-hosts lists")

// didDocuments reads DID documents of the hosts that are listed, at public addresses, and
// follows no redirect.
func didDocuments(hosts []string) func(ctx context.Context, url string) ([]byte, error) {
	client := publicnet.Client(didWithin, false)
	return func(ctx context.Context, url string) ([]byte, error) { return fetchDID(ctx, client, hosts, url) }
}

func fetchDID(ctx context.Context, client *http.Client, hosts []string, location string) ([]byte, error) {
	u, err := url.Parse(location)
	if err != nil || u.Scheme != "https" || !slices.Contains(hosts, u.Host) {
		return nil, errDIDHost
	}
	return publicnet.Get(ctx, client, location, "application/did+ld+json, application/did+json, application/json", maxDocument)
}
