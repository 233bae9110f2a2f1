package adversary

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/test/testkit"
)

// floods are what somebody sends who wants to be expensive.
func (w *world) floods(p *testkit.Principal) map[string][]byte {
	deep := strings.Repeat("[", 60_000) + strings.Repeat("]", 60_000)
	return map[string][]byte{
		"nothing":              nil,
		"no JSON":              []byte("\x00\xff{{{"),
		"half":                 p.Envelope(w.deal, testkit.Fact("x"))[:100],
		"deep":                 []byte(deep),
		"deep, never closed":   bytes.Repeat([]byte("["), 200_000),
		"deep objects":         bytes.Repeat([]byte(`{"a":`), 40_000),
		"huge":                 bytes.Repeat([]byte("x"), 1_000_000),
		"a huge envelope":      append(bytes.TrimSuffix(p.Envelope(w.deal, testkit.Fact("x")), []byte("}")), []byte(`,"x":"`+strings.Repeat("x", 900_000)+`"}`)...),
		"many keys":            []byte("{" + strings.Repeat(`"k":1,`, 40_000) + `"k":1}`),
		"many numbers":         []byte("[" + strings.Repeat("1e300,", 40_000) + "1]"),
		"a number of no end":   []byte(strings.Repeat("9", 250_000)),
		"escapes":              []byte(`"` + strings.Repeat(`\ud83d\ude00`, 20_000) + `"`),
		"signed, and nowhere":  p.Envelope(testkit.NewSession(), testkit.Fact("x")),
		"signed, of the deal":  p.Envelope(w.deal, testkit.Fact(strings.Repeat("x", 100_000))),
		"signed by nobody":     bytes.Replace(p.Envelope(w.deal, testkit.Fact("x")), []byte("ed25519:"), []byte("ed25519:00"), 1),
		"an invitation of all": p.Envelope(w.deal, testkit.Invitation(slicesOf(p.Agent, 200)...)),
	}
}

func slicesOf(a performatives.Agent, n int) []performatives.Agent {
	all := make([]performatives.Agent, n)
	for i := range all {
		all[i] = performatives.Agent(fmt.Sprintf("%s/%d", a, i))
	}
	return all
}

// TestFlooding: bytes of every bad kind, many at once, in acts and in calls. Each is answered,
// with a refusal; the deal goes on meanwhile, and nobody else is harmed.
func TestFlooding(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.Principal(eve)
	verbs := []string{
		api.SessionGet.Name, api.SessionMessages.Name, api.EscalationGet.Name, api.AgentGet.Name, api.SchemaPut.Name, "no.verb", api.AgentAdd.Name,
	}
	floods := w.floods(p)
	answers, sent := make(chan *nats.Msg, 4096), 0
	sub, err := p.Conn().ChanSubscribe(p.Conn().Opts.InboxPrefix+".flood", answers)
	testkit.Must(t, err)
	defer sub.Unsubscribe()
	sends := func(subject string, data []byte) {
		testkit.Must(t, p.Conn().PublishRequest(subject, p.Conn().Opts.InboxPrefix+".flood", data))
		sent++
	}
	flood := func() {
		for _, data := range floods {
			sends(api.Submit(eve, w.deal), data)
			for _, verb := range verbs {
				sends(api.Call(eve, verb), data)
			}
		}
	}
	receives := func() {
		for ; sent > 0; sent-- {
			m := <-answers
			switch code := testkit.Code(t, m); code {
			case session.MalformedEnvelope, session.TooLarge, session.SignatureInvalid, session.UnknownSession, session.SchemaInvalid,
				session.UnknownAgent, session.Unauthorized, session.RateLimited:
			default:
				t.Errorf("answered with %s: %.200s", code, m.Data)
			}
		}
	}
	w.harmless(func() { flood(); receives() }, eve)
	for i := range 5 {
		flood()
		w.Principal(alpha).Say(w.deal, testkit.Fact(fmt.Sprint("still here ", i)))
		w.Principal(beta).Say(w.deal, testkit.Fact(fmt.Sprint("I too ", i)))
	}
	receives()
	testkit.Must(t, w.Server.Broker.Command.Healthy(t.Context()))
}

// TestFloodOfLogins: outsiders at the door keep nobody from what is inside.
func TestFloodOfLogins(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p, done := w.Principal(eve), make(chan error)
	const outsiders = 40
	w.harmless(func() {
		for range outsiders {
			go func() {
				_, err := p.Dial(nats.Nkey(string(testkit.LoginKeys(t, w.Principal(alpha).Key)[0]), p.Key.Sign))
				done <- err
			}()
		}
		for range outsiders {
			if err := <-done; err == nil {
				t.Error("an outsider is in")
			}
		}
	})
	for i := range 5 {
		w.Principal(alpha).Say(w.deal, testkit.Fact(fmt.Sprint("still here ", i)))
	}
	if nc, err := w.Principal(beta).Dial(w.Principal(beta).Login()); err != nil {
		t.Errorf("beta cannot log in: %v", err)
	} else {
		nc.Close()
	}
}
