package session_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// The picture of the lifecycle cannot rot: it is drawn from the table itself.
func TestLifecyclePicture(t *testing.T) {
	const file = "../docs/lifecycle.md"
	want := picture()
	if *update {
		if err := os.MkdirAll("../docs", 0o755); err != nil { //nolint:gosec // documentation
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil { //nolint:gosec // documentation
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v; go test ./session -run Lifecycle -update draws it", err)
	}
	if string(got) != want {
		t.Errorf("docs/lifecycle.md is not the table; go test ./session -run Lifecycle -update draws it again:\n%s", cmp.Diff(string(got), want))
	}
}

func picture() string {
	var b strings.Builder
	b.WriteString(`# The lifecycle of a session

<!-- Generated from the table in session/lifecycle.go: go test ./session -run Lifecycle -update -->

For anyone who writes an agent: which act is accepted in which state, and the state that it leads to (PROTOCOL.md §5).
An empty cell is refused: ` + "`wrong_state`, or `session_escalated` while ESCALATED, or `unknown_session` while IDLE" + `.
CLOSED and FAILED accept nothing. A mode may refuse more; it never accepts what this table does not.

`)
	b.WriteString(matrix())
	b.WriteString(`
* IDLE: only a PROPOSE of type ` + "`session-invitation`" + `. INVITED: all acts refer to the invitation; COUNTER needs a single invitee.
* ★ depends on the session: ` + starred() + `.
* AGREEING: ACCEPT, REJECT, COUNTER and WITHDRAW refer to a commitment.
* ESCALATED: only from a human who may decide; the INFORM is a resolution.
* ACCEPT, REJECT and WITHDRAW of a delegation: accepted in ` + names(session.OfDelegations) + `; the state does not change.
* WITHDRAW of a clarification: accepted in ` + names(session.OfQuestions) + `; the state does not change.
* Deadlines lead to FAILED from every state but IDLE, CLOSED and FAILED.

`)
	b.WriteString("Without deadlines, ESCALATE and its end, and CLOSE:\n\n```mermaid\n" + diagram() + "```\n")
	return b.String()
}

// matrix has a row for each act and a column for each state that accepts one.
func matrix() string {
	var b strings.Builder
	open := slices.DeleteFunc(slices.Clone(session.Phases()), func(p session.Phase) bool {
		return !slices.ContainsFunc(performatives.All(), func(act performatives.Performative) bool { return cellText(p, act) != "" })
	})
	fmt.Fprint(&b, "|  |")
	for _, p := range open {
		fmt.Fprintf(&b, " %s |", p)
	}
	fmt.Fprint(&b, "\n|---|", strings.Repeat("---|", len(open)), "\n")
	for _, act := range performatives.All() {
		fmt.Fprintf(&b, "| **%s** |", act)
		for _, p := range open {
			fmt.Fprintf(&b, " %s |", cellText(p, act))
		}
		fmt.Fprintln(&b)
	}
	return b.String()
}

func cellText(p session.Phase, act performatives.Performative) string {
	_, to := session.Leads(p, act)
	switch {
	case len(to) == 0:
		return ""
	case len(to) > 1:
		return "★"
	case to[0] == p:
		return "stays"
	}
	return "→ " + to[0].String()
}

// starred explains each transition whose target is not one fixed state.
func starred() string {
	var notes []string
	for _, p := range session.Phases() {
		byWords := map[string][]string{}
		var order []string
		for _, act := range performatives.All() {
			if words, to := session.Leads(p, act); len(to) > 1 {
				if byWords[words] == nil {
					order = append(order, words)
				}
				byWords[words] = append(byWords[words], act.String())
			}
		}
		for _, words := range order {
			notes = append(notes, fmt.Sprintf("%s while %s: %s", strings.Join(byWords[words], ", "), p, words))
		}
	}
	return strings.Join(notes, "; ")
}

func names(in func(session.Phase) bool) string {
	var list []string
	for _, p := range session.Phases() {
		if in(p) {
			list = append(list, p.String())
		}
	}
	return strings.Join(list, ", ")
}

// diagram draws one transition between two states, labelled with its acts. What stays is not
// drawn, nor what leads from every state of a negotiation to the same one.
func diagram() string {
	var b strings.Builder
	b.WriteString("stateDiagram-v2\n    [*] --> IDLE\n")
	for _, p := range session.Phases() {
		for _, q := range session.Phases() {
			var acts []string
			for _, act := range performatives.All() {
				if _, to := session.Leads(p, act); p != q && slices.Contains(to, q) && act != performatives.Escalate && act != performatives.Close && p != session.Escalated {
					acts = append(acts, act.String())
				}
			}
			if len(acts) > 0 {
				fmt.Fprintf(&b, "    %s --> %s: %s\n", p, q, strings.Join(acts, ", "))
			}
		}
	}
	return b.String()
}
