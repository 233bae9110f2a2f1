package server_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker/limits"
	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/inbox/notify"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/server"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/test/testkit"
)

const oneDecides = `organisations: {acme.com: {groups: {board: ['human://acme.com/boss']}, remindDue: 1h, rules: [{approvers: [board]}]}}`

// ruled reads escalation rules.
func ruled(t *testing.T, text string) server.Options {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rules.yaml")
	testkit.Must(t, os.WriteFile(path, []byte(text), 0o600))
	rules, err := server.ReadRules(path)
	testkit.Must(t, err)
	return server.Options{Rules: rules}
}

// New rules route new escalations, new targets are notified, and others have the limits that are new.
func TestReload(t *testing.T) {
	t.Parallel()
	w := newBargain(t)
	posted := make(chan string, 16)
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		testkit.Must(t, err)
		posted <- string(body)
	}))
	t.Cleanup(hook.Close)
	dir := t.TempDir()
	testkit.Must(t, os.WriteFile(filepath.Join(dir, "secret"), []byte("whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIz"), 0o600))
	testkit.Must(t, os.WriteFile(filepath.Join(dir, "notify.yaml"), []byte("links: http://127.0.0.1/inbox/\norganisations: {acme.com: {webhooks: [{url: '"+hook.URL+"', secretFile: secret}]}}"), 0o600))
	next := ruled(t, oneDecides)
	var err error
	next.Notify, err = notify.Load(filepath.Join(dir, "notify.yaml"))
	testkit.Must(t, err)
	next.Limits = limits.Limits{Schemas: 1}
	testkit.Must(t, w.Reload(w.Ctx, next))
	if lead := w.Server.Broker.Parts.Approvals.Rules().RemindDue("acme.com"); lead != time.Hour {
		t.Errorf("people are told %s before something is due", lead)
	}

	old, err := w.Client(w.boss).Escalation(w.Ctx, w.item)
	testkit.Must(t, err)
	if len(old.Route.Levels[0].Approvers) > 0 {
		t.Errorf("the escalation of before has approvers: %+v", old.Route)
	}
	w.rules()
	escalate := func() (api.EscalationItem, error) {
		asked, err := w.Client(w.buyer).Session(w.id).Escalate(w.Ctx, client.Escalation{Reason: client.AuthorityLimit, Context: "more", About: "p1"})
		if err != nil {
			return api.EscalationItem{}, err
		}
		return w.Client(w.boss).Escalation(w.Ctx, asked.ID)
	}
	item, err := escalate()
	testkit.Must(t, err)
	if item.Route == nil || !slices.Equal(item.Route.Levels[0].Approvers, []performatives.Agent{w.boss}) {
		t.Errorf("the new rules give no route: %+v", item.Route)
	}
	for body := range posted {
		if strings.Contains(body, string(item.ID)) && strings.Contains(body, "opened") {
			break
		}
	}
	w.item = string(item.ID)
	w.rules()
	_, err = w.Client(w.buyer).PutSchema(w.Ctx, "one-v1", map[string]any{"type": "object"})
	testkit.Must(t, err)
	two := func() error {
		_, err := w.Client(w.buyer).PutSchema(w.Ctx, "two-v1", map[string]any{"type": "object"})
		return err
	}
	if err := two(); !errors.Is(err, client.Refused(session.TooLarge)) {
		t.Errorf("a second schema: %v", err)
	}

	// What cannot be used changes nothing.
	broken := ruled(t, oneDecides)
	broken.Rules.Organisations["acme.com"].Groups["not a name."] = nil
	if err := w.Reload(w.Ctx, broken); err == nil {
		t.Error("a group that has no name is taken")
	}
	if err := two(); !errors.Is(err, client.Refused(session.TooLarge)) {
		t.Errorf("a second schema after a reload that failed: %v", err)
	}
	testkit.Must(t, w.Reload(w.Ctx, server.Options{}))
	testkit.Must(t, two())
	item, err = escalate()
	testkit.Must(t, err)
	if len(item.Route.Levels[0].Approvers) > 0 {
		t.Errorf("without rules there is a route: %+v", item.Route)
	}
}

// A human whose groups change logs in again, with the permissions of the new ones. Others stay.
func TestReloadGroups(t *testing.T) {
	t.Parallel()
	w := newBargain(t)
	lost := make(chan struct{})
	_, err := w.Principal(w.boss).Dial(w.Principal(w.boss).Login(), nats.ClosedHandler(func(*nats.Conn) { close(lost) }))
	testkit.Must(t, err)
	other := w.Principal(w.other).Conn()
	testkit.Must(t, w.Reload(w.Ctx, ruled(t, oneDecides)))
	<-lost
	testkit.Must(t, other.Flush())
}
