package server_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/test/testkit"
)

// What is owed is counted as it changes, and is there again after a start, which reads no transcript.
func TestMetricsOfObligations(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t, testkit.Options{Monitor: "127.0.0.1:0"})
	a, b := w.Principal(alpha), w.Principal(beta)
	owed := func(when string, due, asserted, overdue int) {
		t.Helper()
		testkit.Eventually(t, when, func() bool {
			text := scrape(t, w.MonitorAddr)
			for status, n := range map[string]int{"due": due, "asserted": asserted, "overdue": overdue, "disputed": 0} {
				if !strings.Contains(text, fmt.Sprintf("\nparley_obligations{status=%q} %d\n", status, n)) {
					return false
				}
			}
			return true
		})
	}
	id := w.Open(a, b)
	soon, late := time.Now().Add(time.Second).UTC().Format(time.RFC3339Nano), time.Now().Add(time.Hour).UTC().Format(time.RFC3339Nano)
	obligation := `{"id":"%d","party":%q,"action":"deliver","deadline":%q}`
	var promise performatives.CommitBody
	testkit.Must(t, json.Unmarshal(fmt.Appendf(nil, `{"commitmentId":"k1","terms":{"obligations":[`+obligation+`,`+obligation+`]}}`, 0, alpha, soon, 1, alpha, late), &promise))
	b.Say(id, &promise)
	a.Say(id, &performatives.AcceptBody{ReferenceID: "k1"})
	owed("one is breached", 1, 0, 1)
	a.Say(id, &performatives.InformBody{Type: performatives.Result, Data: []byte(`{"commitmentId":"k1","obligation":"1"}`)})
	owed("the other is delivered", 0, 1, 1)
	w.Down()
	w.Up()
	owed("after a start", 0, 1, 1)
}
