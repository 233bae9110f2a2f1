package adversary

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/test/testkit"
)

var (
	someSeed      = regexp.MustCompile(`S[UAONCX][A-Z2-7]{56}`)
	someSignature = regexp.MustCompile(`[0-9a-f]{128}|ed25519:`)
)

// TestLogIsSilent: through a whole hostile run nothing in the log is a secret, and what people
// say to each other is in none of its lines, refused or not; who did what may be.
func TestLogIsSilent(t *testing.T) {
	t.Parallel()
	core, logs := observer.New(zap.DebugLevel)
	w := newWorld(t, func(o *testkit.Options) { o.Log = zap.New(core) })
	const secret = "the-price-nobody-must-know"
	p, a := w.Principal(eve), w.Principal(alpha)
	w.Principal(alpha).Say(w.deal, testkit.Fact(secret))
	w.Principal(beta).Say(w.deal, &performatives.ProposeBody{ProposalID: secret, Type: "x", Subject: secret, Terms: []byte(`{"` + secret + `":1}`)})
	w.Principal(alpha).Say(w.deal, &performatives.EscalateBody{Reason: "authority-limit", Urgency: "high", Context: quoted(t, secret)})

	envelope := string(a.Envelope(w.deal, testkit.Fact(secret)))
	for _, data := range []string{
		envelope, envelope[:len(envelope)-9], strings.Replace(envelope, "INFORM", secret, 1), strings.Replace(envelope, "asp/0.1", secret, 1),
		strings.Replace(envelope, "ed25519:", secret, 1), strings.Replace(envelope, `"type":"fact"`, `"type":"`+secret+`"`, 1), secret,
		strings.Replace(envelope, string(alpha), "agent://"+secret, 1),
	} {
		testkit.Code(t, a.Submit(w.deal, []byte(data)))
		testkit.Code(t, p.Submit(w.deal, []byte(data)))
		for _, verb := range []string{api.SessionGet.Name, api.SchemaPut.Name, api.AgentGet.Name, api.EscalationGet.Name} {
			p.Call(verb, data)
			p.Call(verb, `{"sessionId":"`+secret+`","escalationId":"`+secret+`","agentId":"`+secret+`","name":"`+secret+`","schema":"`+secret+`"}`)
		}
	}
	outsider, err := nkeys.CreateUser()
	testkit.Must(t, err)
	nonces := []string{}
	for _, how := range []nats.Option{
		nats.UserInfo("eve", secret), nats.Token(secret), nats.Nkey(string(testkit.LoginKeys(t, a.Key)[0]), outsider.Sign),
		nats.Nkey(string(a.Signer.Key()), func(nonce []byte) ([]byte, error) {
			nonces = append(nonces, string(nonce))
			return outsider.Sign(nonce)
		}),
	} {
		if nc, err := p.Dial(how); err == nil {
			nc.Close()
			t.Error("an outsider is in")
		}
	}
	for _, subject := range []string{"asp.session.x", "$JS.API.STREAM.DELETE.ASP_SESSIONS", api.Submit(alpha, w.deal)} {
		if !w.isDenied(p, subject, "") {
			t.Errorf("eve may publish %s", subject)
		}
	}
	gone := w.Principal(carol).Conn()
	w.Operates().Request(api.OperatorCall(api.AgentRemove.Name), fmt.Appendf(nil, `{"agentId":%q}`, carol))
	testkit.Cut(t, gone)
	w.Down()
	w.Up()

	encoder := zapcore.NewJSONEncoder(zapcore.EncoderConfig{MessageKey: "message", NameKey: "name"})
	hidden := []string{secret, seed(t, a.Key), seed(t, p.Key), seed(t, testkit.LoginOf(t, a.Key)), seed(t, w.Operator()), seed(t, outsider)}
	for _, e := range logs.All() {
		line, err := encoder.EncodeEntry(e.Entry, e.Context)
		testkit.Must(t, err)
		text := line.String()
		if someSeed.MatchString(text) || someSignature.MatchString(text) {
			t.Errorf("a secret in the log: %s", text)
		}
		for _, word := range append(hidden, nonces...) {
			if strings.Contains(text, word) && (word != secret || e.Level > zap.DebugLevel) {
				t.Errorf("%s: the log holds %q: %s", e.Level, word, text)
			}
		}
	}
	if logs.FilterMessage("login refused").Len() == 0 || logs.FilterMessageSnippet("its key was revoked").Len() == 0 {
		t.Error("the log does not say what happened")
	}
}
