package conformance

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"

	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/session/modes"
	"github.com/parley-asp/parley/session/transcript"
	"github.com/parley-asp/parley/test/testkit"
)

// A principal with a key, on a plain connection of its own.
type principal struct {
	*testing.T
	uri string
	key nkeys.KeyPair
	nc  *nats.Conn
	js  jetstream.JetStream
}

// join registers a principal and logs it in with its nkey.
func join(t *testing.T, b *testkit.Broker, uri string) *principal {
	t.Helper()
	key := b.Register(performatives.Agent(uri))
	p := &principal{T: t, uri: uri, key: key, nc: b.Plain(testkit.Login(t, key), nats.CustomInboxPrefix("_INBOX."+token(uri)))}
	var err error
	if p.js, err = jetstream.New(p.nc); err != nil {
		t.Fatal(err)
	}
	return p
}

// signWith signs as PROTOCOL.md §3 says. The envelopes here have sorted keys and
// no numbers but whole ones, for which what Go writes is the JCS form.
func signWith(t *testing.T, key nkeys.KeyPair, envelope string) []byte {
	t.Helper()
	var v map[string]any
	testkit.Must(t, json.Unmarshal([]byte(envelope), &v))
	sig, err := key.Sign(canonical(t, v))
	testkit.Must(t, err)
	v["integrity"].(map[string]any)["signature"] = "ed25519:" + hex.EncodeToString(sig)
	return canonical(t, v)
}

func canonical(t *testing.T, v any) []byte {
	t.Helper()
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	testkit.Must(t, e.Encode(v))
	return bytes.TrimSpace(out.Bytes())
}

func (p *principal) says(session, act, body string) *nats.Msg {
	p.Helper()
	return ask(p.T, p.nc, submitSubject(p.uri, session), signWith(p.T, p.key, envelope(session, p.uri, act, body)))
}

// TestSignedRoundTrip holds a session between two logins with keys, reads it
// back, and verifies it offline: by hand, by transcript.Verify, by a replay.
func TestSignedRoundTrip(t *testing.T) {
	t.Parallel()
	b := testkit.StartBroker(t, testkit.Options{})
	a, w, alice := join(t, b, alpha), join(t, b, beta), join(t, b, "human://acme.com/alice")
	id := v7()
	accepted(t, a.says(id, "PROPOSE", invite(beta)))
	accepted(t, w.says(id, "ACCEPT", `{"referenceId":"inv"}`))
	accepted(t, w.says(id, "PROPOSE", `{"proposalId":"p1","type":"x","subject":"x","terms":{"price":15000}}`))
	escalation := accepted(t, a.says(id, "ESCALATE", `{"reason":"authority-limit","urgency":"high","context":"much","referenceId":"p1"}`)).MessageID
	accepted(t, alice.says(id, "INFORM", `{"type":"resolution","data":{"escalationId":"`+escalation+`","decision":"approved"}}`))
	accepted(t, a.says(id, "ACCEPT", `{"referenceId":"p1"}`))
	last := accepted(t, a.says(id, "CLOSE", `{"outcome":"completed"}`))

	m := ask(t, w.nc, "asp.agent."+token(beta)+".api.session.messages", []byte(`{"sessionId":"`+id+`"}`))
	var page struct{ Messages []json.RawMessage }
	testkit.Must(t, json.Unmarshal(m.Data, &page))
	previous := "sha256:" + strings.Repeat("0", 64)
	for _, entry := range page.Messages {
		previous = chained(t, entry, previous)
	}
	if previous != last.Hash || len(page.Messages) != 7 {
		t.Errorf("the transcript of %d ends with %s, the acceptance of the CLOSE says %s", len(page.Messages), previous, last.Hash)
	}
	lines := bytes.Join(asBytes(page.Messages), []byte("\n"))
	expect := transcript.Expect{Session: performatives.SessionID(id), Head: performatives.Hash(last.Hash), Length: 7}
	if faults, err := transcript.Verify(bytes.NewReader(lines), b.Broker.Command.Key(), expect); err != nil || len(faults) > 0 {
		t.Error(faults, err)
	}
	replayed(t, id, page.Messages)
	for at := 0; at < len(lines); at += 37 {
		changed := bytes.Clone(lines)
		changed[at] ^= 1
		if faults, err := transcript.Verify(bytes.NewReader(changed), b.Broker.Command.Key(), expect); err != nil || len(faults) == 0 {
			t.Errorf("the byte at %d may be changed", at)
		}
	}
	a.received(id, 1, 2, 4)
	w.received(id, 0, 3, 4, 5, 6)
	alice.received(id, 3, 5, 6)
}

func asBytes(raw []json.RawMessage) [][]byte {
	var all [][]byte
	for _, r := range raw {
		all = append(all, r)
	}
	return all
}

// chained checks an entry's place in the chain and its hash with nothing but
// JSON and SHA-256, and returns the hash.
func chained(t *testing.T, entry []byte, previous string) string {
	t.Helper()
	var v map[string]any
	testkit.Must(t, json.Unmarshal(entry, &v))
	integrity := v["integrity"].(map[string]any)
	hash := integrity["hash"].(string)
	if integrity["previousHash"] != previous {
		t.Errorf("previousHash is %v, want %s", integrity["previousHash"], previous)
	}
	delete(integrity, "hash")
	delete(integrity, "receipt")
	sum := sha256.Sum256(canonical(t, v))
	if got := "sha256:" + hex.EncodeToString(sum[:]); got != hash {
		t.Errorf("the hash is %s, the entry says %s", got, hash)
	}
	return hash
}

func replayed(t *testing.T, id string, entries []json.RawMessage) session.State {
	t.Helper()
	state := session.New(performatives.SessionID(id), modes.All())
	for _, raw := range entries {
		entry, err := transcript.Read(raw)
		testkit.Must(t, err)
		if state, err = session.Replay(state, entry.Message, entry.Stamp); err != nil {
			t.Fatal(err)
		}
	}
	return state
}

// received reads exactly these entries of a session from the inbox.
func (p *principal) received(session string, want ...int) {
	p.Helper()
	stream, err := testkit.InboxStream(p.Context(), p.nc, performatives.Agent(p.uri))
	testkit.Must(p, err)
	consumer, err := p.js.Consumer(p.Context(), stream, token(p.uri))
	testkit.Must(p, err)
	for _, n := range want {
		m, err := consumer.Next(jetstream.FetchMaxWait(wait))
		if err != nil {
			p.Fatalf("%s waits for entry %d: %v", p.uri, n, err)
		}
		var e entry
		testkit.Must(p, json.Unmarshal(m.Data(), &e))
		if e.Sequence != n || m.Subject() != "asp.agent."+token(p.uri)+".inbox."+session {
			p.Errorf("%s received %s on %s, want entry %d", p.uri, e, m.Subject(), n)
		}
		if err := m.DoubleAck(p.Context()); err != nil {
			p.Error(err)
		}
	}
	if m, err := consumer.FetchNoWait(1); err != nil {
		p.Error(err)
	} else if more := <-m.Messages(); more != nil {
		p.Errorf("%s received more: %s", p.uri, more.Data())
	}
}

// TestSignatures: outside --dev every envelope is signed, by the sender's key,
// over the very bytes (PROTOCOL.md §3).
func TestSignatures(t *testing.T) {
	t.Parallel()
	b := testkit.StartBroker(t, testkit.Options{})
	a, w := join(t, b, alpha), join(t, b, beta)
	id := v7()
	invitation := signWith(t, a.key, envelope(id, alpha, "PROPOSE", invite(beta)))
	accepted(t, ask(t, a.nc, submitSubject(alpha, id), invitation))
	accepted(t, w.says(id, "ACCEPT", `{"referenceId":"inv"}`))
	subject := submitSubject(alpha, id)
	fact := envelope(id, alpha, "INFORM", `{"type":"fact","data":1}`)
	signed := string(signWith(t, a.key, fact))
	head, at, _ := strings.Cut(fact, `"timestamp":"`)
	stale := head + `"timestamp":"2020` + at[len("2020"):]
	for _, c := range []struct{ name, data, want string }{
		{"none", fact, "signature_invalid"},
		{"another's", string(signWith(t, w.key, fact)), "signature_invalid"},
		{"of other bytes", strings.Replace(signed, `"data":1`, `"data":2`, 1), "signature_invalid"},
		{"under another id", strings.Replace(signed, idOf(fact), v7(), 1), "signature_invalid"},
		{"upper case", upperSignature(signed), "signature_invalid"},
		{"cut short", strings.Replace(signed, `ed25519:`, `ed25519:00`, 1), "signature_invalid"},
		{"another scheme", strings.Replace(signed, `ed25519:`, `rsa:`, 1), "signature_invalid"},
		{"a number", strings.Replace(fact, `"integrity":{}`, `"integrity":{"signature":7}`, 1), "malformed"},
		{"null", strings.Replace(fact, `"integrity":{}`, `"integrity":{"signature":null}`, 1), "malformed"},
		{"before the timestamp", stale, "signature_invalid"},
		{"the timestamp after it", string(signWith(t, a.key, stale)), "stale_timestamp"},
		{"right", signed, ""},
		{"right, spelt otherwise", " " + strings.Replace(signed, `"version":"asp/0.1"`, `"version" : "asp\/0.1"`, 1), "again"},
	} {
		m := ask(t, a.nc, subject, []byte(c.data))
		switch c.want {
		case "", "again":
			if got := accepted(t, m); got.Duplicate != (c.want == "again") {
				t.Errorf("%s: %s", c.name, m.Data)
			}
		default:
			if got := checkRefusal(t, m); got != c.want {
				t.Errorf("%s: %s, want %s", c.name, m.Data, c.want)
			}
		}
	}
	// The answer of the first message again, and never without its signature.
	if again := accepted(t, ask(t, a.nc, subject, invitation)); !again.Duplicate {
		t.Error("not told apart from the first time")
	}
	var bare map[string]any
	testkit.Must(t, json.Unmarshal(invitation, &bare))
	bare["integrity"] = map[string]any{}
	if got := checkRefusal(t, ask(t, a.nc, subject, canonical(t, bare))); got != "signature_invalid" {
		t.Error(got)
	}
}

func upperSignature(signed string) string {
	at := strings.Index(signed, "ed25519:") + 8
	return signed[:at] + strings.ToUpper(signed[at:at+128]) + signed[at+128:]
}

// TestNobodyUnregistered: outside --dev who is not registered has no login, and
// can be brought in by nobody (PROTOCOL.md §10).
func TestNobodyUnregistered(t *testing.T) {
	t.Parallel()
	b := testkit.StartBroker(t, testkit.Options{})
	a, w := join(t, b, alpha), join(t, b, beta)
	id := v7()
	if got := checkRefusal(t, a.says(id, "PROPOSE", invite("agent://nowhere.net/x"))); got != "unknown_agent" {
		t.Error(got)
	}
	if got := checkRefusal(t, ask(t, a.nc, "asp.agent."+token(alpha)+".api.session.get", []byte(`{"sessionId":"`+id+`"}`))); got != "unknown_session" {
		t.Errorf("a refused invitation has opened a session: %s", got)
	}
	accepted(t, a.says(id, "PROPOSE", invite(beta)))
	accepted(t, w.says(id, "ACCEPT", `{"referenceId":"inv"}`))
	delegation := a.says(id, "DELEGATE", `{"targetAgent":"agent://nowhere.net/x","scope":"x","authority":"full"}`)
	if got := checkRefusal(t, delegation); got != "unknown_agent" {
		t.Error(got)
	}
	if nc, err := nats.Connect(b.URL, testkit.Bare(t, testkit.NewKey(t)), nats.Timeout(wait)); err == nil {
		nc.Close()
		t.Error("a key that nobody registered has logged in")
	}
	if nc, err := nats.Connect(b.URL, nats.Timeout(wait)); err == nil {
		nc.Close()
		t.Error("nobody has logged in")
	}
}

// TestKeysStay: a card does not change a key, and the key of a principal that
// is gone is worth nothing.
func TestKeysStay(t *testing.T) {
	t.Parallel()
	b := testkit.StartBroker(t, testkit.Options{})
	a, w := join(t, b, alpha), join(t, b, beta)
	public := testkit.Public(t, testkit.NewKey(t))
	api := "asp.agent." + token(alpha) + ".api."
	if got := checkRefusal(t, ask(t, a.nc, api+"agent.register", []byte(`{"card":{"key":"`+public+`"}}`))); got != "unauthorized" {
		t.Error(got)
	}
	var card struct{ Key, Name string }
	m := ask(t, a.nc, api+"agent.register", []byte(`{"card":{"name":"Alpha"}}`))
	if err := json.Unmarshal(m.Data, &card); err != nil || card.Key == "" || card.Name != "Alpha" {
		t.Errorf("%s %v", m.Data, err)
	}
	// No subject but one's own: the request gets no answer, the server says why.
	ctx, cancel := context.WithTimeout(t.Context(), wait)
	defer cancel()
	errs := make(chan error, 8)
	a.nc.SetErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { errs <- err })
	testkit.Must(t, a.nc.PublishRequest(submitSubject(beta, v7()), a.nc.NewInbox(), []byte(envelope(v7(), beta, "CLOSE", "{}"))))
	select {
	case err := <-errs:
		if !strings.Contains(err.Error(), "Permissions Violation") {
			t.Error(err)
		}
	case <-ctx.Done():
		t.Error("one principal publishes as another")
	}
	opened := v7()
	accepted(t, w.says(opened, "PROPOSE", invite(alpha)))
}
