package inbox_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/parley-asp/parley/escalation"
)

// The form for several items is bounded, and leaves out what cannot be done.
func TestSeveral(t *testing.T) {
	t.Parallel()
	w, v := entersWorld(t, &escalation.Organisation{})
	_, id := escalates(w, beta, "plans")
	_, other := escalates(w, beta, "cups")
	get := func(what string, ids ...string) answer {
		return v.sends("GET", "/inbox/part/several?"+url.Values{"do": {what}, "id": ids}.Encode(), "")
	}
	for what, want := range map[string]string{"deny": "Deny 2 items", "pass": "Hand over 2 items"} {
		if got := get(what, id, other); got.status != http.StatusOK || !strings.Contains(got.body, want) || !strings.Contains(got.body, "plans") {
			t.Errorf("%s is answered %d %s", what, got.status, got.body)
		}
	}
	got := get("deny", id, "01900000-0000-7000-8000-000000000000")
	if !strings.Contains(got.body, "Deny 1 item<") || !strings.Contains(got.body, "left out: it is not there any more") {
		t.Errorf("with an item that is not there the form is %s", got.body)
	}
	for _, ids := range [][]string{nil, make([]string, 51)} {
		if got := get("deny", ids...); got.status != http.StatusUnprocessableEntity {
			t.Errorf("%d items are answered %d", len(ids), got.status)
		}
	}
	if strings.Contains(get("approve", id).body, "approved") {
		t.Error("several items can be approved")
	}
}

// An amount is understood in the language of the browser, by whoever is signed in.
func TestUnderstand(t *testing.T) {
	t.Parallel()
	w, v := entersWorld(t, &escalation.Organisation{})
	for language, want := range map[string]string{
		"de-DE,de;q=0.9": `"shown":"1.900,00` + "\u00a0" + `EUR"`, "en-GB": "Which one do you mean: 1,900.00", "": "Which one do you mean: 1,900.00",
	} {
		got := v.sends("GET", "/inbox/amount?typed=1.900&currency=eur", "", func(r *http.Request) { r.Header.Set("Accept-Language", language) })
		if got.status != http.StatusOK || !strings.Contains(got.body, want) {
			t.Errorf("in %q: %d %s", language, got.status, got.body)
		}
	}
	if got := visits(t, w.Broker).sends("GET", "/inbox/amount?typed=1", "", func(r *http.Request) { r.Header.Set("Parley-Inbox", "1") }); got.status != http.StatusUnauthorized {
		t.Errorf("who is not signed in is answered %d", got.status)
	}
}
