package conformance

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/server"
	"github.com/parley-asp/parley/test/testkit"
)

var update = flag.Bool("update", false, "write the answers in testdata again")

const wait = testkit.Patience

// principals is who the names in a conversation are.
var principals = map[string]string{
	"alpha": "agent://acme.com/alpha", "beta": "agent://widgets.co/beta", "gamma": "agent://gizmo.io/gamma",
	"delta": "agent://acme.com/legal/delta", "epsilon": "agent://acme.com/epsilon", "outsider": "agent://nowhere.net/x",
	"alice": "human://acme.com/alice", "bob": "human://widgets.co/bob", "carol": "human://acme.com/carol",
}

// token is PROTOCOL.md §1 in our own words: nothing here is the program's.
func token(uri string) string {
	scheme, rest, _ := strings.Cut(uri, "://")
	var b strings.Builder
	if scheme == "human" {
		b.WriteByte('@')
	}
	for _, c := range []byte(rest) {
		switch {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '-':
			b.WriteByte(c)
		case c == '.':
			b.WriteByte('_')
		case c == '/':
			b.WriteByte('~')
		default:
			fmt.Fprintf(&b, "=%02x", c)
		}
	}
	return b.String()
}

func v7() string { return uuid.Must(uuid.NewV7()).String() }

func now() string { return time.Now().UTC().Format("2006-01-02T15:04:05.000Z") }

func TestConversations(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no conversations", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := play(t, string(text), rulesFor(t, file), false)
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			} else if got != string(text) {
				t.Errorf("the answers are others now; if they should be, run with -update:\n%s", cmp.Diff(string(text), got))
			}
		})
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt")+" over HTTP", func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if got := play(t, string(text), rulesFor(t, file), true); got != string(text) {
				t.Errorf("HTTP answers otherwise than NATS:\n%s", cmp.Diff(string(text), got))
			}
		})
	}
}

// A stage is one broker and the plain connection to it.
type stage struct {
	*testing.T
	broker *testkit.Broker
	nc     *nats.Conn
	js     jetstream.JetStream
	events *nats.Subscription
	items  *nats.Subscription

	overHTTP bool
	cursors  map[string]string // by principal: the last event of /inbox/events
	received map[string]int    // by principal: how many there were

	session string
	sent    map[string][]byte // by name
	names   map[string]string // value → name
	values  map[string]string // name → value
	opener  string
}

// rulesFor are who decides escalations in a conversation, where a file beside it
// says so.
func rulesFor(t *testing.T, file string) *escalation.Rules {
	path := strings.TrimSuffix(file, ".txt") + ".yaml"
	if _, err := os.Stat(path); err != nil {
		return nil
	}
	rules, err := server.ReadRules(path)
	if err != nil {
		t.Fatal(err)
	}
	return rules
}

func play(t *testing.T, text string, rules *escalation.Rules, overHTTP bool) string {
	broker := testkit.StartBroker(t, testkit.Options{Dev: true, Sync: time.Minute, Rules: rules, HTTP: "127.0.0.1:0"})
	s := &stage{T: t, broker: broker, overHTTP: overHTTP, cursors: map[string]string{}, received: map[string]int{}}
	s.connect()
	s.scene()
	var out strings.Builder
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if line != "" && !strings.ContainsAny(line[:1], "#=>?ier") {
			continue // an answer of last time
		}
		out.WriteString(line + "\n")
		for _, answer := range s.do(line) {
			out.WriteString(answer + "\n")
		}
	}
	return out.String()
}

func (s *stage) connect() {
	var err error
	s.nc = s.broker.Plain()
	if s.js, err = jetstream.New(s.nc); err != nil {
		s.Fatal(err)
	}
	listen := func(subject string) *nats.Subscription {
		sub, err := s.nc.SubscribeSync(subject)
		if err != nil {
			s.Fatal(err)
		}
		return sub
	}
	s.items = listen("asp.escalation.>")
	s.events = listen("asp.event.>")
	if err := s.nc.Flush(); err != nil {
		s.Fatal(err)
	}
}

// scene begins a session.
func (s *stage) scene() {
	s.session, s.sent, s.names, s.values, s.opener = v7(), map[string][]byte{}, map[string]string{}, map[string]string{}, ""
	s.name("session", s.session)
	s.name("logkey", s.broker.Broker.Parts.Ledger.VerifierKey())
	receiptKey, _ := json.Marshal(s.broker.Broker.Parts.Ledger.ReceiptKey())
	s.name("receiptkey", strings.Trim(string(receiptKey), `"`))
	s.name("broker", string(s.broker.Broker.Command.Key()))
}

func (s *stage) name(name, value string) {
	s.names[value], s.values[name] = name, value
}

func (s *stage) do(line string) []string {
	word, rest, _ := strings.Cut(line, " ")
	switch word {
	case "", "#":
	case "==":
		s.scene()
	case ">":
		return []string{s.submit(rest)}
	case "?":
		who, rest, _ := strings.Cut(rest, " ")
		verb, request, _ := strings.Cut(rest, " ")
		return []string{s.call(s.who(who), verb, s.expand(request))}
	case "inbox":
		who, how, _ := strings.Cut(rest, " ")
		return s.inbox(s.who(who), how == "whole")
	case "item":
		s.applied()
		return s.drain(s.items, func(m *nats.Msg) string { return "| " + s.mask(m.Subject) + " " + s.pretty(m.Data) })
	case "event":
		return []string{s.event(rest)}
	case "events":
		s.applied()
		return s.drain(s.events, s.told)
	case "restart":
		s.nc.Close()
		s.broker.Down()
		s.broker.Up()
		s.connect()
	default:
		s.Fatalf("not a line of a conversation: %q", line)
	}
	return nil
}

func (s *stage) who(name string) string {
	uri, ok := principals[name]
	if !ok {
		s.Fatalf("%q is not one of the principals", name)
	}
	return uri
}

// submit sends one act and returns the answer.
func (s *stage) submit(rest string) string {
	who, rest, _ := strings.Cut(rest, " ")
	act, rest, _ := strings.Cut(rest, " ")
	uri := s.who(who)
	if s.opener == "" {
		s.opener = uri
	}
	if act == "again" {
		return s.say(uri, s.sent[rest])
	}
	rest, sealed, _ := strings.Cut(rest, " & ")
	body, over, _ := strings.Cut(rest, " + ")
	id, label := v7(), "m"+strconv.Itoa(len(s.sent)+1)
	s.name(label, id)
	envelope := map[string]any{
		"version": "asp/0.1", "messageId": id, "sessionId": s.session, "timestamp": now(),
		"sender": map[string]any{"agentId": uri}, "performative": act, "content": map[string]any{"body": s.read(body)},
	}
	if over != "" {
		for key, value := range s.object(over) {
			if envelope[key] = value; value == nil {
				delete(envelope, key)
			}
		}
	}
	data, err := json.Marshal(envelope)
	if err != nil {
		s.Fatal(err)
	}
	if sealed != "" {
		if data, err = json.Marshal(map[string]any{"envelope": json.RawMessage(data), "sealed": s.object(sealed)}); err != nil {
			s.Fatal(err)
		}
	}
	s.sent[label] = data
	return s.say(uri, data)
}

// say submits an envelope.
func (s *stage) say(uri string, envelope []byte) string {
	s.Helper()
	if s.overHTTP {
		return s.post(uri, envelope)
	}
	return s.request("asp.agent."+token(uri)+".submit."+s.session, envelope)
}

// call calls a verb. Not all have a path in HTTP.
func (s *stage) call(uri, verb, request string) string {
	s.Helper()
	if s.overHTTP {
		if answer, has := s.callHTTP(uri, verb, request); has {
			return answer
		}
	}
	return s.request("asp.agent."+token(uri)+".api."+verb, []byte(request))
}

func (s *stage) read(text string) (v any) {
	if err := json.Unmarshal([]byte(s.expand(text)), &v); err != nil {
		s.Fatalf("%s: %v", text, err)
	}
	return v
}

func (s *stage) object(text string) map[string]any { return s.read(text).(map[string]any) }

var placeholder = regexp.MustCompile(`\$\{[a-z0-9:]+\}`)

func (s *stage) expand(text string) string {
	return placeholder.ReplaceAllStringFunc(text, func(p string) string {
		name := p[2 : len(p)-1]
		if ms, ok := strings.CutPrefix(name, "soon:"); ok {
			n, err := strconv.Atoi(ms)
			if err != nil {
				s.Fatal(err)
			}
			return time.Now().Add(time.Duration(n) * time.Millisecond).UTC().Format(time.RFC3339Nano)
		}
		if name == "new" {
			return v7()
		}
		value, ok := s.values[name]
		if !ok {
			s.Fatalf("nothing is named %s", p)
		}
		return value
	})
}

// request asks and prints the answer, after its micro error code if it has one.
func (s *stage) request(subject string, data []byte) string {
	s.Helper()
	m, err := testkit.Request(s.nc, subject, data)
	if err != nil {
		s.Fatalf("%s: %v", subject, err)
	}
	answer := s.pretty(m.Data)
	code, text := m.Header.Get("Nats-Service-Error-Code"), m.Header.Get("Nats-Service-Error")
	if (code == "") != (text == "") {
		s.Errorf("half a micro error: %v", m.Header)
	}
	if code != "" {
		checkRefusal(s.T, m)
		return "< " + code + " " + answer
	}
	return "< " + answer
}

// pretty prints JSON with sorted keys and names for what varies.
func (s *stage) pretty(data []byte) string {
	var v any
	if err := json.Unmarshal(data, &v); err != nil {
		s.Fatalf("not JSON: %q", data)
	}
	s.learn(v)
	var out strings.Builder
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		s.Fatal(err)
	}
	return s.mask(strings.TrimSpace(out.String()))
}

// learn names the hashes of acceptances and entries by their sequence number.
func (s *stage) learn(v any) {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			s.learn(item)
		}
	case map[string]any:
		if n, ok := v["sequenceNumber"].(float64); ok {
			hash, _ := v["hash"].(string)
			if integrity, ok := v["integrity"].(map[string]any); ok {
				hash, _ = integrity["hash"].(string)
			}
			if strings.HasPrefix(hash, "sha256:") {
				s.name("hash"+strconv.Itoa(int(n)), hash)
			}
		}
		for _, item := range v {
			s.learn(item)
		}
	}
}

var (
	someTime      = regexp.MustCompile(`[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z`)
	whatIsShown   = regexp.MustCompile(`"shown":"sha256:[0-9a-f]{64}"`)
	someApprovers = regexp.MustCompile(`"sealed":\[[^]]*\]`)
	someSalt      = regexp.MustCompile(`"salt":"[0-9a-f]{64}"`)
	someSignature = regexp.MustCompile(`ed25519:[0-9a-f]{128}`)
	someUUID      = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}`)
)

func (s *stage) mask(text string) string {
	values := slices.SortedFunc(maps.Keys(s.names), func(a, b string) int { return len(b) - len(a) }) // one may be part of a longer one
	for _, value := range values {
		text = strings.ReplaceAll(text, value, "${"+s.names[value]+"}")
	}
	text = someTime.ReplaceAllString(text, "$${time}")
	text = whatIsShown.ReplaceAllString(text, `"shown":"$${shown}"`)
	text = someApprovers.ReplaceAllString(text, `"sealed":["$${approvers}"]`)
	text = someSalt.ReplaceAllString(text, `"salt":"$${salt}"`)
	text = someSignature.ReplaceAllString(text, "$${signature}")
	return someUUID.ReplaceAllString(text, "$${uuid}")
}

// applied returns when everything that follows from the acts so far is there: a
// session does one thing after the other, and this reading comes behind them.
func (s *stage) applied() {
	if s.opener == "" {
		return
	}
	if _, err := s.nc.Request("asp.agent."+token(s.opener)+".api.session.get", []byte(`{"sessionId":"`+s.session+`"}`), wait); err != nil {
		s.Fatal(err)
	}
	if err := s.nc.Flush(); err != nil {
		s.Fatal(err)
	}
}

func (s *stage) drain(sub *nats.Subscription, show func(*nats.Msg) string) []string {
	var lines []string
	for {
		n, _, err := sub.Pending()
		if err != nil {
			s.Fatal(err)
		}
		if n == 0 {
			return lines
		}
		m, err := sub.NextMsg(wait)
		if err != nil {
			s.Fatal(err)
		}
		if line := show(m); line != "" {
			lines = append(lines, line)
		}
	}
}

func (s *stage) told(m *nats.Msg) string {
	kind, ours := strings.CutPrefix(m.Subject, "asp.event."+s.session+".")
	if !ours {
		return ""
	}
	return "| " + kind + " " + s.pretty(m.Data)
}

// event waits for an event of a kind.
func (s *stage) event(kind string) string {
	for {
		m, err := s.events.NextMsg(wait)
		if err != nil {
			s.Fatalf("event %s: %v", kind, err)
		}
		if m.Subject == "asp.event."+s.session+"."+kind {
			return s.told(m)
		}
	}
}

// inbox reads what is there by the principal's own consumer, and holds each
// message against the transcript.
func (s *stage) inbox(uri string, whole bool) []string {
	s.applied()
	ctx, cancel := context.WithTimeout(s.Context(), wait)
	defer cancel()
	consumer, err := s.js.Consumer(ctx, s.inboxOf(ctx, uri), token(uri))
	if err != nil {
		return []string{"| no inbox: " + err.Error()}
	}
	receive := s.fetch
	if s.overHTTP {
		receive = s.hear
	}
	var lines []string
	transcript := s.transcript()
	for _, m := range receive(ctx, uri, consumer) {
		var e entry
		if err := json.Unmarshal(m, &e); err != nil {
			s.Fatal(err)
		}
		if e.Sequence >= len(transcript) || transcript[e.Sequence] != string(m) {
			s.Errorf("%s has received what is not entry %d: %s", uri, e.Sequence, m)
		}
		if whole {
			lines = append(lines, "| "+s.pretty(m))
			continue
		}
		lines = append(lines, "| "+s.mask(e.String()))
	}
	return lines
}

// inboxOf is the stream of a principal's inbox.
func (s *stage) inboxOf(ctx context.Context, uri string) string {
	stream, err := testkit.InboxStream(ctx, s.nc, performatives.Agent(uri))
	if err != nil {
		s.Fatal(err)
	}
	return stream
}

// fetch reads what a principal has not acknowledged, and returns what is of this session.
func (s *stage) fetch(ctx context.Context, uri string, consumer jetstream.Consumer) (messages [][]byte) {
	read, err := consumer.Info(ctx)
	if err != nil {
		s.Fatal(err)
	}
	unread := s.delivered(ctx, uri) - int(read.AckFloor.Consumer) //nolint:gosec // a few messages
	if unread == 0 {
		return nil
	}
	batch, err := consumer.Fetch(unread, jetstream.FetchMaxWait(wait))
	if err != nil {
		s.Fatal(err)
	}
	for m := range batch.Messages() {
		if err := m.DoubleAck(ctx); err != nil {
			s.Fatal(err)
		}
		if m.Subject() == "asp.agent."+token(uri)+".inbox."+s.session {
			messages = append(messages, m.Data())
		}
	}
	if err := batch.Error(); err != nil {
		s.Fatal(err)
	}
	return messages
}

// delivered counts what the stream has for a principal. A consumer's own count may be a
// moment behind the stream.
func (s *stage) delivered(ctx context.Context, uri string) (n int) {
	stream, err := s.js.Stream(ctx, s.inboxOf(ctx, uri))
	if err != nil {
		s.Fatal(err)
	}
	info, err := stream.Info(ctx, jetstream.WithSubjectFilter("asp.agent."+token(uri)+".inbox.*"))
	if err != nil {
		s.Fatal(err)
	}
	for _, of := range info.State.Subjects {
		n += int(of) //nolint:gosec // a few messages
	}
	return n
}

// entry is what a line about a delivered envelope shows.
type entry struct {
	Sequence     int `json:"sequenceNumber"`
	Sender       struct{ AgentID string }
	Performative string
	Content      struct{ Body struct{ Reason any } }
	Integrity    struct {
		LinkedBy   string
		OnBehalfOf string
		Joined     []struct{ AgentID string }
		Receipt    struct{ State string }
	}
}

func (e entry) String() string {
	line := fmt.Sprintf("%d %s %s → %s", e.Sequence, e.Performative, e.Sender.AgentID, e.Integrity.Receipt.State)
	if e.Integrity.LinkedBy != "broker" {
		line += ", linked by " + e.Integrity.LinkedBy
	}
	if e.Integrity.OnBehalfOf != "" {
		line += ", on behalf of " + e.Integrity.OnBehalfOf
	}
	var joined []string
	for _, m := range e.Integrity.Joined {
		joined = append(joined, m.AgentID)
	}
	if len(joined) > 0 {
		line += ", joined: " + strings.Join(joined, " ")
	}
	if strings.HasPrefix(e.Sender.AgentID, "broker://") {
		line += fmt.Sprintf(", reason %v", e.Content.Body.Reason)
	}
	return line
}

// transcript reads the session by the operator's api, page by page.
func (s *stage) transcript() []string {
	var all []string
	for {
		request := fmt.Sprintf(`{"sessionId":%q,"since":%d,"limit":3}`, s.session, len(all))
		m, err := testkit.Request(s.nc, "asp.operator.api.session.messages", []byte(request))
		if err != nil {
			s.Fatal(err)
		}
		var page struct {
			Messages []json.RawMessage
			Next     *int
		}
		if err := json.Unmarshal(m.Data, &page); err != nil {
			s.Fatal(err)
		}
		for _, e := range page.Messages {
			all = append(all, string(e))
		}
		if page.Next == nil {
			return all
		}
		if *page.Next != len(all) {
			s.Fatalf("next is %d after %d entries", *page.Next, len(all))
		}
	}
}

// statuses are PROTOCOL.md §9.
var statuses = map[string]string{
	"malformed": "400", "version_unsupported": "400", "unknown_performative": "400", "stale_timestamp": "400",
	"signature_invalid": "401", "unauthorized": "403", "authority_exceeded": "403", "own_proposal": "403",
	"unknown_session": "404", "unknown_agent": "404", "wrong_state": "409", "wrong_turn": "409", "duplicate": "409",
	"chain_conflict": "409", "proposal_unknown": "409", "proposal_not_open": "409", "clarification_pending": "409",
	"escalation_resolved": "409", "too_large": "413", "schema_invalid": "422", "schema_unsupported": "422",
	"mode_violation": "422", "session_escalated": "423", "insufficient_trust_score": "403", "rate_limited": "429", "unavailable": "503",
}

var categories = []string{"protocol", "schema", "authority", "integrity", "temporal", "trust", "limit", "internal"}

// checkRefusal holds a refusal to its shape (PROTOCOL.md §9) and returns its code.
func checkRefusal(t testing.TB, m *nats.Msg) string {
	t.Helper()
	var answer map[string]json.RawMessage
	if err := json.Unmarshal(m.Data, &answer); err != nil {
		t.Fatalf("a refusal that is no JSON: %q", m.Data)
	}
	if string(answer["accepted"]) != "false" || len(answer) != 2 {
		t.Fatalf("not the shape of a refusal: %s", m.Data)
	}
	code := checkError(t, answer["error"])
	if got := m.Header.Get("Nats-Service-Error-Code"); got != statuses[code] {
		t.Errorf("%s has the micro error code %q, want %q", code, got, statuses[code])
	}
	if m.Header.Get("Nats-Service-Error") == "" {
		t.Errorf("%s has no micro error", code)
	}
	return code
}

// checkError holds the error of a refusal to its shape and returns its code.
func checkError(t testing.TB, data []byte) string {
	t.Helper()
	var e map[string]any
	if err := json.Unmarshal(data, &e); err != nil {
		t.Fatalf("not the shape of a refusal: %s", data)
	}
	code, _ := e["code"].(string)
	category, _ := e["category"].(string)
	message, _ := e["message"].(string)
	_, retryable := e["retryable"].(bool)
	fields := 4
	switch details := e["details"].(type) {
	case nil:
		if code == "schema_invalid" {
			t.Errorf("without its faults: %s", data)
		}
	case []any:
		fields++
		if code != "schema_invalid" {
			t.Errorf("%s has a list as details: %s", code, data)
		}
		for _, fault := range details {
			if f, _ := fault.(map[string]any); len(f) != 3 || f["rule"] == nil || f["message"] == nil || f["path"] == nil {
				t.Errorf("not the shape of a fault: %s", data)
			}
		}
	default:
		fields++
		if _, is := details.(map[string]any); !is || code == "schema_invalid" {
			t.Errorf("%s has other details: %s", code, data)
		}
	}
	if statuses[code] == "" || !slices.Contains(categories, category) || message == "" || !retryable || len(e) != fields {
		t.Errorf("not the shape of a refusal: %s", data)
	}
	for _, inside := range []string{"goroutine", "nats:", "runtime error", ".go:", "jetstream", "performatives.", "session.", "panic"} {
		if strings.Contains(message, inside) && !strings.Contains(message, "session.get, session.list") {
			t.Errorf("a refusal leaks %q: %s", inside, data)
		}
	}
	return code
}
