package conformance

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/parley-asp/parley/test/testkit"
)

// TestDecidedOnASnapshot (GATEWAYS.md G9): an act over HTTP that was decided on one snapshot is not
// said into another, whoever was faster; the refusal has the snapshot to decide on anew.
func TestDecidedOnASnapshot(t *testing.T) {
	t.Parallel()
	b, nc := dev(t)
	id := open(t, nc)
	accepted(t, ask(t, nc, submitSubject(beta, id), []byte(envelope(id, beta, "PROPOSE", `{"proposalId":"p1","type":"x","subject":"cups","terms":{"price":10}}`))))
	send := func(method, path, match, body string) testkit.Answer {
		return testkit.Do(t, func() *http.Request {
			r, err := http.NewRequestWithContext(t.Context(), method, "http://"+b.HTTPAddr+"/v1/asp/sessions/"+id+path, strings.NewReader(body))
			testkit.Must(t, err)
			r.Header.Set("Authorization", "Bearer "+alpha)
			if body != "" {
				r.Header.Set("Content-Type", "application/json")
			}
			if match != "" {
				r.Header.Set("If-Match", match)
			}
			return r
		})
	}
	seen := send(http.MethodGet, "/snapshot", "", "")
	var snapshot struct {
		Head   struct{ Hash string }
		Offers []struct{ Text string }
	}
	testkit.Must(t, json.Unmarshal(seen.Body, &snapshot))
	tag := seen.Header.Get("ETag")
	if tag != `"`+snapshot.Head.Hash+`"` || snapshot.Offers[0].Text != "beta offers price 10" {
		t.Errorf("ETag %s of %s", tag, seen.Body)
	}

	accepted(t, ask(t, nc, submitSubject(beta, id), []byte(envelope(id, beta, "PROPOSE", `{"proposalId":"p2","type":"x","subject":"cups","terms":{"price":99}}`))))
	stale := send(http.MethodPost, "/messages", tag, `{"performative":"CLOSE","body":{}}`)
	var refused struct {
		Code    string
		Details struct {
			Snapshot struct {
				Head   struct{ Hash string }
				Offers []struct{ Text string }
			}
		}
	}
	testkit.Must(t, json.Unmarshal(stale.Body, &refused))
	now := refused.Details.Snapshot
	if stale.StatusCode != http.StatusPreconditionFailed || refused.Code != "chain_conflict" || len(now.Offers) != 2 || now.Offers[1].Text != "beta offers price 99 (was 10)" {
		t.Errorf("a stale act: %d %s", stale.StatusCode, stale.Body)
	}
	for _, bad := range []string{"x", `"a", "b"`, `"`} {
		if a := send(http.MethodPost, "/messages", bad, `{"performative":"CLOSE","body":{}}`); a.StatusCode != http.StatusBadRequest {
			t.Errorf("If-Match %s: %d %s", bad, a.StatusCode, a.Body)
		}
	}
	if a := send(http.MethodPost, "/messages", fmt.Sprintf("%q", now.Head.Hash), `{"performative":"ACCEPT","body":{"referenceId":"p2"}}`); a.StatusCode != http.StatusOK {
		t.Errorf("an act at the head: %d %s", a.StatusCode, a.Body)
	}
}
