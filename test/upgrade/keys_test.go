//go:build long

package upgrade_test

import (
	"bytes"
	"fmt"
	"net/http"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/server"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/test/testkit"
)

func TestKeysOfANewerRelease(t *testing.T) {
	before := release(t, "before-keys")
	w := newWorld(t)
	address := testkit.FreeAddress(t)
	serves := func(program string) *broker {
		b := w.starts(program, "--nats", w.url, "--http", address)
		testkit.Must(w, b.ready())
		return b
	}
	b := serves(now)
	w.connects()
	cron := performatives.Agent("agent://acme.com/cron")
	_, err := w.operator.AddHosted(w.ctx, api.Card{Agent: cron})
	testkit.Must(t, err)
	token, err := w.operator.AddToken(w.ctx, api.AddToken{Agent: cron})
	testkit.Must(t, err)
	l := &load{world: w, news: make(chan struct{}, 1)}
	testkit.Must(t, l.negotiate(scripts[0]))
	open := l.opens("asp/1")
	l.accepts(open, line{alpha, performatives.Propose, fmt.Sprintf(`{"proposalId":"inv","type":"session-invitation","subject":"x","terms":{"participants":[%q,%q]}}`, beta, cron), session.Invited})
	l.accepts(open, line{beta, performatives.Accept, `{"referenceId":"inv"}`, session.Invited})
	says := func(body string) testkit.Answer {
		r, err := http.NewRequestWithContext(w.ctx, http.MethodPost, "http://"+address+api.HTTPBase+"/sessions/"+string(open.id)+"/messages", bytes.NewReader([]byte(body)))
		testkit.Must(t, err)
		r.Header.Set("Authorization", "Bearer "+token.Token)
		r.Header.Set("Content-Type", "application/json")
		return testkit.Do(t, func() *http.Request { return r })
	}
	logKey := func(program string) string {
		out, err := exec.Command(program, "log", "key", "--url", w.url, "--data", w.data).CombinedOutput()
		testkit.Must(t, err)
		return string(out)
	}
	show := func(what string, program string) {
		t.Logf("== %s: log %s", what, logKey(program))
		a := says(`{"performative":"OBSERVE","body":{"subject":"x"}}`)
		t.Logf("hosted: %d %s", a.StatusCode, a.Body)
		a2, err := l.says(w.conns[alpha], open, w.alpha, line{alpha, performatives.Observe, `{"subject":"x"}`, session.Invited}, "")
		t.Logf("alpha: %v %v", a2.Accepted, err)
		out, err := exec.Command(program, "session", "verify", "--all", "--url", w.url, "--data", w.data, "--broker-key", string(w.key), "--timeout", "2m").CombinedOutput()
		t.Logf("verify first key: %v %s", err, out)
		out, err = exec.Command(program, "session", "verify", "--all", "--url", w.url, "--data", w.data, "--timeout", "2m").CombinedOutput()
		t.Logf("verify: %v %s", err, out)
		out, err = exec.Command(program, "log", "verify", "--url", w.url, "--data", w.data, "--timeout", "2m").CombinedOutput()
		t.Logf("log verify: %v %s", err, out)
	}
	show("now", now)
	b.ends(syscall.SIGTERM)
	b = serves(before)
	show("before, not rotated", before)
	b.ends(syscall.SIGTERM)
	_, err = server.RotateBrokerKey(w.data, time.Now())
	testkit.Must(t, err)
	b = serves(now)
	show("now, rotated", now)
	b.ends(syscall.SIGTERM)
	b = serves(before)
	show("before, rotated", before)
	t.Log(b.said)
	b.ends(syscall.SIGTERM)
	b = serves(now)
	show("now, again", now)
	t.Log(b.said)
}
