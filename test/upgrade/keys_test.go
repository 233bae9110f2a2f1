//go:build long

package upgrade_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/server"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/test/testkit"
)

// TestKeysOfANewerRelease has a release that knows no history of keys open the directory of a newer one. Before the
// first rotation nothing is different. After it the release goes on with sessions, and takes none of before for genuine,
// opens no hosted key, and gives the log another name. The newer one finds everything in order again.
func TestKeysOfANewerRelease(t *testing.T) {
	before := release(t, "before-keys")
	w := newWorld(t)
	k := &keyed{load: &load{world: w, news: make(chan struct{}, 1)}, address: testkit.FreeAddress(t)}
	k.serves(now, func() {
		w.connects()
		k.hosts()
		k.works(now)
	})
	log := k.log
	k.serves(before, func() { k.works(before) })
	_, err := server.RotateBrokerKey(w.data, time.Now())
	testkit.Must(t, err)
	k.serves(now, func() { k.works(now) })
	if k.log != log {
		t.Errorf("the log was %s and is %s", log, k.log)
	}
	of := len(k.talks)
	k.serves(before, func() {
		k.accepts(k.open, observed)
		testkit.Must(t, k.negotiate(scripts[0]))
		if out, err := k.runs(before, "session", "verify", "--all"); err == nil || strings.Count(out, "FAULT ") != of-1 {
			t.Errorf("%d sessions were there before the key, and all but the one that it opened cannot verify: %v\n%s", of, err, out)
		}
		if status := k.says("OBSERVE", `{"subject":"x"}`); status != http.StatusServiceUnavailable {
			t.Errorf("the hosted agent is answered %d", status)
		}
		k.broker.logs("a hosted key does not open")
		if other, err := k.runs(before, "log", "key"); err != nil || other == log {
			t.Errorf("the log is %s %v", other, err)
		}
	})
	k.serves(now, func() { k.works(now) })
	if k.log != log {
		t.Errorf("the log was %s and is %s", log, k.log)
	}
}

// A keyed world has what is signed or sealed by the broker's key: sessions, a log, and a hosted agent.
type keyed struct {
	*load
	broker  *broker
	address string // of HTTP
	open    *talk  // with the hosted agent
	token   string // of it
	log     string // its key
}

const cron = performatives.Agent("agent://acme.com/cron")

var observed = line{alpha, performatives.Observe, `{"subject":"x"}`, session.Conversing}

// serves runs one broker meanwhile.
func (k *keyed) serves(program string, do func()) {
	k.Helper()
	k.broker = k.starts(program, "--nats", k.url, "--http", k.address)
	testkit.Must(k, k.broker.ready())
	do()
	k.broker.ends(syscall.SIGTERM)
}

// hosts opens a session with a hosted agent.
func (k *keyed) hosts() {
	k.Helper()
	_, err := k.operator.AddHosted(k.ctx, api.Card{Agent: cron})
	testkit.Must(k, err)
	token, err := k.operator.AddToken(k.ctx, api.AddToken{Agent: cron})
	testkit.Must(k, err)
	k.token = token.Token
	k.open = k.opens("asp/1")
	k.accepts(k.open, line{alpha, performatives.Propose, fmt.Sprintf(
		`{"proposalId":"inv","type":"session-invitation","subject":"x","terms":{"participants":[%q]}}`, cron), session.Invited})
	if status := k.says("ACCEPT", `{"referenceId":"inv"}`); status != http.StatusOK {
		k.Fatalf("the hosted agent is answered %d", status)
	}
}

// works has everything go on, and sessions and the log verify.
func (k *keyed) works(program string) {
	k.Helper()
	k.accepts(k.open, observed)
	testkit.Must(k, k.negotiate(scripts[0]))
	testkit.Eventually(k, "the hosted agent speaks", func() bool { return k.says("OBSERVE", `{"subject":"x"}`) == http.StatusOK })
	k.verifies(program, len(k.talks))
	for _, args := range [][]string{{"log", "key"}, {"log", "verify", "--log-url", "http://" + k.address + "/log"}} {
		out, err := k.runs(program, args...)
		if err != nil {
			k.Errorf("%s %s: %v\n%s", program, strings.Join(args, " "), err, out)
		}
		if args[1] == "key" {
			k.log = out
		}
	}
}

// says has the hosted agent say something, over HTTP.
func (k *keyed) says(act, body string) (status int) {
	k.Helper()
	r, err := http.NewRequestWithContext(k.ctx, http.MethodPost, "http://"+k.address+api.HTTPBase+"/sessions/"+string(k.open.id)+"/messages",
		strings.NewReader(fmt.Sprintf(`{"performative":%q,"body":%s}`, act, body)))
	testkit.Must(k, err)
	r.Header.Set("Authorization", "Bearer "+k.token)
	r.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	testkit.Must(k, err)
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		text, err := io.ReadAll(answer.Body)
		k.Logf("%s is answered %s %v", act, text, err)
	}
	return answer.StatusCode
}
