package inbox_test

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	ics "github.com/arran4/golang-ical"
	"github.com/go-json-experiment/json"

	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/test/testkit"
)

// makesFeed makes a feed, and returns its path.
func (v *visitor) makesFeed(proof map[string]any) string {
	v.Helper()
	status, body := v.posts("/inbox/feed", proof)
	var made struct {
		Path string `json:"path"`
	}
	if err := json.Unmarshal([]byte(body), &made); err != nil || status != http.StatusOK {
		v.Fatalf("%d %s", status, body)
	}
	return "/inbox/" + made.Path
}

// A calendar program reads what is due, whatever the parties wrote, without signing in. An obligation
// keeps its UID.
func TestCalendar(t *testing.T) {
	t.Parallel()
	w, v := entersWorld(t, &escalation.Organisation{Roles: map[string][]string{escalation.RoleAuditor: {string(alice)}}})
	long, due := strings.Repeat("Tassen; größer, als \\sie\\ sind: ", 12), in(48*time.Hour)
	gives, _ := promises(w, beta, alpha, "cups\r\nBEGIN:VEVENT",
		performatives.Obligation{ID: "long", Party: beta, Action: long, Deadline: due},
		performatives.Obligation{ID: "brought", Party: beta, Action: "bring spoons\r\nEND:VCALENDAR", Quantity: number(4)},
		performatives.Obligation{ID: "undated", Party: beta, Action: "say thanks"},
	)
	_, err := gives.Inform(w.Ctx, performatives.Result, performatives.ResultData{CommitmentID: "k1", Obligation: "brought"})
	testkit.Must(t, err)
	path := v.makesFeed(map[string]any{})
	program := visits(t, w.Broker) // without the cookie
	reads := func() map[string]*ics.VEvent {
		t.Helper()
		got := program.sends("GET", path, "")
		if got.status != http.StatusOK || got.header.Get("Content-Type") != "text/calendar; charset=utf-8" {
			t.Fatalf("the feed is answered %d, %s: %s", got.status, got.header.Get("Content-Type"), got.body)
		}
		for line := range strings.SplitSeq(strings.TrimSuffix(got.body, "\r\n"), "\r\n") {
			if len(line) > 75 || strings.ContainsAny(line, "\r\n") {
				t.Errorf("a line of %d octets, or no CRLF: %q", len(line), line)
			}
		}
		calendar, err := ics.ParseCalendar(strings.NewReader(got.body))
		testkit.Must(t, err)
		events := map[string]*ics.VEvent{}
		for _, e := range calendar.Events() {
			events[strings.Fields(e.GetProperty(ics.ComponentPropertySummary).Value)[0]] = e
		}
		return events
	}
	events := reads()
	if len(events) != 2 {
		t.Fatalf("the feed has %d events, want 2", len(events))
	}
	first := events["Tassen;"]
	begins, err := first.GetStartAt()
	testkit.Must(t, err)
	if summary := first.GetProperty(ics.ComponentPropertySummary).Value; !strings.HasPrefix(long, strings.TrimSuffix(summary, "…")) || len(summary) < 200 {
		t.Errorf("its summary is %q", summary)
	}
	if !begins.Equal(due.Truncate(time.Second)) {
		t.Errorf("it begins %s, want %s", begins, due)
	}
	if stamped, err := first.GetDtStampTime(); err != nil || time.Since(stamped) > time.Hour {
		t.Errorf("it is stamped %s, %v", stamped, err)
	}
	about := events["bring"].GetProperty(ics.ComponentPropertyDescription).Value
	for _, want := range []string{"Status: Delivered, to be answered\n", "to be accepted or rejected by alpha of acme.example\n", "Still due: 4 of 4\n", "Session: " + string(gives.ID())} {
		if !strings.Contains(about, want) {
			t.Errorf("the description %q does not have %q", about, want)
		}
	}
	_, err = gives.Inform(w.Ctx, performatives.Result, performatives.ResultData{CommitmentID: "k1", Obligation: "long"})
	testkit.Must(t, err)
	if again := reads()["Tassen;"]; again == nil || again.Id() != first.Id() {
		t.Error("the obligation has another UID once it was delivered")
	}
}

// A feed's token reads the feed and nothing else, is shown once, and ends when it is removed. Only the
// browser's key makes one.
func TestFeedToken(t *testing.T) {
	t.Parallel()
	b, v := serve(t, testkit.Options{})
	b.Register(alice)
	enrol := v.proof(v.root)
	enrol["code"] = code(t, b, alice)
	if status, body := v.posts("/inbox/enrol", enrol); status != http.StatusOK {
		t.Fatal(body)
	}
	const purpose = "parley inbox: calendar feed"
	for what, p := range map[string]map[string]any{
		"no proof": {}, "a proof that signs in": v.proof(v.root), "a proof for another origin": v.proofFor("https://evil.example", purpose),
	} {
		if status, _ := v.posts("/inbox/feed", p); status != http.StatusUnauthorized {
			t.Errorf("%s is answered %d", what, status)
		}
	}
	path := v.makesFeed(v.proofFor(v.root, purpose))
	program := visits(t, b)
	reads := func(path string) int { return program.sends("GET", path, "").status }
	if got := reads(path); got != http.StatusOK {
		t.Fatalf("the feed is answered %d", got)
	}
	token := strings.TrimSuffix(strings.TrimPrefix(path, "/inbox/calendar/"), ".ics")
	for _, elsewhere := range []string{"/v1/asp/sessions", "/v1/asp/turns/wait", "/mcp"} {
		bearer := func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) }
		if got := program.sends("GET", elsewhere, "", bearer); got.status < 400 {
			t.Errorf("the token of a feed is answered %d at %s", got.status, elsewhere)
		}
	}
	_, err := b.Broker.Service.Tokens(t.Context(), token)
	if err == nil {
		t.Error("the token of a feed lets in")
	}
	wrong := token[:len(token)-1] + string(token[len(token)-1]^1)
	for _, p := range []string{"/inbox/calendar/" + token, "/inbox/calendar/" + wrong + ".ics", "/inbox/calendar/.ics", "/inbox/calendar/" + url.PathEscape(string(alice)) + ".ics"} {
		if got := reads(p); got != http.StatusNotFound {
			t.Errorf("%s is answered %d", p, got)
		}
	}
	page := v.sends("GET", "/inbox/settings", "").body
	if strings.Contains(page, token) {
		t.Error("the settings show the token")
	}
	id := regexp.MustCompile(`data-unfeed="([a-z2-7]+)"`).FindStringSubmatch(page)
	if id == nil {
		t.Fatal("the settings do not list the feed")
	}
	if status, _ := v.posts("/inbox/feed/remove", map[string]any{"id": strings.Repeat("a", len(id[1]))}); status != http.StatusNotFound {
		t.Errorf("removing a feed that is not there is answered %d", status)
	}
	if status, body := v.posts("/inbox/feed/remove", map[string]any{"id": id[1]}); status != http.StatusOK {
		t.Fatal(body)
	}
	if got := reads(path); got != http.StatusNotFound {
		t.Errorf("the removed feed is answered %d", got)
	}
	for n := range 11 {
		if status, body := v.posts("/inbox/feed", v.proofFor(v.root, purpose)); (status == http.StatusOK) != (n < 10) {
			t.Errorf("feed %d is answered %d %s", n+1, status, body)
		}
	}
}
