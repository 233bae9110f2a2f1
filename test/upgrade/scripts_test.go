//go:build long

package upgrade_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// A line is one act of a script, and the state that it leads to. In the body {last} is the messageId of the line
// before, and {soon} is in an hour.
type line struct {
	by   performatives.Agent
	act  performatives.Performative
	body string
	then session.Phase
}

func (l line) text(last performatives.MessageID) string {
	return strings.NewReplacer("{last}", string(last), "{soon}", time.Now().Add(time.Hour).UTC().Format(time.RFC3339)).Replace(l.body)
}

// A script is a session from its beginning to its end.
type script struct {
	mode  string
	lines []line
}

// inviting is the body of an invitation of beta, and alpha's offers are by its hand.
func inviting(mode string) string {
	return fmt.Sprintf(`{"proposalId":"inv","type":"session-invitation","subject":"x","terms":{"participants":[%q],"mode":%q}}`, beta, mode)
}

const assessed = `,"assessment":{"reasoning":"it fits","suggestedRoles":{"ownUser":"patient","otherUser":"agent"}}}`

// opened are the first lines of a script, until both have offered p1 and p2.
func opened(mode, more string) []line {
	return []line{
		{alpha, performatives.Propose, inviting(mode), session.Invited},
		{beta, performatives.Accept, `{"referenceId":"inv"}`, session.Introduced},
		{alpha, performatives.Propose, `{"proposalId":"p1","type":"x","subject":"x","terms":{"price":1}` + more, session.Conversing},
		{beta, performatives.Counter, `{"proposalId":"p2","referenceId":"p1","terms":{"price":2}` + more, session.Conversing},
	}
}

// scripts have an escalation that a human decides, obligations that are delivered, and all four modes.
var scripts = []script{
	{"asp/1", append(opened("asp/1", "}"),
		line{alpha, performatives.Escalate, `{"reason":"authority-limit","urgency":"low","context":"may I?","referenceId":"p2"}`, session.Escalated},
		line{alice, performatives.Inform, `{"type":"resolution","data":{"escalationId":"{last}","decision":"approved"}}`, session.Conversing},
		line{alpha, performatives.Accept, `{"referenceId":"p2"}`, session.Conversing},
		line{alpha, performatives.Commit, fmt.Sprintf(`{"commitmentId":"k1","referenceId":"p2","terms":{"obligations":[{"party":%q,"action":"deliver","deadline":"{soon}"}]}}`, beta), session.Agreeing},
		line{beta, performatives.Accept, `{"referenceId":"k1"}`, session.Executing},
		line{beta, performatives.Inform, `{"type":"result","data":{"commitmentId":"k1","obligation":"0"}}`, session.Executing},
		line{alpha, performatives.Accept, `{"referenceId":"{last}"}`, session.Executing},
		line{alpha, performatives.Close, `{"outcome":"completed"}`, session.Closed},
	)},
	{"bilateral/1", append(opened("bilateral/1", assessed),
		line{alpha, performatives.Accept, `{"referenceId":"p2"` + assessed, session.Closed},
	)},
	{"binding/1", append(opened("binding/1", "}"),
		line{alpha, performatives.Accept, `{"referenceId":"p2"}`, session.Closed},
	)},
	{"convergent/1", append(opened("convergent/1", "}"),
		line{alpha, performatives.Accept, `{"referenceId":"p2"}`, session.Conversing},
		line{beta, performatives.Accept, `{"referenceId":"p2"}`, session.Conversing},
		line{alpha, performatives.Commit, `{"commitmentId":"k1","referenceId":"p2"}`, session.Executing},
		line{alpha, performatives.Close, `{"outcome":"completed"}`, session.Closed},
	)},
}
