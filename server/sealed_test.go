package server_test

import (
	"context"
	"crypto/rand"
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/session/modes"
	"github.com/parley-asp/parley/session/transcript"
	"github.com/parley-asp/parley/test/testkit"
)

// What acme seals: its limit, and what a human allows its agent.
const (
	sealedLimit   = "USD 95123"
	sealedAllowed = 100777
)

// allowedText is what is allowed as a number of its own, and no digits of a hash.
var allowedText = regexp.MustCompile(`\b100777\b`)

// A bargain is a session in which acme's agent has asked, and its human has ruled, both sealed.
type bargain struct {
	*testkit.World
	id    performatives.SessionID
	item  string
	buyer performatives.Agent
	boss  performatives.Agent
	other performatives.Agent
}

func newBargain(t *testing.T) *bargain {
	t.Helper()
	w := &bargain{
		World: testkit.NewWorld(t, testkit.Options{}),
		buyer: "agent://acme.com/buyer", boss: "human://acme.com/boss", other: "agent://widgets.co/seller",
	}
	w.Principal(w.boss)
	w.id = w.Open(w.Principal(w.buyer), w.Principal(w.other))
	w.Principal(w.other).Say(w.id, &performatives.ProposeBody{
		ProposalID: "p1", Type: "sale", Subject: "crane", Terms: []byte(`{"price":{"amount":120000,"currency":"USD"}}`),
	})
	asked, err := w.Client(w.buyer).Session(w.id).Escalate(w.Ctx, client.Escalation{
		Reason: client.AuthorityLimit, Context: map[string]string{"limit": sealedLimit}, SuggestedAction: "hold at " + sealedLimit, About: "p1",
	})
	testkit.Must(t, err)
	w.item = asked.ID
	return w
}

func (w *bargain) rules() {
	w.Helper()
	most := float64(sealedAllowed)
	_, err := w.Client(w.boss).Session(w.id).Rule(w.Ctx, w.item, client.Ruling{
		Decision: performatives.Modified, Comment: "below list price",
		Authority: &performatives.RulingsAuthority{MaxAmount: &most, Currency: "USD", TermPath: "terms.price"},
	})
	testkit.Must(w, err)
}

// replayed folds a transcript as somebody reads it.
func (w *bargain) replayed(a performatives.Agent) (s session.State, entries []transcript.Entry) {
	w.Helper()
	entries, err := w.Client(a).Transcript(w.Ctx, w.id)
	testkit.Must(w, err)
	s = session.New(w.id, modes.All())
	for _, e := range entries {
		s, err = session.Replay(s, e.Message, e.Stamp)
		testkit.Must(w, err)
	}
	return s, entries
}

// Sealed parts are for the side's own organisation, and for nobody else; the transcript is the
// same for everybody, and replays with and without them (PROTOCOL.md §7).
func TestSealedParts(t *testing.T) {
	t.Parallel()
	w := newBargain(t)
	secret := func(text string) bool { return strings.Contains(text, sealedLimit) || allowedText.MatchString(text) }
	calls := map[string]string{
		"session.get":      `{"sessionId":"` + string(w.id) + `"}`,
		"session.messages": `{"sessionId":"` + string(w.id) + `"}`,
		"inbox.messages":   `{"since":0}`,
		"escalation.get":   `{"escalationId":"` + w.item + `"}`,
		"escalation.list":  `{"status":"all"}`,
	}
	looks := func(when string) {
		for verb, request := range calls {
			if got := w.Principal(w.other).Call(verb, request); secret(string(got.Data)) {
				t.Errorf("%s: %s tells the other side %s", when, verb, got.Data)
			}
			if verb == "inbox.messages" {
				continue // nobody receives its own
			}
			if got := w.Principal(w.buyer).Call(verb, request); !secret(string(got.Data)) {
				t.Errorf("%s: %s keeps from its own side what it sealed: %s", when, verb, got.Data)
			}
		}
		if got := w.Principal(w.other).Call("escalation.list", `{"status":"all","search":"`+sealedLimit+`"}`); strings.Contains(string(got.Data), w.item) {
			t.Errorf("%s: the other side finds the item by what is sealed", when)
		}
	}
	looks("asked")
	w.rules()
	looks("ruled")
	own, entries := w.replayed(w.buyer)
	others, same := w.replayed(w.other)
	if len(entries) != len(same) || own.Head != others.Head || own.Phase != others.Phase {
		t.Errorf("the sides replay %d and %d entries to %s and %s", len(entries), len(same), own.Head, others.Head)
	}
	if b, ok := own.Bound(w.buyer); !ok || b.Unopened || *b.MaxAmount != sealedAllowed {
		t.Errorf("its own side replays the bound as %v", b)
	}
	if b, ok := others.Bound(w.buyer); !ok || !b.Unopened || b.MaxAmount != nil {
		t.Errorf("the other side replays the bound as %v", b)
	}
	accept := func() { // above what the human allowed
		t.Helper()
		p := w.Principal(w.buyer)
		testkit.Refused(t, p.Submit(w.id, p.Envelope(w.id, &performatives.AcceptBody{ReferenceID: "p1"})), session.AuthorityExceeded)
	}
	accept()
	w.Down()
	w.Up()
	accept()
	looks("restarted")
}

// Inbox copies have the parts in a header, for the own organisation only.
func TestSealedInbox(t *testing.T) {
	t.Parallel()
	w := newBargain(t)
	w.rules()
	ctx, cancel := context.WithTimeout(w.Ctx, testkit.Patience)
	defer cancel()
	for a, opened := range map[performatives.Agent]bool{w.buyer: true, w.other: false} {
		js, err := jetstream.New(w.Principal(a).Conn())
		testkit.Must(t, err)
		inbox, err := js.Consumer(ctx, api.InboxStream, a.Token())
		testkit.Must(t, err)
		for ruling := false; !ruling; {
			m, err := inbox.Next(jetstream.FetchMaxWait(testkit.Patience))
			testkit.Must(t, err)
			ruling = strings.Contains(string(m.Data()), performatives.Resolution)
			if has := m.Headers().Get(api.SealedHeader) != ""; ruling && has != opened {
				t.Errorf("%s gets the parts of the ruling: %t, want %t", a, has, opened)
			}
			if allowedText.Match(m.Data()) {
				t.Errorf("%s is sent %s", a, m.Data())
			}
		}
	}
}

// What is sealed comes with what opens it, or nothing happens (PROTOCOL.md §7).
func TestSealedSubmissions(t *testing.T) {
	t.Parallel()
	w := newBargain(t)
	boss := w.Principal(w.boss)
	submission := func(data, value string) []byte {
		raw, parts, err := performatives.Seal(performatives.Inform, []byte(`{"type":"resolution","data":`+data+`}`), rand.Reader, performatives.SealAuthority)
		testkit.Must(t, err)
		envelope, err := performatives.RawDraft{
			ID: testkit.NewID(), Session: w.id, Timestamp: time.Now(), Sender: w.boss, Performative: "INFORM", Body: raw,
		}.Envelope(boss.Signer)
		testkit.Must(t, err)
		for name, p := range parts {
			if value != "" {
				p.Value = []byte(value)
			}
			parts[name] = p
		}
		if value == "none" {
			parts = nil
		}
		made, err := performatives.Submission(envelope, parts)
		testkit.Must(t, err)
		return made
	}
	ruling := func(authority string) string {
		return `{"escalationId":"` + w.item + `","decision":"approved","authority":` + authority + `}`
	}
	for name, bad := range map[string][]byte{
		"no part":            submission(ruling(`{"maxAmount":5}`), "none"),
		"another value":      submission(ruling(`{"maxAmount":5}`), `{"maxAmount":6}`),
		"a value no schema":  submission(ruling(`{"most":5}`), ""),
		"sealed and invalid": submission(ruling(`{"maxAmount":-5}`), ""),
	} {
		t.Log(name)
		testkit.Refused(t, boss.Submit(w.id, bad), session.SchemaInvalid)
	}
	testkit.Accepted(t, boss.Submit(w.id, submission(ruling(`{"maxAmount":5,"currency":"USD"}`), "")))
}

// Parts are bounded, and the bound says what it is.
func TestSealedTooLarge(t *testing.T) {
	t.Parallel()
	w := newBargain(t)
	rule := func(bytes int) error {
		_, err := w.Client(w.boss).Session(w.id).Rule(w.Ctx, w.item, client.Ruling{Decision: performatives.Denied})
		testkit.Must(t, err)
		asked, err := w.Client(w.buyer).Session(w.id).Escalate(w.Ctx, client.Escalation{Reason: client.AuthorityLimit, Context: strings.Repeat("x", bytes)})
		w.item = asked.ID
		return err
	}
	testkit.Must(t, rule(40<<10))
	if err := rule(49 << 10); !errors.Is(err, &session.Refusal{Code: session.TooLarge}) {
		t.Errorf("parts of 49 KiB are answered %v", err)
	}
}

// An approval's transcript opens for its own side.
func TestSealedTranscript(t *testing.T) {
	t.Parallel()
	w := newBargain(t)
	for a, opened := range map[performatives.Agent]bool{w.boss: true, w.buyer: true, w.other: false} {
		for _, part := range []string{"", api.PartTranscript} {
			item, err := client.Do(w.Ctx, w.Client(a), api.EscalationGet, api.GetEscalation{Escalation: w.item, Part: part})
			testkit.Must(t, err)
			if got := item.Opens[performatives.MessageID(w.item)]; (string(got[performatives.SealContext].Value) == `{"limit":"`+sealedLimit+`"}`) != opened || len(item.Transcript) == 0 {
				t.Errorf("part %q: %s opens %v", part, a, item.Opens)
			}
		}
	}
}

// A socket takes what opens an envelope beside it.
func TestSealedSocket(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t, testkit.Options{HTTP: "127.0.0.1:0"})
	buyer, other := w.Principal("agent://acme.com/buyer"), w.Principal("agent://widgets.co/seller")
	w.Principal("human://acme.com/boss")
	id := w.Open(buyer, other)
	raw, parts, err := performatives.Seal(performatives.Escalate, []byte(`{"reason":"authority-limit","urgency":"high","context":"`+sealedLimit+`"}`), rand.Reader, performatives.SealContext)
	testkit.Must(t, err)
	envelope, err := performatives.RawDraft{ID: testkit.NewID(), Session: id, Timestamp: time.Now(), Sender: buyer.Agent, Performative: "ESCALATE", Body: raw}.Envelope(buyer.Signer)
	testkit.Must(t, err)
	submission, err := performatives.Submission(envelope, parts)
	testkit.Must(t, err)
	socket, _, err := websocket.Dial(w.Ctx, "ws://"+w.HTTPAddr+testkit.SessionPath(id)+"/ws", nil) //nolint:bodyclose // the connection is the body
	testkit.Must(t, err)
	defer socket.CloseNow() //nolint:errcheck // it is over
	testkit.Must(t, socket.Write(w.Ctx, websocket.MessageText, []byte(`{"type":"auth","token":"`+w.Token(api.AddToken{Agent: buyer.Agent})+`"}`)))
	for _, c := range [][2]string{{string(envelope), string(session.SchemaInvalid)}, {string(submission), `"ack"`}} {
		sent, want := c[0], c[1]
		testkit.Must(t, socket.Write(w.Ctx, websocket.MessageText, []byte(`{"type":"send","envelope":`+sent+`}`)))
		answer := ""
		for !strings.Contains(answer, `"type":"ack"`) && !strings.Contains(answer, `"type":"error"`) {
			_, data, err := socket.Read(w.Ctx)
			testkit.Must(t, err)
			answer = string(data)
		}
		if !strings.Contains(answer, want) {
			t.Errorf("%s is answered %s", sent, answer)
		}
	}
}
