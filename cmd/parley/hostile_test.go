package main

import (
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/test/testkit"
)

// hostile has what a terminal would obey: escape sequences, C1 controls, bidirectional
// overrides, invisible characters, and a newline.
const hostile = "ok\x1b[2J\u009b31m\u202egro.live\u202c\u200b\ufeff\U000e0041\n 9  alice  approved"

// TestHostileText: no command prints a character of a counterparty's text that a terminal
// would obey, as text or as JSON.
func TestHostileText(t *testing.T) {
	t.Parallel()
	w := &stored{}
	w.starts(t, testkit.Options{})
	buyer := w.Client(alpha)
	seller := w.Client(beta)
	alice := w.Principal("human://acme.com/alice", func(c *api.Card) { c.Registry.MayDecide, c.Name = true, hostile })
	_, err := seller.Register(w.Ctx, api.Card{Agent: beta, Name: hostile, Description: hostile, Capabilities: []string{hostile}})
	testkit.Must(t, err)
	_, err = seller.PutSchema(w.Ctx, "hostile-v1", map[string]any{"type": "object", "title": hostile, "description": hostile, "properties": map[string]any{hostile: true}})
	testkit.Must(t, err)
	s, err := seller.Invite(w.Ctx, client.Invitation{ProposalID: "inv", With: []performatives.Agent{alpha}, Purpose: hostile})
	testkit.Must(t, err)
	buys := buyer.Session(s.ID())
	_, err = buys.Accept(w.Ctx, "inv")
	testkit.Must(t, err)
	_, err = s.Propose(w.Ctx, client.Proposal{ID: "p0", Type: "service-agreement", Subject: hostile, Terms: map[string]any{hostile: hostile}})
	testkit.Must(t, err)
	_, err = buys.Accept(w.Ctx, "p0")
	testkit.Must(t, err)
	sold, err := seller.Invite(w.Ctx, client.Invitation{ProposalID: "inv", With: []performatives.Agent{alpha}, Purpose: hostile})
	testkit.Must(t, err)
	deal := buyer.Session(sold.ID())
	_, err = deal.Accept(w.Ctx, "inv")
	testkit.Must(t, err)
	_, err = sold.Propose(w.Ctx, client.Proposal{ID: "p0", Type: "service-agreement", Subject: hostile, Terms: map[string]any{hostile: hostile}})
	testkit.Must(t, err)
	_, err = deal.Accept(w.Ctx, "p0")
	testkit.Must(t, err)
	_, err = deal.Close(w.Ctx, client.Closing{Outcome: "completed", Summary: hostile})
	testkit.Must(t, err)
	_, err = s.Propose(w.Ctx, client.Proposal{ID: "p1", Type: "service-agreement", Subject: hostile, Terms: map[string]any{"price": 1, hostile: hostile}})
	testkit.Must(t, err)
	asked, err := buys.Escalate(w.Ctx, client.Escalation{Reason: client.AuthorityLimit, Urgency: client.High, Context: hostile, About: "p1"})
	testkit.Must(t, err)
	decider := w.Client(alice.Agent)
	_, err = client.Do(w.Ctx, decider, api.EscalationComment, api.CommentEscalation{Escalation: asked.ID, Text: hostile})
	testkit.Must(t, err)

	id, item, file := string(s.ID()), asked.ID, filepath.Join(t.TempDir(), "deal.json")
	if said, status := w.reports([]string{"agreement", "export", string(sold.ID()), "-o", file, "--url", w.URL, "--data", w.Data}); status != done {
		t.Fatal(said)
	}
	for _, command := range []string{"show", "verify"} {
		said, _ := w.reports([]string{"agreement", command, file})
		if !harmlessText(said) {
			t.Errorf("parley agreement %s prints:\n%q", command, said)
		}
	}
	for _, command := range [][]string{
		{"session", "ls"}, {"session", "show", id}, {"session", "show", id, "--full"}, {"session", "verify", id}, {"session", "audit", id},
		{"agreement", "ls", id}, {"agent", "ls"}, {"agent", "show", string(beta)}, {"human", "ls"}, {"human", "show", string(alice.Agent)},
		{"schemas"}, {"schemas", "hostile-v1"}, {"schemas", hostile},
		{"inbox", "ls"}, {"inbox", "show", item}, {"inbox", "show", item, "--full"}, {"inbox", "history", item}, {"inbox", "ls", "--urgency", hostile},
		{"__complete", "session", "show", ""}, {"__complete", "agent", "show", ""}, {"__complete", "inbox", "show", ""},
	} {
		for _, more := range [][]string{nil, {"--json"}} {
			if command[0] == "__complete" && more != nil {
				continue
			}
			args := append([]string{"--url", w.URL, "--data", w.Data}, more...)
			if command[0] == "__complete" { // the word to complete comes last
				args = append(append([]string{"__complete", command[1], command[2]}, args...), command[3])
			} else {
				args = append(command, args...)
			}
			said, _ := w.reports(args)
			if !harmlessText(said) {
				t.Errorf("parley %q prints:\n%q", args, said)
			}
			if more != nil && !jsontext.Value(said).IsValid() {
				t.Errorf("parley %q prints no JSON:\n%s", args, said)
			}
		}
	}
}

func harmlessText(said string) bool {
	return !strings.ContainsFunc(said, func(c rune) bool { return c != '\n' && c != '\t' && !unicode.IsPrint(c) })
}

// reports runs a command as the program does, errors included.
func (w *stored) reports(args []string) (said string, status int) {
	w.Helper()
	var out strings.Builder
	root := rootCommand()
	root.SetOut(&out)
	root.SetErr(&out)
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(w.Ctx)
	status = report(cmd, args, err)
	return out.String(), status
}
