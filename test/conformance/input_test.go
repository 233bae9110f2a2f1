package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/parley-asp/parley/test/testkit"
)

// dev is a broker under --dev and a plain connection to it.
func dev(t *testing.T) (*testkit.Broker, *nats.Conn) {
	t.Helper()
	b := testkit.StartBroker(t, testkit.Options{Dev: true, Sync: time.Minute, HTTP: "127.0.0.1:0"})
	return b, b.Plain()
}

func ask(t *testing.T, nc *nats.Conn, subject string, data []byte) *nats.Msg {
	t.Helper()
	m, err := testkit.Request(nc, subject, data)
	if err != nil {
		t.Fatalf("%s: %v", subject, err)
	}
	return m
}

// envelope is a raw one; body is JSON.
func envelope(session, sender, act, body string) string {
	return fmt.Sprintf(`{"version":"asp/0.1","messageId":%q,"sessionId":%q,"timestamp":%q,"sender":{"agentId":%q},"performative":%q,"content":{"body":%s},"integrity":{}}`,
		v7(), session, now(), sender, act, body)
}

func submitSubject(sender, session string) string {
	return "asp.agent." + token(sender) + ".submit." + session
}

const (
	alpha = "agent://acme.com/alpha"
	beta  = "agent://widgets.co/beta"
)

func invite(participant string) string {
	return `{"proposalId":"inv","type":"session-invitation","subject":"x","terms":{"participants":["` + participant + `"]}}`
}

// open opens a session of alpha and beta in CONVERSING.
func open(t *testing.T, nc *nats.Conn) string {
	t.Helper()
	session := v7()
	for _, m := range [][3]string{
		{alpha, "PROPOSE", invite(beta)}, {beta, "ACCEPT", `{"referenceId":"inv"}`}, {alpha, "INFORM", `{"type":"fact","data":0}`},
	} {
		accepted(t, ask(t, nc, submitSubject(m[0], session), []byte(envelope(session, m[0], m[1], m[2]))))
	}
	return session
}

// An acceptance as PROTOCOL.md §9 has it.
type acceptance struct {
	Accepted       bool   `json:"accepted"`
	SessionID      string `json:"sessionId"`
	MessageID      string `json:"messageId"`
	SequenceNumber *int   `json:"sequenceNumber"`
	Hash           string `json:"hash"`
	State          string `json:"state"`
	AcceptedAt     string `json:"acceptedAt"`
	Duplicate      bool   `json:"duplicate"`
}

func accepted(t *testing.T, m *nats.Msg) acceptance {
	t.Helper()
	var a acceptance
	d := json.NewDecoder(bytes.NewReader(m.Data))
	d.DisallowUnknownFields()
	if err := d.Decode(&a); err != nil || !a.Accepted || a.SequenceNumber == nil || a.State == "" || m.Header.Get("Nats-Service-Error") != "" {
		t.Fatalf("not accepted: %s %v", m.Data, err)
	}
	return a
}

// TestBadBytes is what is refused before anything else is looked at, over NATS and over HTTP
// (PROTOCOL.md §3, size and JSON).
func TestBadBytes(t *testing.T) {
	t.Parallel()
	b, nc := dev(t)
	session := open(t, nc)
	good := envelope(session, alpha, "INFORM", `{"type":"fact","data":"DATA"}`)
	with := func(data string) string { return strings.Replace(good, `"DATA"`, data, 1) }
	padded := func(size int) string { return with(`"` + strings.Repeat("x", size-len(with(`""`))) + `"`) }
	for _, c := range []struct{ name, data, want string }{
		{"256 KiB", padded(256 << 10), ""},
		{"256 KiB and one byte", padded(256<<10 + 1), "too_large"},
		{"900 KB", padded(900_000), "too_large"},
		{"900 KB of nothing", strings.Repeat("\x00", 900_000), "too_large"},
		{"canonically too large", with("[" + strings.Repeat("1e20,", 40_000) + "1]"), "too_large"},
		{"nothing", "", "malformed"},
		{"a space", " ", "malformed"},
		{"binary", "\x00\x01\xfe\xff\x80", "malformed"},
		{"null", "null", "malformed"},
		{"a list", "[]", "malformed"},
		{"a string", `"hello"`, "malformed"},
		{"an empty object", "{}", "malformed"},
		{"half", good[:len(good)/2], "malformed"},
		{"two", good + good, "malformed"},
		{"trailing bytes", good + "x", "malformed"},
		{"a comment", good + "// done", "malformed"},
		{"a byte order mark", "\ufeff" + good, "malformed"},
		{"64 deep", with(strings.Repeat("[", 61) + strings.Repeat("]", 61)), ""},
		{"65 deep", with(strings.Repeat("[", 62) + strings.Repeat("]", 62)), "malformed"},
		{"50,000 deep", with(strings.Repeat("[", 50_000) + strings.Repeat("]", 50_000)), "malformed"},
		{"never closed", with(strings.Repeat("[", 100_000)), "malformed"},
		{"a key twice", with(`{"a":1,"a":1}`), "malformed"},
		{"an escaped key twice", with(`{"a":1,"\u0061":1}`), "malformed"},
		{"an envelope's key twice", strings.Replace(good, `"version"`, `"version":"asp/0.1","version"`, 1), "malformed"},
		{"no UTF-8", with("\"\xff\""), "malformed"},
		{"an overlong encoding", with("\"\xc0\xaf\""), "malformed"},
		{"half a surrogate pair", with(`"\ud800"`), "malformed"},
		{"a control character", with("\"\x01\""), "malformed"},
		{"2^53", with("9007199254740992"), ""},
		{"2^53 and 1", with("9007199254740993"), "malformed"},
		{"too large a number", with("1e400"), "malformed"},
		{"too many digits", with("0.10000000000000000001"), "malformed"},
		{"a leading zero", with("01"), "malformed"},
		{"not a number", with("NaN"), "malformed"},
		{"single quotes", with("'x'"), "malformed"},
		{"a NUL in a string", with(`"\u0000"`), ""},
		{"upper-case keys", strings.Replace(good, `"version"`, `"Version"`, 1), "malformed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := ask(t, nc, submitSubject(alpha, session), []byte(strings.Replace(c.data, idOf(good), v7(), 1)))
			if c.want == "" {
				accepted(t, m)
			} else if got := checkRefusal(t, m); got != c.want {
				t.Errorf("%s, want %s: %s", got, c.want, m.Data)
			}
			over := &stage{T: t, broker: b}
			a := over.send(http.MethodPost, "/sessions/"+session+"/messages", alpha, "application/asp+json", []byte(strings.Replace(c.data, idOf(good), v7(), 1)))
			if c.want == "" && a.StatusCode != http.StatusOK {
				t.Errorf("over HTTP %d: %s", a.StatusCode, a.Body)
			} else if c.want != "" && problem(t, a)["code"] != c.want {
				t.Errorf("over HTTP %s, want %s", a.Body, c.want)
			}
		})
	}
	// The session is none the worse for it.
	accepted(t, ask(t, nc, submitSubject(alpha, session), []byte(envelope(session, alpha, "CLOSE", "{}"))))
}

func idOf(envelope string) string {
	var e struct{ MessageID string }
	if err := json.Unmarshal([]byte(envelope), &e); err != nil {
		panic(err)
	}
	return e.MessageID
}

// TestBadCalls sends the same kinds of bytes to every api verb.
func TestBadCalls(t *testing.T) {
	t.Parallel()
	_, nc := dev(t)
	session := open(t, nc)
	for _, verb := range []string{
		"session.get", "session.list", "session.messages", "session.consumer", "agent.register", "agent.get", "agent.list",
		"schema.put", "schema.get", "schema.list", "escalation.list", "escalation.get", "no.verb",
	} {
		for _, data := range []string{
			"\x00\xff", "{", "[]", `"x"`, "7", `{"a":1,"a":1}`, `{"limit":"x","card":7,"name":7,"sessionId":[],"agentId":{},"escalationId":0,"state":1}`,
			strings.Repeat("[", 70_000), `{"limit":-5,"cursor":"\u0000"}`, strings.Repeat(" ", 300<<10),
		} {
			m := ask(t, nc, "asp.agent."+token(alpha)+".api."+verb, []byte(data))
			if m.Header.Get("Nats-Service-Error") != "" {
				checkRefusal(t, m)
			} else if !json.Valid(m.Data) {
				t.Errorf("%s %.40q is answered with %q", verb, data, m.Data)
			}
		}
	}
	ask(t, nc, "asp.agent."+token(alpha)+".api.session.get", []byte(`{"sessionId":"`+session+`"}`))
}

// TestSubjects: a subject of another shape is malformed, whatever it carries.
func TestSubjects(t *testing.T) {
	t.Parallel()
	_, nc := dev(t)
	session := v7()
	data := []byte(envelope(session, alpha, "PROPOSE", invite(beta)))
	for _, c := range []struct{ subject, want string }{
		{"asp.agent." + token(alpha) + ".submit.nonsense", "malformed"},
		{"asp.agent." + token(alpha) + ".submit." + strings.ToUpper(session), "malformed"},
		{"asp.agent.ACME.submit." + session, "malformed"},
		{"asp.agent.acme_com.submit." + session, "malformed"},
		{"asp.agent.acme_com~alph=61.submit." + session, "malformed"},
		{"asp.agent.acme_com~alpha=.submit." + session, "malformed"},
		{"asp.agent.@acme_com~a~b.submit." + session, "malformed"},
		{"asp.agent." + strings.Repeat("a", 300) + "~b.submit." + session, "malformed"},
		{"asp.agent.=zz~b.api.session.get", "malformed"},
		{"asp.agent." + token(alpha) + ".api.no.verb", "malformed"},
		{"asp.agent." + token(beta) + ".submit." + session, "unauthorized"},
		{"asp.agent.@acme_com~alpha.submit." + session, "unauthorized"},
	} {
		if got := checkRefusal(t, ask(t, nc, c.subject, data)); got != c.want {
			t.Errorf("%s: %s, want %s", c.subject, got, c.want)
		}
	}
	accepted(t, ask(t, nc, submitSubject(alpha, session), data))
}

// TestNoReply: a request that nobody waits for does nothing, and neither does
// one whose answer would go into JetStream.
func TestNoReply(t *testing.T) {
	t.Parallel()
	b, nc := dev(t)
	session := v7()
	if err := nc.Publish(submitSubject(alpha, session), []byte(envelope(session, alpha, "PROPOSE", invite(beta)))); err != nil {
		t.Fatal(err)
	}
	for _, reply := range []string{"$JS.API.STREAM.DELETE.ASP_SESSIONS", "$JS.ACK.ASP_INBOX.x.1.1.1.1.1", "asp.session." + session} {
		other := v7()
		if err := nc.PublishRequest(submitSubject(alpha, other), reply, []byte(envelope(other, alpha, "PROPOSE", invite(beta)))); err != nil {
			t.Fatal(err)
		}
	}
	// An answer to what comes behind them on the same connection.
	m := ask(t, nc, "asp.agent."+token(alpha)+".api.session.get", []byte(`{"sessionId":"`+session+`"}`))
	if got := checkRefusal(t, m); got != "unknown_session" {
		t.Errorf("the session is there: %s", m.Data)
	}
	open(t, nc)
	if err := b.Broker.Command.Healthy(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestNonParticipantsSeeTheSameBytes: no such session and no part in it are one.
func TestNonParticipantsSeeTheSameBytes(t *testing.T) {
	t.Parallel()
	_, nc := dev(t)
	session, outsider := open(t, nc), "agent://nowhere.net/x"
	for _, verb := range []string{"session.get", "session.messages", "session.consumer"} {
		subject := "asp.agent." + token(outsider) + ".api." + verb
		sameAnswer(t, ask(t, nc, subject, []byte(`{"sessionId":"`+session+`"}`)), ask(t, nc, subject, []byte(`{"sessionId":"`+v7()+`"}`)))
	}
	for act, body := range map[string]string{
		"ACCEPT": `{"referenceId":"inv"}`, "CLOSE": `{}`, "INFORM": `{"type":"fact","data":1}`,
		"PROPOSE": `{"proposalId":"p","type":"x","subject":"x","terms":{}}`,
	} {
		none := v7()
		sameAnswer(t,
			ask(t, nc, submitSubject(outsider, session), []byte(envelope(session, outsider, act, body))),
			ask(t, nc, submitSubject(outsider, none), []byte(envelope(none, outsider, act, body))))
	}
}

func sameAnswer(t *testing.T, another, none *nats.Msg) {
	t.Helper()
	if got := checkRefusal(t, none); got != "unknown_session" {
		t.Errorf("no such session: %s", none.Data)
	}
	if !bytes.Equal(another.Data, none.Data) || fmt.Sprint(another.Header) != fmt.Sprint(none.Header) {
		t.Errorf("an outsider can tell\n%s %v from\n%s %v", another.Data, another.Header, none.Data, none.Header)
	}
}

// TestService: the broker is a NATS micro service, to be found by plain requests.
func TestService(t *testing.T) {
	t.Parallel()
	_, nc := dev(t)
	open(t, nc)
	for verb, want := range map[string][]string{
		"PING":  {`"name":"asp"`, `io.nats.micro.v1.ping_response`},
		"INFO":  {`"endpoints"`, `asp.agent.*.submit.*`, `asp.agent.*.api.*.*`, `"queue_group":"asp"`, `schema.PROPOSE`},
		"STATS": {`"num_requests":3`, `"endpoints"`},
	} {
		for _, subject := range []string{"$SRV." + verb, "$SRV." + verb + ".asp"} {
			m := ask(t, nc, subject, nil)
			for _, w := range want {
				if !strings.Contains(string(m.Data), w) {
					t.Errorf("%s says nothing of %s: %s", subject, w, m.Data)
				}
			}
		}
	}
}

// TestLongAnswer: of a view that does not fit into one message the reply has a part and says so; the rest is
// read page by page (PROTOCOL.md §9).
func TestLongAnswer(t *testing.T) {
	t.Parallel()
	_, nc := dev(t)
	session := open(t, nc)
	for i := range 6 {
		body := fmt.Sprintf(`{"proposalId":"p%d","type":"x","subject":"x%d","terms":{"n":%d,"x":%q}}`, i, i, i, strings.Repeat("x", 200<<10))
		accepted(t, ask(t, nc, submitSubject(alpha, session), []byte(envelope(session, alpha, "PROPOSE", body))))
	}
	m := ask(t, nc, "asp.agent."+token(alpha)+".api.session.get", []byte(`{"sessionId":"`+session+`"}`))
	var view struct {
		Truncated bool
		Proposals []struct{ Truncated bool }
	}
	if err := json.Unmarshal(m.Data, &view); err != nil || !view.Truncated || len(view.Proposals) != 6 || !view.Proposals[5].Truncated {
		t.Errorf("%v: %.300s", err, m.Data)
	}
	whole := 0
	for cursor := ""; ; {
		m := ask(t, nc, "asp.agent."+token(alpha)+".api.session.get", fmt.Appendf(nil, `{"sessionId":%q,"part":"proposals","cursor":%q}`, session, cursor))
		var page struct {
			Proposals []struct{ Terms struct{ X string } }
			Next      string
		}
		if err := json.Unmarshal(m.Data, &page); err != nil || len(page.Proposals) == 0 {
			t.Fatalf("%v: %.300s", err, m.Data)
		}
		for _, p := range page.Proposals {
			whole += len(p.Terms.X)
		}
		if cursor = page.Next; cursor == "" {
			break
		}
	}
	if whole != 6*200<<10 {
		t.Errorf("the pages have %d bytes of terms", whole)
	}
	seen, next := 0, 0
	for next >= 0 {
		m := ask(t, nc, "asp.agent."+token(alpha)+".api.session.messages", fmt.Appendf(nil, `{"sessionId":%q,"since":%d}`, session, next))
		var page struct {
			Messages []json.RawMessage
			Next     *int
		}
		if err := json.Unmarshal(m.Data, &page); err != nil {
			t.Fatal(err)
		}
		seen += len(page.Messages)
		if next = -1; page.Next != nil {
			next = *page.Next
		}
	}
	if seen != 9 {
		t.Errorf("%d of 9 entries", seen)
	}
}
