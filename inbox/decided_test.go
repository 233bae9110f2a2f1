package inbox_test

import (
	"encoding/csv"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/test/testkit"
)

// decides denies an item as alice, through the page.
func decides(t *testing.T, v *visitor, in performatives.SessionID, item, comment string) {
	t.Helper()
	data, err := json.Marshal(performatives.RulingData{EscalationID: item, Decision: performatives.Denied, Comment: comment})
	testkit.Must(t, err)
	envelope, err := performatives.Draft{
		ID: testkit.NewID(), Session: in, Timestamp: time.Now(), Sender: alice, Body: &performatives.InformBody{Type: performatives.Resolution, Data: data},
	}.Envelope(nil)
	testkit.Must(t, err)
	if status, body := v.posts("/inbox/submit", map[string]any{"sessionId": in, "envelope": jsontext.Value(envelope)}); status != http.StatusOK {
		t.Fatalf("%d %s", status, body)
	}
}

// The export has what the filters show, and no cell that a spreadsheet would compute.
func TestExport(t *testing.T) {
	t.Parallel()
	w, v := entersWorld(t, nil)
	in, item := escalates(w, beta, `=HYPERLINK("http://evil.example","click")`)
	decides(t, v, in, item, "@SUM(1),\nno")
	escalates(w, beta, "still open")
	read := func(query string) []map[string]string {
		t.Helper()
		got := v.sends("GET", "/inbox/decided.csv?"+query, "")
		if got.status != http.StatusOK || !strings.HasPrefix(got.header.Get("Content-Type"), "text/csv") || !strings.Contains(got.body, "\r\n") {
			t.Fatalf("%d %v %q", got.status, got.header, got.body)
		}
		rows, err := csv.NewReader(strings.NewReader(got.body)).ReadAll()
		testkit.Must(t, err)
		var all []map[string]string
		for _, row := range rows[1:] {
			cells := map[string]string{}
			for n, name := range rows[0] {
				cells[name] = row[n]
			}
			all = append(all, cells)
		}
		return all
	}
	rows := read("")
	if len(rows) != 1 {
		t.Fatalf("%d rows: %v", len(rows), rows)
	}
	for name, want := range map[string]string{
		"item": item, "session": string(in), "outcome": "denied", "decidedBy": string(alice), "comment": "'@SUM(1), no",
		"subject": `'=HYPERLINK("http://evil.example","click")`, "askedBy": string(alpha), "counterparties": string(beta), "amount": "1500", "currency": "USD",
	} {
		if rows[0][name] != want {
			t.Errorf("%s is %q, want %q", name, rows[0][name], want)
		}
	}
	// An item names what was decided about the same other organisation, and no other.
	_, next := escalates(w, "agent://widgets.example/gamma", "again")
	_, other := escalates(w, "agent://gadgets.example/delta", "elsewhere")
	for id, shown := range map[string]bool{next: true, other: false, item: false} {
		if got := v.sends("GET", "/inbox/part/items/"+id, "").body; strings.Contains(got, `<a href="items/`+item+`">`) != shown {
			t.Errorf("the history of %s names the item: %t", id, !shown)
		}
	}
	day, _, _ := strings.Cut(rows[0]["decidedAt"], "T")
	for query, want := range map[string]int{
		"outcome=denied": 1, "outcome=approved": 0, "by=alice": 1, "by=" + url.QueryEscape(string(alice)): 1, "by=bob": 0,
		"from=" + day + "&until=" + day: 1, "from=2126-01-01": 0, "until=2026-01-01&zone=Asia/Tokyo": 0,
	} {
		if rows := read(query); len(rows) != want {
			t.Errorf("%s exports %v", query, rows)
		}
	}
	for query, shown := range map[string]bool{"outcome=denied&by=alice": true, "outcome=approved": false} {
		got := v.sends("GET", "/inbox/?status=resolved&"+query, "").body
		if strings.Contains(got, item) != shown || !strings.Contains(got, `href="decided.csv?`) {
			t.Errorf("%s shows the item: %t", query, !shown)
		}
	}
	if got := v.sends("GET", "/inbox/decided.csv?from=monday", ""); got.status != http.StatusBadRequest {
		t.Errorf("a day that is none is answered %d", got.status)
	}
	if got := v.sends("GET", "/inbox/decided.csv?from="+day+"&zone=..%2F..%2Fetc%2Fpasswd", ""); got.status != http.StatusOK {
		t.Errorf("a zone that is none is answered %d", got.status)
	}
	if open := v.sends("GET", "/inbox/?outcome=denied", "").body; !slices.Contains(strings.Fields(open), `data-open="3">`) || !strings.Contains(open, "still open") {
		t.Error("the filters of what was decided hide what is open")
	}
}
