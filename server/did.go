package server

import (
	"net/http"

	"github.com/go-json-experiment/json"

	"github.com/parley-asp/parley/agreement"
	"github.com/parley-asp/parley/performatives"
)

// did serves the DID document of an agent that has a key, for everybody: what an
// agreement is signed with can be looked up where the party is registered.
func (s *Server) did(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Access-Control-Allow-Origin", "*")
	a, err := performatives.ParseToken(r.PathValue("token"))
	own, hosted := s.KeysOf(a)
	if err != nil || a.IsHuman() || own == "" && hosted == "" { // documents of humans would list who they are
		h.Set("Cache-Control", "no-store")
		http.Error(w, "no such DID", http.StatusNotFound)
		return
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
