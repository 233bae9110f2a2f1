package escalation_test

import (
	"slices"
	"testing"
	"time"

	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
)

var monday = time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)

func decider(a performatives.Agent, limits ...performatives.Limit) performatives.Member {
	return performatives.Member{Agent: a, Authority: performatives.AuthorityDecide, Limited: len(limits) > 0, Limits: limits}
}

func amount(value float64, currency string) func([]string) *escalation.Amount {
	return func([]string) *escalation.Amount { return &escalation.Amount{Value: value, Currency: currency} }
}

func unseen([]string) *escalation.Amount { return nil }

// The first matching rule applies. Without a match everybody is asked.
func TestRoute(t *testing.T) {
	hour := escalation.Times{All: escalation.Duration(time.Hour)}
	most := 500.0
	rules := &escalation.Rules{Organisations: map[performatives.Organisation]*escalation.Organisation{"acme.com": {
		Groups: map[string][]performatives.Agent{"buyers": {alice, anna}},
		Rules: []*escalation.Rule{
			{Name: "large", Match: escalation.Match{Amount: &escalation.Range{Min: 1000, Currency: "USD"}}, Asked: escalation.Asked{Approvers: []string{"buyers"}, Quorum: 2, Due: hour}},
			{Name: "small", Match: escalation.Match{Amount: &escalation.Range{Max: &most, Unseen: true}}, Asked: escalation.Asked{Approvers: []string{string(anna)}, Due: hour}},
			{Name: "urgent", Match: escalation.Match{Urgency: []escalation.Urgency{escalation.Critical}, Reason: []string{"adversarial-detected"}}, Asked: escalation.Asked{Approvers: []string{"buyers"}}},
			{Name: "law", Match: escalation.Match{Capability: []string{"legal"}}, Asked: escalation.Asked{Approvers: []string{string(alice)}}},
		},
	}}}
	if err := rules.Check(); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		ask    escalation.Ask
		rule   string
		who    int
		quorum int
		due    time.Duration
	}{
		"large":                          {escalation.Ask{Amount: amount(1000, "USD")}, "large", 2, 2, time.Hour},
		"of no currency":                 {escalation.Ask{Amount: amount(1000, "")}, "large", 2, 2, time.Hour},
		"of another currency":            {escalation.Ask{Amount: amount(1000, "EUR")}, "", 0, 1, time.Minute},
		"between the two":                {escalation.Ask{Amount: amount(999, "USD")}, "", 0, 1, time.Minute},
		"small":                          {escalation.Ask{Amount: amount(500, "USD")}, "small", 1, 1, time.Hour},
		"no amount":                      {escalation.Ask{Amount: unseen}, "small", 1, 1, time.Hour},
		"urgent and odd":                 {escalation.Ask{Amount: amount(600, "USD"), Urgency: escalation.Critical, Reason: "adversarial-detected"}, "urgent", 2, 1, time.Minute},
		"urgent, and not odd":            {escalation.Ask{Amount: amount(600, "USD"), Urgency: escalation.Critical, Reason: "confidence-low"}, "", 0, 1, time.Minute},
		"of an agent that does law":      {escalation.Ask{Amount: amount(600, "USD"), Capabilities: []string{"legal", "tax"}}, "law", 1, 1, time.Minute},
		"of an agent that does tax only": {escalation.Ask{Amount: amount(600, "USD"), Capabilities: []string{"tax"}}, "", 0, 1, time.Minute},
	} {
		test.ask.Org, test.ask.At, test.ask.Within = "acme.com", monday, time.Minute
		route, plan := rules.Route(test.ask)
		if plan.Rule != test.rule || len(route.Levels) != 1 {
			t.Errorf("%s: rule %q, want %q", name, plan.Rule, test.rule)
			continue
		}
		if l := route.Levels[0]; len(l.Approvers) != test.who || l.Quorum != test.quorum || l.Due.Sub(monday) != test.due {
			t.Errorf("%s: %+v", name, l)
		}
	}
	if route, _ := rules.Route(escalation.Ask{Org: "widgets.co", At: monday, Amount: unseen}); route != nil {
		t.Errorf("an organisation that has configured nothing: %+v", route)
	}
}

// The next level does not wait for a level of which too few can approve.
func TestRouteSkips(t *testing.T) {
	rules := &escalation.Rules{Organisations: map[performatives.Organisation]*escalation.Organisation{"acme.com": {
		Rules: []*escalation.Rule{{
			Asked: escalation.Asked{Approvers: []string{string(alice)}, Due: escalation.Times{All: escalation.Duration(time.Hour)}},
			Chain: []escalation.Asked{{Approvers: []string{string(anna)}}, {}},
		}},
	}}}
	if err := rules.Check(); err != nil {
		t.Fatal(err)
	}
	usd := func(n float64) performatives.Limit { return performatives.Limit{Currency: "USD", MaxAmount: n} }
	for name, test := range map[string]struct {
		alice, anna performatives.Member
		by          performatives.Agent
		want        []time.Duration
	}{
		"both are able":            {decider(alice), decider(anna), "", []time.Duration{time.Hour, 2 * time.Hour, 4 * time.Hour}},
		"alice's ceiling":          {decider(alice, usd(99)), decider(anna), "", []time.Duration{0, 2 * time.Hour, 4 * time.Hour}},
		"alice's other currency":   {decider(alice, performatives.Limit{Currency: "EUR", MaxAmount: 1e9}), decider(anna), "", []time.Duration{0, 2 * time.Hour, 4 * time.Hour}},
		"alice asks":               {decider(alice), decider(anna), alice, []time.Duration{0, 2 * time.Hour, 4 * time.Hour}},
		"neither is":               {decider(alice, usd(99)), decider(anna, usd(99)), "", []time.Duration{0, 0, 4 * time.Hour}},
		"the first is, just about": {decider(alice, usd(100)), decider(anna, usd(99)), "", []time.Duration{time.Hour, 2 * time.Hour, 4 * time.Hour}},
	} {
		route, _ := rules.Route(escalation.Ask{
			Org: "acme.com", By: test.by, At: monday, Amount: amount(100, "USD"), Deciders: []performatives.Member{test.alice, test.anna},
		})
		var got []time.Duration
		for _, l := range route.Levels {
			got = append(got, l.Due.Sub(monday))
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: due after %v, want %v", name, got, test.want)
		}
	}
}

func TestCalendar(t *testing.T) {
	calendar := &escalation.Calendar{
		Zone: "Europe/Paris", Hours: map[string][]string{"workdays": {"09:00-12:00", "14:00-18:00"}, "sun": {"00:00-24:00"}}, Holidays: []string{"2026-03-03"},
	}
	if err := (&escalation.Rules{Calendars: map[string]*escalation.Calendar{"c": calendar}}).Check(); err != nil {
		t.Fatal(err)
	}
	at := func(text string) time.Time {
		zone, err := time.LoadLocation("Europe/Paris")
		if err != nil {
			t.Fatal(err)
		}
		when, err := time.ParseInLocation("Mon 2006-01-02 15:04", text, zone)
		if err != nil {
			t.Fatal(err)
		}
		return when
	}
	for _, test := range []struct {
		from string
		work time.Duration
		to   string
	}{
		{"Mon 2026-03-02 09:00", time.Hour, "Mon 2026-03-02 10:00"},
		{"Mon 2026-03-02 03:00", time.Hour, "Mon 2026-03-02 10:00"},
		{"Mon 2026-03-02 11:30", time.Hour, "Mon 2026-03-02 14:30"},
		{"Mon 2026-03-02 17:00", 2 * time.Hour, "Wed 2026-03-04 10:00"}, // Tuesday is a holiday
		{"Sat 2026-03-07 12:00", time.Hour, "Sun 2026-03-08 01:00"},
		{"Sun 2026-03-29 00:00", 24 * time.Hour, "Mon 2026-03-30 10:00"}, // 23 hours long
		{"Sun 2026-10-25 00:00", 24 * time.Hour, "Sun 2026-10-25 23:00"}, // 25
		{"Mon 2026-03-02 10:00", 0, "Mon 2026-03-02 10:00"},
	} {
		if got := calendar.Add(at(test.from), test.work); !got.Equal(at(test.to)) {
			t.Errorf("%s and %s of work: %s, want %s", test.from, test.work, got.In(at(test.to).Location()), test.to)
		}
	}
	var around *escalation.Calendar
	if got := around.Add(monday, time.Hour); !got.Equal(monday.Add(time.Hour)) {
		t.Errorf("around the clock: %s", got)
	}
}

// Only a rule that names deliveries asks people to accept one, and a human who accepts it herself is one
// of those who have to.
func TestRouteOfADelivery(t *testing.T) {
	rules := &escalation.Rules{Organisations: map[performatives.Organisation]*escalation.Organisation{"acme.com": {
		Rules: []*escalation.Rule{
			{Name: "every escalation", Match: escalation.Match{Amount: &escalation.Range{Min: 10_000}}},
			{Name: "two", Match: escalation.Match{Reason: []string{performatives.Delivered}, Amount: &escalation.Range{Min: 5000}}, Asked: escalation.Asked{Quorum: 2}},
			{Name: "one", Match: escalation.Match{Reason: []string{performatives.Delivered}, Amount: &escalation.Range{Min: 1000}}},
		},
	}}}
	if err := rules.Check(); err != nil {
		t.Fatal(err)
	}
	const agent = performatives.Agent("agent://acme.com/alpha")
	for name, test := range map[string]struct {
		by     performatives.Agent
		amount func([]string) *escalation.Amount
		rule   string
		quorum int
	}{
		"an agent, below":                {agent, amount(999, "USD"), "", 0},
		"an agent, no amount":            {agent, unseen, "", 0},
		"an agent":                       {agent, amount(1000, "USD"), "one", 1},
		"an agent, much":                 {agent, amount(20_000, "USD"), "two", 2},
		"a human":                        {alice, amount(1000, "USD"), "", 0},
		"a human, much":                  {alice, amount(5000, "USD"), "two", 1},
		"a human with too low a ceiling": {anna, amount(1000, "USD"), "one", 1},
		"a human within her ceiling":     {anna, amount(1000, "EUR"), "", 0},
		"a human who may not decide":     {"human://acme.com/guest", amount(1000, "EUR"), "one", 1},
	} {
		route, plan := rules.Route(escalation.Ask{
			Org: "acme.com", By: test.by, At: monday, Within: time.Hour, Reason: performatives.Delivered, Amount: test.amount,
			Deciders: []performatives.Member{decider(alice), decider(anna, performatives.Limit{Currency: "EUR", MaxAmount: 2000})},
		})
		switch {
		case route == nil && test.quorum == 0:
		case route == nil || plan.Rule != test.rule || route.Levels[0].Quorum != test.quorum:
			t.Errorf("%s: %+v by the rule %q, want a quorum of %d by %q", name, route, plan.Rule, test.quorum, test.rule)
		}
	}
}
