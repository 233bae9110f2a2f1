package httpgateway_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/test/testkit"
)

// A frame is one that the server sends.
type frame struct {
	Type         string           `json:"type"`
	Session      string           `json:"sessionId"`
	State        string           `json:"state"`
	Previous     string           `json:"previous"`
	Participants []jsontext.Value `json:"participants"`
	Last         *uint64          `json:"lastSequence"`
	Message      string           `json:"message"`
	ID           string           `json:"messageId"`
	Code         session.Code     `json:"code"`
	Sequence     uint64           `json:"sequenceNumber"`
	Envelope     struct {
		Sequence uint64                  `json:"sequenceNumber"`
		ID       performatives.MessageID `json:"messageId"`
	} `json:"envelope"`
}

// A socket is a client's WebSocket.
type socket struct {
	testing.TB
	ctx context.Context
	*websocket.Conn
}

func (w world) socket(id performatives.SessionID, token string, last string) socket {
	w.Helper()
	conn, reply, err := websocket.Dial(w.Ctx, "ws://"+w.HTTPAddr+"/v1/asp/sessions/"+string(id)+"/ws", &websocket.DialOptions{Subprotocols: []string{"asp.v0.1"}}) //nolint:bodyclose // the connection is the body
	testkit.Must(w, err)
	if got := reply.Header.Get("Sec-WebSocket-Protocol"); got != "asp.v0.1" {
		w.Errorf("the subprotocol is %q", got)
	}
	conn.SetReadLimit(-1)
	w.Cleanup(func() { conn.CloseNow() }) //nolint:errcheck // the test is over
	s := socket{w.TB, w.Ctx, conn}
	if token != "" {
		s.send(fmt.Sprintf(`{"type":"auth","token":%q%s}`, token, last))
	}
	return s
}

func (s socket) send(text string) {
	s.Helper()
	testkit.Must(s, s.Write(s.ctx, websocket.MessageText, []byte(text)))
}

// next is the next frame, which must be of this type.
func (s socket) next(kind string) (f frame) {
	s.Helper()
	_, data, err := s.Read(s.ctx)
	testkit.Must(s, err)
	var e struct {
		Type    string         `json:"type"`
		Message jsontext.Value `json:"message"`
	}
	testkit.Must(s, json.Unmarshal(data, &e))
	testkit.Must(s, json.Unmarshal(data, &f))
	if e.Type != kind {
		s.Fatalf("the frame is %s, want %s", data, kind)
	}
	return f
}

// closes asserts that no frame comes, and how the server closes.
func (s socket) closes(code websocket.StatusCode) (reason string) {
	s.Helper()
	_, data, err := s.Read(s.ctx)
	if websocket.CloseStatus(err) != code {
		s.Fatalf("%v %s, want close code %d", err, data, code)
	}
	_, reason, _ = strings.Cut(err.Error(), "reason = ")
	return reason
}

// GATEWAYS.md G2: two agents negotiate over WebSockets, signed and hosted, until the session is over.
func TestSocket(t *testing.T) {
	t.Parallel()
	w := world{testkit.NewHosted(t, testkit.Options{})}
	alpha := w.Principal(performatives.Agent("agent://acme.com/alpha"))
	id := testkit.NewSession()
	alpha.Say(id, testkit.Invitation(seller))

	sells := w.socket(id, w.Tokens[seller], "")
	if f := sells.next("auth_ok"); f.Session != string(id) || f.State != "INVITED" || len(f.Participants) != 2 || f.Last == nil || *f.Last != 0 {
		t.Errorf("auth_ok is %+v", f)
	}
	if f := sells.next("session_state"); f.State != "INVITED" {
		t.Errorf("the state is %+v", f)
	}
	if f := sells.next("message"); f.Envelope.Sequence != 0 {
		t.Errorf("the message is %+v", f)
	}
	buys := w.socket(id, w.Token(api.AddToken{Agent: alpha.Agent}), `,"lastSequence":0`)
	buys.next("auth_ok")
	sells.send(`{"type":"send","performative":"ACCEPT","body":{"referenceId":"nothing"}}`)
	if f := sells.next("error"); f.Code != session.ProposalUnknown || f.Message == "" {
		t.Errorf("the refusal is %+v", f)
	}
	said := testkit.NewID()
	sells.send(fmt.Sprintf(`{"type":"send","messageId":%q,"performative":"ACCEPT","body":{"referenceId":"inv"}}`, said))
	if f := sells.next("ack"); f.ID != string(said) || f.Sequence != 1 {
		t.Errorf("the ack is %+v", f)
	}
	for name, s := range map[string]socket{"seller": sells, "buyer": buys} {
		if f := s.next("session_state"); f.State != "INTRODUCED" || f.Previous != "INVITED" {
			t.Errorf("%s: the state is %+v", name, f)
		}
		if f := s.next("message"); f.Envelope.Sequence != 1 || f.Envelope.ID != said {
			t.Errorf("%s: the message is %+v", name, f)
		}
	}

	for text, code := range map[string]session.Code{
		`{`: session.MalformedEnvelope, `{"type":"shout"}`: session.MalformedEnvelope, `{"type":"send","surprise":1}`: session.MalformedEnvelope,
		`{"type":"send","performative":"OBSERVE","body":{"subject":"x"}}`: session.Unauthorized, // it signs for itself
	} {
		buys.send(text)
		if f := buys.next("error"); f.Code != code {
			t.Errorf("%s is refused with %+v", text, f)
		}
	}
	buys.send(`{"type":"pong"}`)
	buys.send(fmt.Sprintf(`{"type":"send","envelope":%s}`, alpha.Envelope(id, &performatives.CloseBody{Outcome: "completed"})))
	if f := buys.next("ack"); f.Sequence != 2 {
		t.Errorf("the ack is %+v", f)
	}
	for _, s := range []socket{buys, sells} {
		s.next("session_state")
		s.next("message")
		s.closes(4009)
	}
	late := w.socket(id, w.Tokens[seller], `,"lastSequence":1`)
	if f := late.next("auth_ok"); f.State != "CLOSED" {
		t.Errorf("auth_ok is %+v", f)
	}
	late.next("session_state")
	late.next("message")
	late.closes(4009)
	for _, beyond := range []string{"2", "99", "9007199254740991"} {
		s := w.socket(id, w.Tokens[seller], `,"lastSequence":`+beyond)
		s.next("auth_ok")
		s.closes(4009)
	}
}

// GATEWAYS.md G2: who may not have a session is closed out, and non-participants learn nothing.
func TestSocketRefusals(t *testing.T) {
	t.Parallel()
	w := world{testkit.NewHosted(t, testkit.Options{HTTPOrigins: []string{"https://acme.com"}})}
	var opened api.Acceptance
	w.Send("POST", "/v1/asp/sessions", w.Tokens[cron], fmt.Sprintf(`{"with":[%q],"purpose":"x"}`, seller)).Is(http.StatusCreated, &opened)
	of, none := w.socket(opened.Session, w.Tokens[other], "").closes(4003), w.socket(testkit.NewSession(), w.Tokens[other], "").closes(4003)
	if of != none {
		t.Errorf("a non-participant is told %s, and of no session %s", of, none)
	}
	w.socket(opened.Session, "parley_x_y", "").closes(4001)
	for text, code := range map[string]websocket.StatusCode{
		`{"type":"send","performative":"OBSERVE","body":{"subject":"x"}}`: 4001, `{`: 4001, strings.Repeat("x", 8<<10): 4008,
	} {
		s := w.socket(opened.Session, "", "")
		s.send(text)
		s.closes(code)
	}
	readOnly, err := w.OperatorClient().AddToken(w.Ctx, api.AddToken{Agent: cron, ReadOnly: true})
	testkit.Must(t, err)
	s := w.socket(opened.Session, readOnly.Token, `,"lastSequence":0`)
	s.next("auth_ok")
	s.send(`{"type":"send","performative":"WITHDRAW","body":{"referenceId":"invitation"}}`)
	if f := s.next("error"); f.Code != session.Unauthorized {
		t.Errorf("a read-only token is answered %+v", f)
	}
	_, err = w.OperatorClient().RemoveToken(w.Ctx, readOnly.ID)
	testkit.Must(t, err)
	s.closes(4001)
	s = w.socket(opened.Session, w.Tokens[cron], `,"lastSequence":0`)
	s.next("auth_ok")
	s.send(strings.Repeat(" ", 300<<10) + `{}`)
	s.closes(4008)

	path := "/v1/asp/sessions/" + string(opened.Session) + "/ws"
	shake := func(change ...string) func(*http.Request) {
		return func(r *http.Request) {
			for k, v := range map[string]string{
				"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
			} {
				r.Header.Set(k, v)
			}
			for i := 0; i < len(change); i += 2 {
				r.Header.Set(change[i], change[i+1])
			}
		}
	}
	w.Send("GET", path, "", "").Refused(http.StatusUpgradeRequired, session.MalformedEnvelope)
	w.Send("GET", path, "", "", shake("Sec-WebSocket-Version", "8")).Refused(http.StatusBadRequest, session.MalformedEnvelope)
	w.Send("GET", path, "", "", shake("Sec-WebSocket-Key", "x")).Refused(http.StatusBadRequest, session.MalformedEnvelope)
	w.Send("GET", path, "", "", shake("Sec-WebSocket-Protocol", "chat")).Refused(http.StatusBadRequest, session.MalformedEnvelope)
	w.Send("GET", path, "", "", shake("Origin", "https://evil.com")).Refused(http.StatusForbidden, session.Unauthorized)
	w.Send("GET", path+"?token="+w.Tokens[cron], "", "", shake()).Refused(http.StatusUnauthorized, session.Unauthorized)

	s = w.socket(opened.Session, w.Tokens[cron], `,"lastSequence":0`)
	s.next("auth_ok")
	go w.Down()
	s.closes(websocket.StatusGoingAway)
}
