package bindugateway

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/parley-asp/parley/discovery"
)

// seeds/bindu-agent-negotiation.txt: an orchestrator asks agents by their base URL, or at the path.
func TestProbe(t *testing.T) {
	t.Parallel()
	answer, status := "", http.StatusOK
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || r.URL.Path != "/agent/negotiation" {
			t.Errorf("%s %s", r.Method, r.URL)
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(answer))
	}))
	t.Cleanup(s.Close)
	for answer, status = range map[string]int{
		`{"accepted":true,"score":0.89,"confidence":0.95,"extra":1}`: 200,
	} {
		for _, at := range []string{s.URL, s.URL + "/", s.URL + "/agent/negotiation"} {
			a, err := Probe(t.Context(), s.Client(), at, discovery.Task{Summary: "pdf"})
			if err != nil || !a.Accepted || a.Score != 0.89 {
				t.Errorf("%s answers %+v %v", at, a, err)
			}
		}
	}
	for _, bad := range []string{``, `[]`, `{}`, `{"accepted":true}`, `{"accepted":true,"score":7}`, `{"accepted":true,"score":"1"}`, strings.Repeat(" ", maxProbed) + `{"accepted":true,"score":1}`} {
		answer = bad
		if _, err := Probe(t.Context(), s.Client(), s.URL, discovery.Task{Summary: "pdf"}); !errors.Is(err, ErrProbe) {
			t.Errorf("%.40q: %v", bad, err)
		}
	}
	answer, status = `{"accepted":true,"score":1}`, http.StatusTeapot
	if _, err := Probe(t.Context(), s.Client(), s.URL, discovery.Task{Summary: "pdf"}); !errors.Is(err, ErrProbe) {
		t.Error(err)
	}
	for _, bad := range []string{"", "agent1:3773", "ftp://agent1", "http://u:p@agent1", "http://"} {
		if at, err := ProbeURL(bad); err == nil {
			t.Errorf("%q is asked at %s", bad, at)
		}
	}
}
