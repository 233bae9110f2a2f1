package approvals_test

import (
	"slices"
	"testing"
	"time"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/test/testkit"
)

func (o *office) away(a, to performatives.Agent, from, until time.Duration) {
	o.Helper()
	now := time.Now()
	if _, err := calls[api.Card](o, a, api.HumanAway.Name, api.SetAway{To: to, From: now.Add(from), Until: now.Add(until)}); err != nil {
		o.Fatalf("%s is away: %v", a, err)
	}
}

func (o *office) back(a performatives.Agent) {
	o.Helper()
	if _, err := calls[api.Card](o, a, api.HumanAway.Name, api.SetAway{}); err != nil {
		o.Fatalf("%s is back: %v", a, err)
	}
}

// While a human is away, what is opened, and what is handed to them, is the stand-in's.
// Both may still decide, and colleagues see who is away.
func TestStandIn(t *testing.T) {
	t.Parallel()
	o := newOffice(t, nil, nil)
	before := o.asks("9000")
	o.away(alice, anna, 0, time.Hour)
	if item := o.item(chief, before); item.Case.Assignee != "" {
		t.Errorf("what was opened before is assigned to %s", item.Case.Assignee)
	}
	e := o.asks("15000")
	item := o.item(anna, e)
	if item.Case.Assignee != anna || !item.You.Decide || !o.item(alice, e).You.Decide {
		t.Errorf("%+v %+v", item.Case, item.You)
	}
	n := slices.IndexFunc(item.Approvers, func(a api.Approver) bool { return a.Agent == alice })
	if away := item.Approvers[n].Away; away == nil || away.To != anna {
		t.Errorf("colleagues see %+v", item.Approvers[n])
	}
	actions := slices.DeleteFunc(o.history(e), func(a escalation.Action) bool { return a.Kind == escalation.Viewed })
	if len(actions) != 2 || actions[1].Kind != escalation.Assigned || actions[1].To != anna || actions[1].Absent != alice || actions[1].By != "" {
		t.Errorf("the history is %+v", actions)
	}
	if outside, err := calls[api.Card](o, bob, api.AgentGet.Name, api.AgentRef{Agent: alice}); err != nil || outside.Registry.Away != nil {
		t.Errorf("the other side sees %+v %v", outside.Registry.Away, err)
	}

	// A colleague's own word stays, and what is handed to the absent human goes on.
	ref := string(e)
	if item := o.does(chief, api.EscalationAssign.Name, api.AssignEscalation{Escalation: ref, To: chief}); item.Case.Assignee != chief {
		t.Errorf("assigned to the chief, it is %s's", item.Case.Assignee)
	}
	if item := o.does(chief, api.EscalationTransfer.Name, api.TransferEscalation{Escalation: ref, To: alice, Reason: "yours"}); item.Case.Assignee != anna {
		t.Errorf("transferred to alice, it is %s's", item.Case.Assignee)
	}
	o.back(alice)
	if item := o.does(chief, api.EscalationAssign.Name, api.AssignEscalation{Escalation: ref, To: alice}); item.Case.Assignee != alice {
		t.Errorf("once alice is back, it is %s's", item.Case.Assignee)
	}
	o.away(alice, anna, time.Hour, 2*time.Hour)
	if item := o.item(anna, o.asks("700")); item.Case.Assignee != "" {
		t.Errorf("before alice is away, it is %s's", item.Case.Assignee)
	}
}

// A stand-in gets no right: who is not asked stays so, and so does who is away too.
func TestStandInIsNoRight(t *testing.T) {
	t.Parallel()
	o := newOffice(t, chain(time.Hour, 2*time.Hour, time.Minute), nil)
	for to, why := range map[performatives.Agent]string{anna: "who is not asked", chief: "who is not asked yet"} {
		o.away(alice, to, 0, time.Hour)
		e := o.asks("15000")
		if item := o.item(alice, e); item.Case.Assignee != "" || !item.You.Decide {
			t.Errorf("%s: %+v", why, item.Case)
		}
		if _, err := o.rules(to, e, performatives.Approved); err == nil {
			t.Errorf("%s decides", why)
		}
		// Up the chain the chief's own turn comes, and nobody stands in there.
		if item := o.does(alice, api.EscalationTransfer.Name, api.TransferEscalation{Escalation: string(e), Level: "board"}); item.Case.Assignee != "" {
			t.Errorf("%s: the board's item is %s's", why, item.Case.Assignee)
		}
	}
	everybody := newOffice(t, nil, nil)
	everybody.away(alice, anna, 0, time.Hour)
	everybody.away(anna, alice, 0, time.Hour)
	if item := everybody.item(chief, everybody.asks("9000")); item.Case.Assignee != "" {
		t.Errorf("two who stand in for each other: it is %s's", item.Case.Assignee)
	}
}

// Who may be away, for how long, and who may stand in.
func TestAwayRefusals(t *testing.T) {
	t.Parallel()
	o := newOffice(t, nil, nil)
	now := time.Now()
	for why, c := range map[string]struct {
		who  performatives.Agent
		q    api.SetAway
		want session.Code
	}{
		"somebody else's word":        {anna, api.SetAway{Agent: alice, To: anna, Until: now.Add(time.Hour)}, session.Unauthorized},
		"a human of the other side":   {alice, api.SetAway{To: bob, Until: now.Add(time.Hour)}, session.Unauthorized},
		"an agent":                    {alice, api.SetAway{To: alpha, Until: now.Add(time.Hour)}, session.Unauthorized},
		"an outsider":                 {alice, api.SetAway{To: "human://acme.com/nobody", Until: now.Add(time.Hour)}, session.Unauthorized},
		"oneself":                     {alice, api.SetAway{To: alice, Until: now.Add(time.Hour)}, session.MalformedEnvelope},
		"without an end":              {alice, api.SetAway{To: anna}, session.MalformedEnvelope},
		"over already":                {alice, api.SetAway{To: anna, From: now.Add(-2 * time.Hour), Until: now.Add(-time.Hour)}, session.MalformedEnvelope},
		"for ever":                    {alice, api.SetAway{To: anna, Until: now.AddDate(2, 0, 0)}, session.MalformedEnvelope},
		"an agent that would be away": {alpha, api.SetAway{To: anna, Until: now.Add(time.Hour)}, session.MalformedEnvelope},
	} {
		if _, err := calls[api.Card](o, c.who, api.HumanAway.Name, c.q); testkit.CodeOf(err) != c.want {
			t.Errorf("%s: %v, want %s", why, err, c.want)
		}
	}
}
