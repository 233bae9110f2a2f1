package broker_test

import (
	"fmt"
	"testing"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker/limits"
)

// A history is read in batches, and not action by action.
func TestHistoryIsReadInBatches(t *testing.T) {
	t.Parallel()
	const alice, comments = "human://acme.com/alice", 100
	l := limited(t, limits.Limits{})
	id := newID()
	l.accepted(l.says(id, alpha, "PROPOSE", invitation(beta)))
	l.accepted(l.says(id, beta, "ACCEPT", `{"referenceId":"inv"}`))
	l.accepted(l.says(id, alpha, "ESCALATE", `{"reason":"authority-limit","urgency":"low","context":"x"}`))
	var list api.Escalations
	l.reads(api.EscalationList.Name, `{}`, &list)
	if len(list.Escalations) != 1 {
		t.Fatalf("%d escalations", len(list.Escalations))
	}
	request := fmt.Sprintf(`"escalationId":%q`, list.Escalations[0].ID)
	for n := range comments {
		l.accepted(l.ask(api.Call(alice, api.EscalationComment.Name), fmt.Appendf(nil, `{%s,"text":"%d"}`, request, n)))
	}
	before := l.Server.Broker.Options.Conn.Stats().OutMsgs
	var history api.CaseLog
	l.reads(api.EscalationHistory.Name, "{"+request+"}", &history)
	sent := l.Server.Broker.Options.Conn.Stats().OutMsgs - before
	if n := len(history.Actions); n < comments || sent > comments/2 {
		t.Errorf("%d actions were read with %d messages", n, sent)
	}
}
