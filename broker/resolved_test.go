package broker_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/test/testbroker"
)

// Memory holds the items that ended last; its humans find the others by their
// ids, as they were, and strangers do not.
func TestResolvedAreBounded(t *testing.T) {
	t.Parallel()
	o := newOffice(t, nil, nil)
	o.b.KeepResolved(1)
	var asked []escalation.ID
	for range 3 {
		e := o.asks("15000")
		o.does(alice, api.EscalationComment.Name, api.CommentEscalation{Escalation: string(e), Text: "no"})
		if _, err := o.rules(alice, e, performatives.Denied, asShown(o.item(alice, e))); err != nil {
			t.Fatal(err)
		}
		o.until(alice, e, func(i api.EscalationItem) bool { return i.Status == performatives.Denied && i.Desk.Events > 3 })
		asked = append(asked, e)
	}
	open := o.asks("15000")
	o.until(alice, open, func(i api.EscalationItem) bool { return i.Desk.Events > 0 })
	if items, desks := o.b.ItemsInMemory(); items != 2 || desks != 2 {
		t.Errorf("memory has %d items and %d desks, want the open one and one more", items, desks)
	}
	list, err := calls[api.Escalations](o, alice, api.EscalationList.Name, api.ListEscalations{Status: "all"})
	if err != nil || len(list.Escalations) != 2 || list.Escalations[0].ID != open || list.Escalations[1].ID != asked[2] {
		t.Errorf("the list is %+v %v", list, err)
	}
	first := o.item(alice, asked[0])
	if first.Status != performatives.Denied || first.DecidedBy != alice || len(first.Comments) != 1 || len(first.Transcript) == 0 {
		t.Errorf("the first is %+v", first)
	}
	if history := kindsOf(o.history(asked[0])); history[len(history)-1] != escalation.Decided {
		t.Errorf("its history is %v", history)
	}
	o.id = first.Session
	if _, err := o.rules(anna, asked[0], performatives.Approved); code(err) != session.EscalationResolved {
		t.Errorf("decided again: %v", err)
	}
	var whole api.EscalationItem
	operator(t, o.b, api.EscalationGet.Name, []byte(`{"escalationId":"`+string(asked[0])+`"}`), &whole)
	if whole.Status != performatives.Denied {
		t.Errorf("an operator sees %+v", whole)
	}
	for _, id := range []string{string(asked[0]), uuid.Must(uuid.NewV7()).String(), "x", "*", ">", ""} {
		o.refused(session.UnknownSession, bob, api.EscalationGet.Name, api.EscalationRef{Escalation: id})
		if id != string(asked[0]) {
			o.refused(session.UnknownSession, alice, api.EscalationGet.Name, api.EscalationRef{Escalation: id})
		}
	}
}

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

// A group that the rules do not name any more loses its consumer, in a while;
// one that is named again keeps it.
func TestGroupsThatAreGone(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	stays := func(groups ...string) map[string]time.Duration {
		t.Helper()
		rules := &escalation.Rules{Organisations: map[performatives.Organisation]*escalation.Organisation{"acme.com": {Groups: map[string][]performatives.Agent{}}}}
		for _, g := range groups {
			rules.Organisations["acme.com"].Groups[g] = []performatives.Agent{alice}
		}
		if err := rules.Check(); err != nil {
			t.Fatal(err)
		}
		b := testbroker.Start(t, testbroker.Options{Data: data, Sync: time.Minute, Rules: rules})
		defer b.Down()
		js, err := jetstream.New(b.Conn)
		if err != nil {
			t.Fatal(err)
		}
		stream, err := js.Stream(t.Context(), api.EscalationsStream)
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]time.Duration{}
		all := stream.ListConsumers(t.Context())
		for c := range all.Info() {
			if api.IsGroupConsumer(c.Name) {
				found[c.Name] = c.Config.InactiveThreshold
			}
		}
		if all.Err() != nil {
			t.Fatal(all.Err())
		}
		return found
	}
	if got := stays("buyers", "lawyers"); len(got) != 2 || got["acme_com~buyers"] != 0 || got["acme_com~lawyers"] != 0 {
		t.Errorf("at first: %v", got)
	}
	if got := stays("lawyers"); got["acme_com~buyers"] != 24*time.Hour || got["acme_com~lawyers"] != 0 {
		t.Errorf("without buyers: %v", got)
	}
	if got := stays("buyers"); got["acme_com~buyers"] != 0 || got["acme_com~lawyers"] != 24*time.Hour {
		t.Errorf("with buyers again: %v", got)
	}
}
