package delegation_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/parley-asp/parley/delegation"
	"github.com/parley-asp/parley/performatives"
)

const (
	alpha = performatives.Agent("agent://acme.com/procurement/alpha")
	delta = performatives.Agent("agent://acme.com/legal/delta")
	dora  = performatives.Agent("agent://acme.com/legal/dora")
)

var noon = time.Date(2026, 3, 7, 12, 0, 0, 0, time.UTC)

// Each authority may send the acts in the table of PROTOCOL.md §6.
func TestAuthority(t *testing.T) {
	for authority, want := range map[delegation.Authority]string{
		delegation.None:     "",
		delegation.Advisory: "INFORM OBSERVE",
		delegation.Limited:  "INFORM QUERY OBSERVE",
		delegation.Full:     "PROPOSE ACCEPT REJECT COUNTER INFORM QUERY CLARIFY DELEGATE ESCALATE OBSERVE",
	} {
		var got []string
		for _, act := range performatives.All() {
			if authority.Allows(act) != slices.Contains(authority.Acts(), act) {
				t.Errorf("%s: Allows and Acts differ on %s", authority, act)
			}
			if authority.Allows(act) {
				got = append(got, act.String())
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s authority allows %v, want %s", authority, got, want)
		}
		if name := authority.String(); authority != delegation.None && delegation.ParseAuthority(name) != authority {
			t.Errorf("%s is not read back", name)
		}
	}
	for _, name := range []string{"", "FULL", "none", "principal"} {
		if got := delegation.ParseAuthority(name); got != delegation.None {
			t.Errorf("%q reads as %s", name, got)
		}
	}
}

// A grant is never wider than the delegator's own, is at most 3 deep, and may be
// limited by referenceId and validUntil (PROTOCOL.md §6).
func TestNarrow(t *testing.T) {
	n := func(i int) *int { return &i }
	held := func(edit func(*delegation.Grant)) *delegation.Grant {
		g := delegation.Grant{ID: "d1", From: alpha, To: delta, Principal: alpha, Authority: delegation.Full, Depth: 1, MaxDepth: 3}
		if edit != nil {
			edit(&g)
		}
		return &g
	}
	for name, test := range map[string]struct {
		holds    *delegation.Grant
		ask      delegation.Grant
		maxDepth *int
		wider    string // in the refusal
		depth    int
		deepest  int
		line     string
		until    time.Time
	}{
		"of a principal":                 {ask: delegation.Grant{Authority: delegation.Full}, depth: 1, deepest: 3},
		"of a principal, maxDepth 0":     {ask: delegation.Grant{Authority: delegation.Full}, maxDepth: n(0), depth: 1, deepest: 1},
		"of a principal, maxDepth 1":     {ask: delegation.Grant{Authority: delegation.Full}, maxDepth: n(1), depth: 1, deepest: 1},
		"of a principal, maxDepth 2":     {ask: delegation.Grant{Authority: delegation.Full}, maxDepth: n(2), depth: 1, deepest: 2},
		"of a principal, maxDepth 9":     {ask: delegation.Grant{Authority: delegation.Full}, maxDepth: n(9), depth: 1, deepest: 3},
		"of a delegate":                  {holds: held(nil), ask: delegation.Grant{Authority: delegation.Full}, depth: 2, deepest: 3},
		"of a delegate, lower":           {holds: held(nil), ask: delegation.Grant{Authority: delegation.Advisory}, depth: 2, deepest: 3},
		"of a delegate, maxDepth 1":      {holds: held(nil), ask: delegation.Grant{Authority: delegation.Full}, maxDepth: n(1), depth: 2, deepest: 2},
		"maxDepth does not widen":        {holds: held(func(g *delegation.Grant) { g.MaxDepth = 2 }), ask: delegation.Grant{Authority: delegation.Full}, maxDepth: n(3), depth: 2, deepest: 2},
		"higher":                         {holds: held(func(g *delegation.Grant) { g.Authority = delegation.Limited }), ask: delegation.Grant{Authority: delegation.Full}, wider: "cannot grant full"},
		"deeper than 3":                  {holds: held(func(g *delegation.Grant) { g.Depth = 3 }), ask: delegation.Grant{Authority: delegation.Full}, wider: "deeper than 3"},
		"deeper than it may":             {holds: held(func(g *delegation.Grant) { g.MaxDepth = 1 }), ask: delegation.Grant{Authority: delegation.Full}, wider: "deeper than 1"},
		"of another proposal":            {holds: held(func(g *delegation.Grant) { g.Offer = "p1" }), ask: delegation.Grant{Authority: delegation.Full, Offer: "p3"}, wider: `"p1"`},
		"of a counter of it":             {holds: held(func(g *delegation.Grant) { g.Offer = "p1" }), ask: delegation.Grant{Authority: delegation.Full, Offer: "p2"}, depth: 2, deepest: 3, line: "p2"},
		"of what it counters":            {holds: held(func(g *delegation.Grant) { g.Offer = "p2" }), ask: delegation.Grant{Authority: delegation.Full, Offer: "p1"}, wider: `"p2"`},
		"of the same proposal":           {holds: held(func(g *delegation.Grant) { g.Offer = "p1" }), ask: delegation.Grant{Authority: delegation.Full, Offer: "p1"}, depth: 2, deepest: 3, line: "p1"},
		"the proposal is inherited":      {holds: held(func(g *delegation.Grant) { g.Offer = "p1" }), ask: delegation.Grant{Authority: delegation.Full}, depth: 2, deepest: 3, line: "p1"},
		"a proposal narrows":             {holds: held(nil), ask: delegation.Grant{Authority: delegation.Full, Offer: "p1"}, depth: 2, deepest: 3, line: "p1"},
		"longer":                         {holds: held(func(g *delegation.Grant) { g.Until = noon }), ask: delegation.Grant{Authority: delegation.Full, Until: noon.Add(1)}, wider: "validUntil"},
		"as long":                        {holds: held(func(g *delegation.Grant) { g.Until = noon }), ask: delegation.Grant{Authority: delegation.Full, Until: noon}, depth: 2, deepest: 3, until: noon},
		"the end is inherited":           {holds: held(func(g *delegation.Grant) { g.Until = noon }), ask: delegation.Grant{Authority: delegation.Full}, depth: 2, deepest: 3, until: noon},
		"an end where there was none":    {holds: held(nil), ask: delegation.Grant{Authority: delegation.Full, Until: noon}, depth: 2, deepest: 3, until: noon},
		"a principal may set all bounds": {ask: delegation.Grant{Authority: delegation.Limited, Until: noon, Offer: "p1"}, maxDepth: n(2), depth: 1, deepest: 2, line: "p1", until: noon},
	} {
		t.Run(name, func(t *testing.T) {
			test.ask.ID, test.ask.From, test.ask.To = "d2", delta, dora
			got, err := delegation.Narrow(test.holds, test.ask, test.maxDepth, counters)
			if test.wider != "" {
				var excess *delegation.Excess
				if !errors.As(err, &excess) || !strings.Contains(excess.Why, test.wider) {
					t.Errorf("got %v, want it to say %q", err, test.wider)
				}
				if got != (delegation.Grant{}) {
					t.Errorf("a grant all the same: %+v", got)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got.Depth != test.depth || got.MaxDepth != test.deepest || got.Offer != test.line || !got.Until.Equal(test.until) || got.Authority != test.ask.Authority {
				t.Errorf("got %+v", got)
			}
			if test.holds == nil && (got.Parent != "" || got.Principal != delta) || test.holds != nil && (got.Parent != "d1" || got.Principal != alpha) {
				t.Errorf("made from %q for %s", got.Parent, got.Principal)
			}
		})
	}
}

// Authority ends at validUntil, on WITHDRAW, and with its parent (PROTOCOL.md §6).
func TestStanding(t *testing.T) {
	type edit func(parent, child *delegation.Grant)
	for name, test := range map[string]struct {
		edit          edit
		why           string // "" stands
		parent, child delegation.Status
	}{
		"stands":                  {nil, "", delegation.Active, delegation.Active},
		"offered":                 {func(_, c *delegation.Grant) { c.Status = delegation.Offered }, "", delegation.Active, delegation.Offered},
		"one nanosecond left":     {func(_, c *delegation.Grant) { c.Until = noon.Add(1) }, "", delegation.Active, delegation.Active},
		"its time is over":        {func(_, c *delegation.Grant) { c.Until = noon }, "validUntil has passed", delegation.Active, delegation.Expired},
		"declined":                {func(_, c *delegation.Grant) { c.Status = delegation.Declined }, "declined", delegation.Active, delegation.Declined},
		"withdrawn":               {func(_, c *delegation.Grant) { c.Status = delegation.Withdrawn }, "withdrawn", delegation.Active, delegation.Withdrawn},
		"the parent's is over":    {func(p, _ *delegation.Grant) { p.Until = noon }, "validUntil has passed", delegation.Expired, delegation.Expired},
		"the parent is withdrawn": {func(p, _ *delegation.Grant) { p.Status = delegation.Withdrawn }, "withdrawn", delegation.Withdrawn, delegation.Withdrawn},
		"the parent is unknown":   {func(_, c *delegation.Grant) { c.Parent = "d9" }, "unknown", delegation.Active, delegation.Active},
	} {
		t.Run(name, func(t *testing.T) {
			parent := delegation.Grant{ID: "d1", From: alpha, To: delta, Status: delegation.Active}
			child := delegation.Grant{ID: "d2", Parent: "d1", From: delta, To: dora, Status: delegation.Active}
			if test.edit != nil {
				test.edit(&parent, &child)
			}
			find := func(id delegation.ID) (delegation.Grant, bool) { return parent, id == "d1" }
			err := delegation.Standing(child, noon, find)
			if (err == nil) != (test.why == "") || err != nil && !strings.Contains(err.Error(), test.why) {
				t.Errorf("got %v, want %q", err, test.why)
			}
			if got := delegation.StatusAt(parent, noon, find); got != test.parent {
				t.Errorf("the parent is %s, want %s", got, test.parent)
			}
			if got := delegation.StatusAt(child, noon, find); got != test.child {
				t.Errorf("it is %s, want %s", got, test.child)
			}
		})
	}
}

// counters: p2 counters p1, and p3 is another proposal.
func counters(id, other string) bool { return id == other || id == "p2" && other == "p1" }

// Any other act is authority_exceeded, with the allowed acts (PROTOCOL.md §6).
func TestCan(t *testing.T) {
	full := delegation.Grant{Authority: delegation.Full}
	bound := delegation.Grant{Authority: delegation.Full, Offer: "p1"}
	advisory := delegation.Grant{Authority: delegation.Advisory, Offer: "p1"}
	for _, test := range []struct {
		grant delegation.Grant
		act   performatives.Performative
		line  string
		why   string
	}{
		{full, performatives.Accept, "p2", ""},
		{full, performatives.Propose, "", ""},
		{full, performatives.Commit, "", "COMMIT is not among them"},
		{full, performatives.Close, "", "CLOSE is not among them"},
		{full, performatives.Withdraw, "p1", "WITHDRAW is not among them"},
		{bound, performatives.Accept, "p1", ""},
		{bound, performatives.Accept, "p2", ""},
		{bound, performatives.Accept, "p3", `limited to the proposal "p1"`},
		{bound, performatives.Counter, "p3", `limited to the proposal "p1"`},
		{bound, performatives.Inform, "p3", `limited to the proposal "p1"`},
		{bound, performatives.Inform, "", ""},
		{bound, performatives.Propose, "", `limited to the proposal "p1"`},
		{advisory, performatives.Query, "", "advisory authority allows [INFORM OBSERVE]"},
		{advisory, performatives.Observe, "", ""},
	} {
		err := test.grant.Can(test.act, test.line, counters)
		if (err == nil) != (test.why == "") || err != nil && !strings.Contains(err.Error(), test.why) {
			t.Errorf("%s of %q with %s bound to %q: got %v, want %q", test.act, test.line, test.grant.Authority, test.grant.Offer, err, test.why)
		}
	}
}

// However grants are derived, a child can do nothing that its parent cannot, not
// for longer, and no deeper than three.
func TestNeverWider(t *testing.T) {
	anyGrant := rapid.Custom(func(t *rapid.T) delegation.Grant {
		g := delegation.Grant{
			ID:        delegation.ID(rapid.StringMatching(`d[0-9]{1,3}`).Draw(t, "id")),
			Authority: delegation.Authority(rapid.Uint8Range(1, 3).Draw(t, "authority")),
			Offer:     rapid.SampledFrom([]string{"", "p1", "p2", "p3"}).Draw(t, "offer"), Status: delegation.Active,
		}
		if s := rapid.IntRange(-2, 5).Draw(t, "until"); s > 0 {
			g.Until = noon.Add(time.Duration(s) * time.Second)
		}
		return g
	})
	rapid.Check(t, func(t *rapid.T) {
		var holds *delegation.Grant
		for range rapid.IntRange(1, 6).Draw(t, "levels") {
			var maxDepth *int
			if n := rapid.IntRange(-1, 4).Draw(t, "maxDepth"); n >= 0 {
				maxDepth = &n
			}
			child, err := delegation.Narrow(holds, anyGrant.Draw(t, "ask"), maxDepth, counters)
			if err != nil {
				continue
			}
			if child.Depth > child.MaxDepth || child.MaxDepth > delegation.MaxDepth {
				t.Fatalf("depth %d of %d", child.Depth, child.MaxDepth)
			}
			if holds == nil {
				holds = &child
				continue
			}
			for _, act := range performatives.All() {
				for _, line := range []string{"", "p1", "p2", "p3"} {
					if child.Can(act, line, counters) == nil && holds.Can(act, line, counters) != nil {
						t.Fatalf("%+v may %s %q, and %+v may not", child, act, line, *holds)
					}
				}
			}
			if !holds.Until.IsZero() && (child.Until.IsZero() || child.Until.After(holds.Until)) {
				t.Fatalf("it outlives its parent: %s, %s", child.Until, holds.Until)
			}
			holds = &child
		}
	})
}
