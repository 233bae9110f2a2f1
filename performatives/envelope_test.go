package performatives

import (
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
)

// TestRead is the whole envelope of PROTOCOL.md §3.
func TestRead(t *testing.T) {
	t.Parallel()
	m := mustRead(t, envelope)
	if m.Version != Version || m.ID != "019478a3-7b2c-7def-8a12-3456789abcde" || m.Session != "019478a3-0001-7def-8a12-000000000001" ||
		m.Sender != "agent://acme.com/procurement/alpha" || m.Recipient != "agent://widgets.co/sales/beta" ||
		m.Performative != Counter || m.ActName != "COUNTER" || m.Signature != "" ||
		!m.Timestamp.Equal(time.Date(2026, 3, 7, 14, 30, 0, 0, time.UTC)) {
		t.Errorf("%+v", m)
	}
	if m.Link == nil || m.Link.Sequence != 5 || !strings.HasSuffix(string(m.Link.PreviousHash), "aaaa") {
		t.Errorf("link: %+v", m.Link)
	}
	if c := m.Constraints; *c.MaxResponseTimeMs != 5000 || *c.RequiredTrustScore != 50 || len(c.AllowedPerformatives) != 2 {
		t.Errorf("constraints: %+v", c)
	}
	if string(m.RawBody) != `{"proposalId":"p2","referenceId":"p1","terms":{"price":100}}` {
		t.Errorf("body: %s", m.RawBody)
	}
	if err := m.DecodeBody(); err != nil || m.Body.(*CounterBody).ReferenceID != "p1" {
		t.Errorf("body: %+v, %v", m.Body, err)
	}
	if m := mustRead(t, bare); m.Link != nil || m.Recipient != "" || string(m.SigningBytes()) != `{"content":{"body":{"subject":"s"}},"integrity":{},`+
		`"messageId":"019478a3-7b2c-7def-8a12-3456789abcde","performative":"OBSERVE","sender":{"agentId":"agent://acme.com/a"},`+
		`"sessionId":"019478a3-0001-7def-8a12-000000000001","timestamp":"2026-03-07T14:30:00.000Z","version":"asp/0.1"}` {
		t.Errorf("%s", m.SigningBytes())
	}
}

// edit sets or, with nil, removes the member at a path in the whole envelope.
func edit(t testing.TB, path string, value any) string {
	t.Helper()
	var doc map[string]any
	if err := json.Unmarshal([]byte(envelope), &doc); err != nil {
		t.Fatal(err)
	}
	at := doc
	names := strings.Split(path[1:], "/")
	for _, name := range names[:len(names)-1] {
		at = at[name].(map[string]any)
	}
	last := names[len(names)-1]
	if value == nil {
		delete(at, last)
	} else {
		at[last] = value
	}
	raw, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

type null struct{}

func (null) MarshalJSON() ([]byte, error) { return []byte("null"), nil }

// TestRequired is PROTOCOL.md §3: what the sender must provide; null is not
// providing it.
func TestRequired(t *testing.T) {
	t.Parallel()
	for _, path := range []string{
		"/version", "/messageId", "/sessionId", "/timestamp", "/sender/agentId", "/performative", "/content/body",
	} {
		_, err := Read([]byte(edit(t, path, nil)))
		if why := wantMalformed(t, err, path); why != "is missing" {
			t.Errorf("%s: %s", path, why)
		}
		_, err = Read([]byte(edit(t, path, null{})))
		wantMalformed(t, err, path)
	}
	for path, at := range map[string]string{"/sender": "/sender/agentId", "/content": "/content/body"} {
		_, err := Read([]byte(edit(t, path, nil)))
		wantMalformed(t, err, at)
	}
	for _, path := range []string{
		"/recipient", "/constraints", "/content/mimeType", "/content/context", "/sender/orgId", "/x-trace", "/integrity/note",
		"/constraints/maxResponseTimeMs", "/constraints/requiredTrustScore", "/constraints/allowedPerformatives",
	} {
		if _, err := Read([]byte(edit(t, path, nil))); err != nil {
			t.Errorf("without %s: %v", path, err)
		}
	}
}

// TestIllTyped: what is ill-typed is malformed, and the path says where.
func TestIllTyped(t *testing.T) {
	t.Parallel()
	object, list := map[string]any{}, []any{}
	for _, tt := range []struct {
		path  string
		value any
		at    string // where it is not the path
		why   string
	}{
		{"/version", 1, "", "a string"},
		{"/messageId", 1, "", "a string"},
		{"/messageId", "m1", "", "UUIDv7"},
		{"/sessionId", true, "", "a string"},
		{"/sessionId", "019478A3-0001-7DEF-8A12-000000000001", "", "UUIDv7"},
		{"/timestamp", 1772893800, "", "a string"},
		{"/timestamp", "yesterday", "", "RFC 3339"},
		{"/sender", "agent://acme.com/a", "", "an object"},
		{"/sender/agentId", object, "", "a string"},
		{"/sender/agentId", "agent://ACME.com/a", "", "lower-case"},
		{"/sender/agentId", "broker://U123", "", "want"},
		{"/sender/orgId", 5, "", "a string"},
		{"/recipient", 5, "", "URI"},
		{"/recipient", list, "", "URI"},
		{"/recipient", "", "", "want"},
		{"/recipient", "beta", "", "want"},
		{"/recipient", "broker://" + string(testKey(t, "broker").Key()), "", "want"},
		{"/recipient", object, "/recipient/agentId", "want"},
		{"/recipient", map[string]any{"agentId": 5}, "/recipient/agentId", "a string"},
		{"/recipient", map[string]any{"agentId": "agent://acme.com/a", "orgId": 1}, "/recipient/orgId", "a string"},
		{"/performative", 4, "", "a string"},
		{"/content", list, "", "an object"},
		{"/content/body", list, "", "an object"},
		{"/content/body", "text", "", "an object"},
		{"/content/mimeType", 1, "", "a string"},
		{"/content/context", object, "", "a list"},
		{"/content/context", null{}, "", "a list"},
		{"/constraints", list, "", "an object"},
		{"/constraints/maxResponseTimeMs", "5000", "", "a number"},
		{"/constraints/maxResponseTimeMs", -1, "", "at least 0"},
		{"/constraints/requiredTrustScore", "50", "", "a number"},
		{"/constraints/requiredTrustScore", 100.5, "", "0 to 100"},
		{"/constraints/requiredTrustScore", -0.5, "", "0 to 100"},
		{"/constraints/allowedPerformatives", "ACCEPT", "", "a list"},
		{"/constraints/allowedPerformatives", []any{1}, "/constraints/allowedPerformatives/0", "a string"},
		{"/constraints/allowedPerformatives", []any{"ABSTAIN"}, "", "thirteen"},
		{"/integrity", list, "", "an object"},
		{"/integrity", null{}, "", "an object"},
		{"/integrity/signature", 1, "", "a string"},
		{"/integrity/signature", null{}, "", "a string"},
		{"/integrity/previousHash", 1, "", "a string"},
		{"/integrity/previousHash", null{}, "", "a string"},
		{"/integrity/previousHash", "sha256:AA", "", "64 lower-case"},
		{"/integrity/previousHash", strings.ToUpper(string(NoHash)), "", "64 lower-case"},
		{"/sequenceNumber", "5", "", "whole number"},
		{"/sequenceNumber", 5.5, "", "whole number"},
		{"/sequenceNumber", -1, "", "whole number"},
		{"/sequenceNumber", 1e300, "", "whole number"},
		{"/sequenceNumber", null{}, "", "whole number"},
	} {
		at := tt.at
		if at == "" {
			at = tt.path
		}
		_, err := Read([]byte(edit(t, tt.path, tt.value)))
		if why := wantMalformed(t, err, at); !strings.Contains(why, tt.why) {
			t.Errorf("%s = %v: %q, want %q", tt.path, tt.value, why, tt.why)
		}
	}
	for _, whole := range []string{`[]`, `"x"`, `1`, `null`, `true`} {
		_, err := Read([]byte(whole))
		wantMalformed(t, err, "")
	}
}

// TestTheBrokersFields is PROTOCOL.md §3: what is the broker's and comes from a
// sender is malformed, whatever it holds.
func TestTheBrokersFields(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"hash", "receipt", "linkedBy", "onBehalfOf", "joined"} {
		for _, value := range []any{"x", map[string]any{}, []any{}, null{}} {
			_, err := Read([]byte(edit(t, "/integrity/"+name, value)))
			wantMalformed(t, err, "/integrity/"+name)
		}
	}
}

// TestPublished is PROTOCOL.md §3: what is stored fits the published schemas, so null is refused
// wherever they have none; so is a trust score of the sender's own.
func TestPublished(t *testing.T) {
	t.Parallel()
	for _, path := range []string{
		"/recipient", "/recipient/agentId", "/recipient/orgId", "/broker", "/constraints", "/content/mimeType", "/sender/orgId",
		"/constraints/maxResponseTimeMs", "/constraints/requiredTrustScore", "/constraints/allowedPerformatives",
	} {
		var whole string
		if strings.HasPrefix(path, "/recipient/") {
			whole = edit(t, "/recipient", map[string]any{"agentId": "agent://widgets.co/beta", path[len("/recipient/"):]: null{}})
		} else {
			whole = edit(t, path, null{})
		}
		_, err := Read([]byte(whole))
		wantMalformed(t, err, path)
	}
	_, err := Read([]byte(edit(t, "/sender/trustScore", 99)))
	wantMalformed(t, err, "/sender/trustScore")
	for _, own := range []string{"/x-trace", "/sender/name", "/content/note"} {
		if _, err := Read([]byte(edit(t, own, null{}))); err != nil {
			t.Errorf("%s is the sender's own: %v", own, err)
		}
	}
}

// TestTheLinkIsAPair is PROTOCOL.md §3: sequenceNumber and previousHash come
// together or not at all.
func TestTheLinkIsAPair(t *testing.T) {
	t.Parallel()
	_, err := Read([]byte(edit(t, "/sequenceNumber", nil)))
	wantMalformed(t, err, "/sequenceNumber")
	_, err = Read([]byte(edit(t, "/integrity/previousHash", nil)))
	wantMalformed(t, err, "/integrity/previousHash")
	_, err = Read([]byte(edit(t, "/integrity", nil)))
	wantMalformed(t, err, "/integrity/previousHash")
	for in, want := range map[string]uint64{`0`: 0, `5.0`: 5, `1e3`: 1000, `-0`: 0} {
		m := mustRead(t, strings.Replace(envelope, `"sequenceNumber": 5`, `"sequenceNumber": `+in, 1))
		if m.Link == nil || m.Link.Sequence != want {
			t.Errorf("%s: %+v", in, m.Link)
		}
	}
}

// TestRecipient is PROTOCOL.md §3: a URI, an object with one, or nobody.
func TestRecipient(t *testing.T) {
	t.Parallel()
	const beta = Agent("agent://widgets.co/sales/beta")
	for _, tt := range []struct {
		value any
		want  Agent
	}{
		{string(beta), beta},
		{map[string]any{"agentId": string(beta)}, beta},
		{map[string]any{"agentId": string(beta), "orgId": "org_w", "more": 1}, beta},
		{"human://acme.com/alice", "human://acme.com/alice"},
		{nil, ""},
	} {
		m, err := Read([]byte(edit(t, "/recipient", tt.value)))
		if err != nil || m.Recipient != tt.want {
			t.Errorf("%v: %+v, %v", tt.value, m, err)
		}
	}
}

// TestReadJudgesForm only: version, performative and signature are for later
// checks, in the broker's order (PROTOCOL.md §3).
func TestReadJudgesForm(t *testing.T) {
	t.Parallel()
	for path, value := range map[string]string{"/version": "asp/9.9", "/performative": "ABSTAIN", "/integrity/signature": "nonsense"} {
		m, err := Read([]byte(edit(t, path, value)))
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		if path == "/performative" {
			if m.Performative != Unknown || m.ActName != value {
				t.Errorf("%s, %s", m.Performative, m.ActName)
			}
			wantMalformed(t, m.DecodeBody(), "/performative")
		}
	}
}

// A member called broker names one where it is a key, and is somebody's own where it is not.
func TestReadNamedBroker(t *testing.T) {
	t.Parallel()
	key := testKey(t, "broker").Key()
	for _, tt := range []struct {
		value any
		want  Key
	}{{string(key), key}, {"broker://" + string(key), key}, {"UABC", ""}, {"", ""}, {5, ""}, {map[string]any{}, ""}, {nil, ""}} {
		if m := mustRead(t, edit(t, "/broker", tt.value)); m.Broker != tt.want {
			t.Errorf("%v: %q, want %q", tt.value, m.Broker, tt.want)
		}
	}
}

// TestDecodeBody says where a body is ill-typed, and what is wanted.
func TestDecodeBody(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ act, body, at, why string }{
		{"REJECT", `{"retryable":"yes"}`, "/content/body/retryable", "true or false"},
		{"PROPOSE", `{"validUntil":5}`, "/content/body/validUntil", "RFC 3339"},
		{"PROPOSE", `{"validUntil":"tomorrow"}`, "/content/body/validUntil", "RFC 3339"},
		{"PROPOSE", `{"subject":5}`, "/content/body/subject", "a string"},
		{"CLARIFY", `{"questions":{}}`, "/content/body/questions", "a list"},
		{"COMMIT", `{"terms":[]}`, "/content/body/terms", "an object"},
		{"DELEGATE", `{"maxDepth":"3"}`, "/content/body/maxDepth", "a number"},
	} {
		m := mustRead(t, strings.NewReplacer(`OBSERVE`, tt.act, `{"subject":"s"}`, tt.body).Replace(bare))
		if why := wantMalformed(t, m.DecodeBody(), tt.at); !strings.Contains(why, tt.why) {
			t.Errorf("%s %s: %q, want %q", tt.act, tt.body, why, tt.why)
		}
	}
}

// TestTimestamps: RFC 3339 as it is written, in years that can be written again.
func TestTimestamps(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"2026-03-07T14:30:00Z":                "2026-03-07T14:30:00Z",
		"2026-03-07T14:30:00.000Z":            "2026-03-07T14:30:00Z",
		"2026-03-07T14:30:00.123456789+02:00": "2026-03-07T12:30:00.123456789Z",
		"2026-03-07T14:30:00-00:00":           "2026-03-07T14:30:00Z",
		"2024-02-29T00:00:00Z":                "2024-02-29T00:00:00Z",
		"0001-01-01T00:00:00Z":                "0001-01-01T00:00:00Z",
		"9999-12-31T23:59:59.999999999Z":      "9999-12-31T23:59:59.999999999Z",
	} {
		at, err := parseTime(in)
		if err != nil || at.UTC().Format(time.RFC3339Nano) != want {
			t.Errorf("%s: %s, %v", in, at, err)
		}
	}
	for name, in := range map[string]string{
		"nothing": "", "date": "2026-03-07", "no zone": "2026-03-07T14:30:00", "space": "2026-03-07 14:30:00Z",
		"comma": "2026-03-07T14:30:00,5Z", "empty fraction": "2026-03-07T14:30:00.Z", "lower-case t": "2026-03-07t14:30:00Z",
		"lower-case z": "2026-03-07T14:30:00z", "leap second": "2016-12-31T23:59:60Z", "hour of one digit": "2026-03-07T4:30:00Z",
		"hour 24": "2026-03-07T24:00:00Z", "no such day": "2026-02-29T00:00:00Z", "offset 24:00": "2026-03-07T14:30:00+24:00",
		"offset minutes": "2026-03-07T14:30:00+01:60", "offset without colon": "2026-03-07T14:30:00+0100", "basic": "20260307T143000Z",
		"year 0": "0000-06-01T00:00:00Z", "year 0 in UTC": "0001-01-01T00:00:00+00:01", "year 10000": "10000-01-01T00:00:00Z",
		"year 10000 in UTC": "9999-12-31T23:59:59-00:01", "minus": "-2026-03-07T14:30:00Z", "trailing": "2026-03-07T14:30:00Z ",
		"no seconds": "2026-03-07T14:30Z",
	} {
		if at, err := parseTime(in); err == nil {
			t.Errorf("%s: %q is %s", name, in, at)
		}
	}
}

// TestSpellingDoesNotMatter: a message is its canonical form.
func TestSpellingDoesNotMatter(t *testing.T) {
	t.Parallel()
	a := mustRead(t, bare)
	b := mustRead(t, " "+strings.NewReplacer(`,"`, ", \n \"", `OBSERVE`, `\u004fBSERVE`).Replace(bare))
	if a.Digest() != b.Digest() {
		t.Errorf("%s\n%s", a.SigningBytes(), b.SigningBytes())
	}
	if c := mustRead(t, strings.Replace(bare, `"s"`, `"t"`, 1)); a.Digest() == c.Digest() {
		t.Error("two messages have one digest")
	}
	if d := mustRead(t, string(mustSign(t, bare))); a.Digest() != d.Digest() {
		t.Error("the digest depends on the signature")
	}
}
