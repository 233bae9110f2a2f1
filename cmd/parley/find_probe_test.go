package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/api/render"
	"github.com/parley-asp/parley/discovery"
)

// Agents elsewhere are ranked beside those of the broker; one that hangs holds up nobody for longer
// than it may take.
func TestProbed(t *testing.T) {
	t.Parallel()
	good := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"accepted":true,"score":0.7,"confidence":0.9}`))
	}))
	t.Cleanup(good.Close)
	released := make(chan struct{})
	hangs := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-released }))
	t.Cleanup(func() { close(released); hangs.Close() })
	begun := time.Now()
	elsewhere, warnings := probeAll(t.Context(), []string{hangs.URL, good.URL + "/agent/negotiation"}, discovery.Task{Summary: "pdf"}, 8*time.Second)()
	if took := time.Since(begun); took > time.Minute || len(elsewhere) != 1 || len(warnings) != 1 {
		t.Errorf("after %s: %+v %q", took, elsewhere, warnings)
	}
	rank, err := discovery.ParsePolicy("best")
	if err != nil {
		t.Fatal(err)
	}
	ours := func(score float64) discovery.Candidate {
		return discovery.Candidate{Agent: "agent://a.example/x", Source: discovery.ByRegistry, Assessment: discovery.Assessment{Accepted: true, Score: score}}
	}
	found := api.Proposals{Candidates: []discovery.Candidate{ours(0.8), ours(0.6)}}
	merge(&found, elsewhere, warnings, rank, 2)
	text := render.Proposals(found, render.Style{})
	if len(found.Candidates) != 2 || found.Candidates[1].URL == "" || !found.Truncated || !strings.Contains(text, good.URL) || !strings.Contains(text, "warning: "+hangs.URL) {
		t.Errorf("%+v\n%s", found, text)
	}
}
