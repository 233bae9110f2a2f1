package broker_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/api/fit"
	"github.com/parley-asp/parley/broker/limits"
	"github.com/parley-asp/parley/client/audit"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/session/modes"
	"github.com/parley-asp/parley/session/transcript"
	"github.com/parley-asp/parley/test/testkit"
)

// reads calls a verb as the operator, and reads the reply.
func (l line) reads(verb, request string, reply any) {
	l.Helper()
	m, err := testkit.Request(l.nc, api.OperatorCall(verb), []byte(request))
	if err != nil {
		l.Fatal(err)
	}
	if err := json.Unmarshal(m.Data, reply); err != nil {
		l.Fatalf("%s: %v", m.Data, err)
	}
}

// A reply is bounded in bytes: items and copies that are too long for one are paged, and
// together they are everything.
func TestHeldIsPaged(t *testing.T) {
	t.Parallel()
	l := limited(t, limits.Limits{})
	var crowd []performatives.Agent
	for i := range 60 {
		crowd = append(crowd, performatives.Agent(fmt.Sprintf("agent://many.org/%s%d", strings.Repeat("a", 170), i)))
	}
	id := newID()
	l.accepted(l.says(id, alpha, "PROPOSE", invitation(crowd...)))
	for _, a := range crowd {
		l.accepted(l.says(id, a, "ACCEPT", `{"referenceId":"inv"}`))
	}
	long := fmt.Sprintf(`{"reason":"authority-limit","urgency":"low","context":%q}`, strings.Repeat("x", api.MaxItemBytes))
	for range 8 {
		l.accepted(l.says(id, alpha, "ESCALATE", long))
		view, err := l.viewed(id)
		if err != nil {
			t.Fatal(err)
		}
		l.rules(id, string(view.Escalation.ID))
	}
	const entries = 1 + 60 + 2*8
	read := func() (held api.Held, pages int) {
		for ; pages == 0 || held.Next != ""; pages++ {
			var page api.Held
			l.reads(api.AuditSession.Name, fmt.Sprintf(`{"sessionId":%q,"cursor":%q}`, id, held.Next), &page)
			if size := fit.Size(page); size > api.MaxPageBytes+100 { // next comes last
				t.Errorf("page %d has %d bytes", pages, size)
			}
			if (page.Index != nil) != (pages == 0) {
				t.Errorf("page %d has the row %v", pages, page.Index)
			}
			held.Items, held.Copies, held.Next = append(held.Items, page.Items...), append(held.Copies, page.Copies...), page.Next
		}
		return held, pages
	}
	var held api.Held
	var pages int
	testkit.Eventually(t, "the last copies are there", func() bool {
		held, pages = read()
		return len(held.Copies) >= 60*entries
	})
	if len(held.Items) != 8 || len(held.Copies) < 60*entries || pages < 3 {
		t.Errorf("%d items and %d copies on %d pages", len(held.Items), len(held.Copies), pages)
	}
	for _, cursor := range []string{"items:x", "copies:", "copies:1", "copies:x:y", "17", "others:1"} {
		l.refused(l.ask(api.OperatorCall(api.AuditSession.Name), fmt.Appendf(nil, `{"sessionId":%q,"cursor":%q}`, id, cursor)), session.MalformedEnvelope)
	}
}

// Copies grow with the square of the participants. Of a session with very many, the broker
// counts them instead, and the counts find what is missing.
func TestHeldOfACrowd(t *testing.T) {
	t.Parallel()
	l := limited(t, limits.Limits{})
	var crowd []performatives.Agent
	for i := range 145 {
		crowd = append(crowd, performatives.Agent(fmt.Sprintf("agent://many.org/a%d", i)))
	}
	id := newID()
	l.accepted(l.says(id, alpha, "PROPOSE", invitation(crowd...)))
	for _, a := range crowd {
		l.accepted(l.says(id, a, "ACCEPT", `{"referenceId":"inv"}`))
	}
	ref := fmt.Sprintf(`{"sessionId":%q}`, id)
	var stored api.Stored
	l.reads(api.AuditMessages.Name, ref, &stored)
	entries, err := transcript.ReadAll(bytes.NewReader(append(bytes.Join(stored.Messages, []byte("\n")), '\n')))
	if err != nil || len(entries) != 146 {
		t.Fatal(len(entries), err)
	}
	held := func() (held api.Held) {
		t.Helper()
		l.reads(api.AuditSession.Name, ref, &held)
		return held
	}
	faults := func(h api.Held) string {
		t.Helper()
		found, err := audit.Session(entries, h, modes.All())
		if err != nil {
			t.Error(err)
		}
		return fmt.Sprint(found)
	}
	var whole api.Held
	testkit.Eventually(t, "the last copies are there", func() bool {
		whole = held()
		return faults(whole) == "[]"
	})
	if len(whole.Copies) > 0 || len(whole.Inboxes) != 146 || whole.Next != "" {
		t.Fatalf("%d copies, %d inboxes, next %q", len(whole.Copies), len(whole.Inboxes), whole.Next)
	}
	for name, c := range map[string]struct {
		breaks func(*api.Held)
		want   string
	}{
		"a copy less":          {func(h *api.Held) { h.Inboxes[7].Copies-- }, "it has 144 copies; there are 145 entries for"},
		"a copy more":          {func(h *api.Held) { h.Inboxes[7].Copies++ }, "it has 146 copies; there are 145 entries for"},
		"another end":          {func(h *api.Held) { h.Inboxes[7].Last = performatives.HashOf(entries[3].Bytes) }, "it ends with entry 3; entry 145 is missing"},
		"an end of no session": {func(h *api.Held) { h.Inboxes[7].Last = performatives.HashOf(nil) }, "not an entry of the transcript"},
		"no inbox":             {func(h *api.Held) { h.Inboxes = h.Inboxes[:145] }, "it has no copies; there are 145 entries for"},
		"an inbox of nobody":   {func(h *api.Held) { h.Inboxes[7].Agent = "agent://gizmo.io/gamma" }, "no entry of the session is for agent://gizmo.io/gamma"},
	} {
		broken := whole
		broken.Inboxes = append([]api.HeldInbox{}, whole.Inboxes...)
		c.breaks(&broken)
		if said := faults(broken); !strings.Contains(said, c.want) {
			t.Errorf("%s: %s, want %q", name, said, c.want)
		}
	}
}
