package approvals_test

import (
	"testing"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/session"
)

// A search finds what has all of its words, in any order, and only among what
// the caller may see.
func TestSearch(t *testing.T) {
	t.Parallel()
	o := newOffice(t, nil, nil)
	cheap := o.asks("9000")
	dear := o.asks("15000")
	for _, c := range []struct {
		search string
		want   []escalation.ID
	}{
		{"", []escalation.ID{cheap, dear}},
		{"PLAN", []escalation.ID{cheap, dear}},
		{"15,000", []escalation.ID{dear}},
		{"usd limit 15000", []escalation.ID{dear}},
		{string(cheap), []escalation.ID{cheap}},
		{string(o.id), []escalation.ID{dear}},
		{"plan boat", nil},
	} {
		list, err := calls[api.Escalations](o, alice, api.EscalationList.Name, api.ListEscalations{Search: c.search})
		if err != nil || len(list.Escalations) != len(c.want) || list.Counts.Open != 2 {
			t.Errorf("%q finds %+v %v", c.search, list, err)
			continue
		}
		for n, item := range list.Escalations {
			if item.ID != c.want[n] {
				t.Errorf("%q finds %s", c.search, item.ID)
			}
		}
	}
	if list, err := calls[api.Escalations](o, bob, api.EscalationList.Name, api.ListEscalations{Search: "plan"}); err != nil || len(list.Escalations) != 0 {
		t.Errorf("a stranger finds %+v %v", list, err)
	}
	o.refused(session.TooLarge, alice, api.EscalationList.Name, api.ListEscalations{Search: string(make([]byte, 300))})
}
