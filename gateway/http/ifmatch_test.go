package httpgateway_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/test/testkit"
)

// GATEWAYS.md G9: a session is not closed on a view that is not the newest, and the answer to a turn does not
// ignore the head that it comes with.
func TestIfMatch(t *testing.T) {
	t.Parallel()
	w := testkit.NewHosted(t, testkit.Options{})
	id := w.Match()
	of := testkit.SessionPath(id)
	match := func(tag string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set("If-Match", tag) }
	}
	newest := func() string {
		t.Helper()
		return w.Send("GET", of+"/snapshot", w.Tokens[cron], "").Header.Get("ETag")
	}
	turn := w.PickUp(w.Tokens[cron])
	for _, tag := range []string{newest(), "junk"} {
		a := w.Send("POST", "/v1/asp/turns/"+turn.Claim.ID+"/respond", w.Tokens[cron], `{"performative":"PROPOSE","body":{}}`, match(tag))
		a.Refused(http.StatusBadRequest, session.MalformedEnvelope)
		if tag != "junk" && !strings.Contains(string(a.Body), "POST /sessions/{sessionId}/messages takes it") {
			t.Errorf("the answer to a turn is refused %s", a.Body)
		}
	}
	stale := newest()
	w.Send("POST", of+"/messages", w.Tokens[seller], `{"performative":"OBSERVE","body":{"subject":"wait"}}`).Is(http.StatusOK, nil)
	const abandons = `{"outcome":"abandoned"}`
	a := w.Send("DELETE", of, w.Tokens[cron], abandons, match(stale))
	a.Refused(http.StatusPreconditionFailed, session.ChainConflict)
	if !strings.Contains(string(a.Body), `"snapshot":{`) {
		t.Errorf("a stale CLOSE is refused without the snapshot: %s", a.Body)
	}
	w.Send("DELETE", of, w.Tokens[cron], abandons, match("junk")).Refused(http.StatusBadRequest, session.MalformedEnvelope)
	w.Send("DELETE", of, w.Tokens[cron], abandons, match(newest())).Is(http.StatusOK, nil)
}
