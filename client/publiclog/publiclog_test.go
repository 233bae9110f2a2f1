package publiclog

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// A log whose broker starts is asked again when it says so, and one that is refused for good is not.
func TestGetWhileStarting(t *testing.T) {
	t.Parallel()
	asked := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch asked++; {
		case r.URL.Path == "/log/torn":
			w.WriteHeader(http.StatusServiceUnavailable)
		case asked < 3:
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusServiceUnavailable)
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
