package publiclog

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"golang.org/x/mod/sumdb/tlog"
)

// A log whose broker starts, or that was asked too often, is asked again when it says so, and one that is refused for
// good is not.
func TestGetWhileStarting(t *testing.T) {
	t.Parallel()
	asked := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch asked++; {
		case r.URL.Path == "/log/torn":
			w.WriteHeader(http.StatusServiceUnavailable)
		case asked < 3:
			w.Header().Set("Retry-After", "0")
			w.WriteHeader([]int{http.StatusServiceUnavailable, http.StatusTooManyRequests}[asked-1])
		default:
			w.Write([]byte("it")) //nolint:errcheck // the test reads it
		}
	}))
	t.Cleanup(s.Close)
	l, err := New(s.URL+"/log/", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if data, err := l.get(t.Context(), "checkpoint", 2); string(data) != "it" || asked != 3 {
		t.Errorf("after %d requests: %q, %v", asked, data, err)
	}
	asked = 0
	if _, err := l.get(t.Context(), "torn", 2); err == nil || asked != 1 {
		t.Errorf("after %d requests: %v", asked, err)
	}
}

// Tiles that were checked are read once, and few are kept.
func TestTilesKept(t *testing.T) {
	t.Parallel()
	asked := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		w.Write(make([]byte, tlog.HashSize)) //nolint:errcheck // the test reads it
	}))
	t.Cleanup(s.Close)
	l, err := New(s.URL, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	of := l.tiles(t.Context())
	for range 2 {
		for n := range int64(maxKept) {
			wanted := []tlog.Tile{{H: tileHeight, N: n, W: 1}}
			data, err := of.ReadTiles(wanted)
			if err != nil {
				t.Fatal(err)
			}
			of.SaveTiles(wanted, data)
		}
	}
	of.SaveTiles([]tlog.Tile{{H: tileHeight, N: maxKept + 1, W: 1}}, [][]byte{nil})
	if asked != maxKept || len(of.kept) > maxKept {
		t.Errorf("%d tiles were read %d times, and %d are kept", maxKept, asked, len(of.kept))
	}
}
