package server_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/internal/webhook"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/test/testkit"
)

// GATEWAYS.md G9: a subject of NATS is asked as a URL is called, until there is a reply, on the server
// inside and on one elsewhere, by plain clients with their own permissions.
func TestWakeupByRequest(t *testing.T) {
	t.Parallel()
	for name, options := range map[string]func(testing.TB) testkit.Options{
		"operator mode": func(testing.TB) testkit.Options { return testkit.Options{} },
		"config mode":   testkit.Configured,
		"development":   func(testing.TB) testkit.Options { return testkit.Options{Dev: true} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := testkit.NewWorld(t, options(t))
			alpha, beta := w.Principal("agent://acme.com/alpha"), w.Principal("agent://widgets.co/beta")
			nc := beta.Conn()
			subject := "_INBOX." + beta.Agent.Token() + ".wake.up"
			woken, err := nc.SubscribeSync(subject)
			testkit.Must(t, err)
			var set api.Wakeup
			testkit.Must(t, json.Unmarshal(beta.Call(api.WakeupSet.Name, fmt.Sprintf(`{"subject":%q}`, subject)).Data, &set))
			secret, err := webhook.Secret(set.Secret)
			testkit.Must(t, err)
			id := testkit.NewSession()
			invited := alpha.Say(id, testkit.Invitation(beta.Agent))
			next := func() (*nats.Msg, api.WakeupCall) {
				t.Helper()
				m, err := woken.NextMsgWithContext(w.Ctx)
				testkit.Must(t, err)
				var c api.WakeupCall
				testkit.Must(t, json.Unmarshal(m.Data, &c))
				h := m.Header
				if !(webhook.Call{ID: h.Get("Webhook-Id"), Body: m.Data}).Signed(h.Get("Webhook-Timestamp"), h.Get("Webhook-Signature"), secret) {
					t.Errorf("%s is signed wrongly: %v", m.Data, h)
				}
				if h.Get("Webhook-Id") != string(c.Hash) || c.Session != id || c.Agent != beta.Agent || h.Get("Authorization") != "" {
					t.Errorf("the call %v is %+v", h, c)
				}
				return m, c
			}
			_, first := next() // no answer
			again, second := next()
			if first != second || first.Hash != invited.Hash {
				t.Errorf("the call is repeated as %+v, it was %+v of %s", second, first, invited.Hash)
			}
			testkit.Must(t, again.Respond([]byte("thanks")))
			alpha.Say(id, &performatives.WithdrawBody{ReferenceID: "inv"})
			last, ended := next()
			if ended.Hash == first.Hash || ended.Since != 1 {
				t.Errorf("an answered call comes again: %+v", ended)
			}
			testkit.Must(t, last.Respond(nil))
			testkit.Must(t, nc.FlushWithContext(w.Ctx))
			if err := nc.LastError(); err != nil {
				t.Errorf("who answers gets %v", err)
			}
		})
	}
}

// A broker asks nobody where its caller could not listen, and nobody at all for what is no subject.
func TestWakeupElsewhereRefused(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t, testkit.Options{})
	beta := w.Principal("agent://widgets.co/beta")
	own := "_INBOX." + beta.Agent.Token()
	for path, bodies := range map[string][]string{
		"/subject": {
			`{"subject":"_INBOX.acme_com~alpha.x"}`, `{"subject":"_INBOX.x"}`, `{"subject":"asp.session.x"}`, `{"subject":"$JS.API.STREAM.DELETE.ASP_SESSIONS"}`,
			`{"subject":"` + own + `"}`, `{"subject":"` + own + `."}`, `{"subject":"` + own + `2.x"}`, `{"subject":"` + own + `.>"}`, `{"subject":"` + own + `.*.x"}`,
			`{"subject":"` + own + `..x"}`, `{"subject":"` + own + `.a b"}`, `{"subject":"` + own + `.a\r\nPUB x 0"}`, `{"subject":"` + own + `.x","url":"https://acme.com"}`,
			fmt.Sprintf(`{"subject":"%s.%0300d"}`, own, 0),
		},
		"/token": {`{"subject":"` + own + `.x","token":"abc"}`},
	} {
		for _, body := range bodies {
			answer := beta.Call(api.WakeupSet.Name, body)
			if testkit.Refused(t, answer, session.MalformedEnvelope); !strings.Contains(string(answer.Data), fmt.Sprintf(`{"path":%q}`, path)) {
				t.Errorf("%s is refused by %s, want %s", body, answer.Data, path)
			}
		}
	}
	if answer := beta.Call(api.WakeupSet.Name, `{"subject":"`+own+`.x"}`); testkit.Code(t, answer) != "" {
		t.Errorf("one's own subject is refused: %s", answer.Data)
	}
}
