package a2agateway

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/parley-asp/parley/internal/publicnet"
)

// A broker reaches agents at private addresses only if its operator says so, and nothing but
// their own origin.
func TestRemote(t *testing.T) {
	t.Parallel()
	asked := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		http.NotFound(w, nil)
	}))
	t.Cleanup(s.Close)
	r := remote{client: remoteClient(false), agent: "agent://127.0.0.1/robot", url: s.URL}
	if _, err := r.connect(t.Context()); !errors.Is(err, publicnet.ErrPrivate) || asked != 0 {
		t.Errorf("a server at a private address was asked %d times: %v", asked, err)
	}
	r.url = "https://widgets.co/robot"
	for url, want := range map[string]error{
		"https://widgets.co/keys": nil, "https://WIDGETS.co:443/": nil, "http://widgets.co/keys": ErrOrigin, "https://widgets.co:8443/keys": ErrOrigin,
		"https://other.widgets.co/keys": ErrOrigin, "https://widgets.co@evil.example/": ErrOrigin, "//widgets.co/": ErrOrigin, "": ErrOrigin,
	} {
		if err := r.sameOrigin(url); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", url, err, want)
		}
	}
}
