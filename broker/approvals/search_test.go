package approvals_test

import (
	"slices"
	"testing"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/test/testkit"
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
		t.Errorf("an outsider finds %+v %v", list, err)
	}
	o.refused(session.TooLarge, alice, api.EscalationList.Name, api.ListEscalations{Search: string(make([]byte, 300))})
}

// What has ended is found by how, by whom and when it did, and all by who was on the other side.
func TestEndedFilters(t *testing.T) {
	t.Parallel()
	o := newOffice(t, nil, nil)
	denied := o.asks("9000")
	_, err := o.rules(alice, denied, performatives.Denied)
	testkit.Must(t, err)
	approved := o.asks("15000")
	_, err = o.rules(anna, approved, performatives.Approved)
	testkit.Must(t, err)
	at := o.item(alice, approved).DecidedAt
	open := o.asks("1")
	for _, c := range []struct {
		ask  api.ListEscalations
		want []escalation.ID
	}{
		{api.ListEscalations{Outcome: performatives.Denied}, []escalation.ID{denied}},
		{api.ListEscalations{DecidedBy: anna}, []escalation.ID{approved}},
		{api.ListEscalations{DecidedBy: chief}, nil},
		{api.ListEscalations{DecidedFrom: at}, []escalation.ID{approved}},
		{api.ListEscalations{DecidedUntil: at}, []escalation.ID{denied}},
		{api.ListEscalations{DecidedFrom: "2126-01-01T01:00:00+01:00"}, nil},
		{api.ListEscalations{Counterparty: "widgets.co"}, []escalation.ID{open, approved, denied}},
		{api.ListEscalations{Counterparty: "acme.com"}, nil},
	} {
		c.ask.Status = "all"
		list, err := calls[api.Escalations](o, alice, api.EscalationList.Name, c.ask)
		var got []escalation.ID
		for _, item := range list.Escalations {
			got = append(got, item.ID)
		}
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%+v finds %v %v, want %v", c.ask, got, err, c.want)
		}
	}
	o.refused(session.MalformedEnvelope, alice, api.EscalationList.Name, api.ListEscalations{Outcome: "won"})
	o.refused(session.MalformedEnvelope, alice, api.EscalationList.Name, api.ListEscalations{DecidedFrom: "monday"})
}

// A list is sorted as it is asked for, and paged in that order.
func TestSort(t *testing.T) {
	t.Parallel()
	o := newOffice(t, nil, nil)
	first := o.asks("9000")
	second := o.asks("15000")
	third := o.asks("700")
	gone := o.asks("800")
	_, err := o.rules(alice, gone, performatives.Denied)
	testkit.Must(t, err)
	for _, c := range []struct {
		sort, status string
		want         []escalation.ID
	}{
		{"", "all", []escalation.ID{first, second, third, gone}},
		{api.SortDue, "", []escalation.ID{first, second, third}},
		{api.SortNewest, "", []escalation.ID{third, second, first}},
		{api.SortAmount, "", []escalation.ID{second, first, third}},
		{api.SortAmount, "all", []escalation.ID{second, first, third, gone}},
	} {
		var got []escalation.ID
		for q := (api.ListEscalations{Sort: c.sort, Status: c.status, Limit: 1}); ; {
			list, err := calls[api.Escalations](o, alice, api.EscalationList.Name, q)
			testkit.Must(t, err)
			for _, item := range list.Escalations {
				got = append(got, item.ID)
			}
			if q.Cursor = list.Next; q.Cursor == "" || len(got) > len(c.want) {
				break
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("by %q, %q are %v, want %v", c.sort, c.status, got, c.want)
		}
	}
	o.refused(session.MalformedEnvelope, alice, api.EscalationList.Name, api.ListEscalations{Sort: "price"})
}
