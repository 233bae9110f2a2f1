package inbox_test

import (
	"encoding/csv"
	"net/http"
	"strings"
	"testing"

	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/test/testkit"
)

// The list of deals has what its filters ask for, and its export the same.
func TestDeals(t *testing.T) {
	t.Parallel()
	w, v := entersWorld(t, &escalation.Organisation{Roles: map[string][]string{escalation.RoleAuditor: {string(alice)}}})
	first, _ := escalates(w, beta, "plans")
	s, err := w.Client(alpha).Invite(w.Ctx, client.Invitation{ProposalID: "inv", With: []performatives.Agent{beta}, Purpose: `=1+1 cups`})
	testkit.Must(t, err)
	for query, want := range map[string][]performatives.SessionID{
		"": {s.ID(), first}, "search=CUPS": {s.ID()}, "search=beta+plan": {first}, "search=saucers": nil,
		"state=ESCALATED": {first}, "state=open": {s.ID(), first}, "state=ended": nil,
		"with=" + string(beta.Organisation()): {s.ID(), first}, "with=elsewhere.example": nil,
		"amount=1500": {first}, "amount=1,501": nil, "from=2001-01-01": {s.ID(), first}, "until=2001-01-01": nil, "sort=amount": {first, s.ID()},
	} {
		page := v.sends("GET", "/inbox/sessions?"+query, "").body
		rows, err := csv.NewReader(strings.NewReader(v.sends("GET", "/inbox/deals.csv?"+query, "").body)).ReadAll()
		testkit.Must(t, err)
		if len(rows)-1 != len(want) {
			t.Errorf("%q: %d rows are exported, want %d", query, len(rows)-1, len(want))
			continue
		}
		for n, id := range want {
			if rows[n+1][0] != string(id) {
				t.Errorf("%q: row %d is %s, want %s", query, n, rows[n+1][0], id)
			}
		}
		for _, id := range []performatives.SessionID{s.ID(), first} {
			listed := strings.Contains(page, `href="sessions/`+string(id)+`"`)
			if exported := strings.Contains(strings.Join(column(rows, 0), " "), string(id)); listed != exported {
				t.Errorf("%q: the page has %s: %v, the export: %v", query, id, listed, exported)
			}
		}
	}
	for _, bad := range []string{"state=NOWHERE", "from=yesterday"} {
		if got := v.sends("GET", "/inbox/sessions?"+bad, ""); got.status != http.StatusBadRequest {
			t.Errorf("%s is answered %d", bad, got.status)
		}
	}
	rows, err := csv.NewReader(strings.NewReader(v.sends("GET", "/inbox/deals.csv?search=cups", "").body)).ReadAll()
	testkit.Must(t, err)
	if rows[1][1] != "'=1+1 cups" {
		t.Errorf("a spreadsheet would compute %q", rows[1][1])
	}
}

func column(rows [][]string, n int) (cells []string) {
	for _, row := range rows {
		cells = append(cells, row[n])
	}
	return cells
}

// Home says what waits for whom, what was agreed this week and what it is worth, and what failed. Who
// has the role of an owner sees all deals of the organisation; a colleague sees none.
func TestHome(t *testing.T) {
	t.Parallel()
	const owner, colleague = performatives.Agent("human://acme.example/olive"), performatives.Agent("human://acme.example/colin")
	w, v := entersWorld(t, &escalation.Organisation{Roles: map[string][]string{escalation.RoleOwner: {string(owner)}}})
	sells, buys := haggles(w)
	_, err := buys.Accept(w.Ctx, "p3")
	testkit.Must(t, err)
	_, err = sells.Close(w.Ctx, client.Closing{Outcome: performatives.Completed})
	testkit.Must(t, err)
	_, _ = escalates(w, beta, "plans")
	gone, err := w.Client(alpha).Invite(w.Ctx, client.Invitation{ProposalID: "inv", With: []performatives.Agent{beta}, Purpose: "saucers"})
	testkit.Must(t, err)
	_, err = w.Client(beta).Session(gone.ID()).Reject(w.Ctx, "inv", client.Rejection{Code: "policy_violation", Reason: "no"})
	testkit.Must(t, err)

	enters := func(who performatives.Agent) string {
		if status, body := v.posts("/inbox/login", map[string]any{"agentId": who}); status != http.StatusOK {
			t.Fatalf("%d %s", status, body)
		}
		return v.sends("GET", "/inbox/home", "").body
	}
	page := enters(owner)
	for _, want := range []string{"<h3>People <span class=\"soft\">1</span>", "1 deal · <b class=\"nowrap\">USD 1,100</b>", "saucers", "Rejected: against a policy", `href="sessions/` + string(buys.ID()) + `"`} {
		if !strings.Contains(page, want) {
			t.Errorf("an owner's home does not have %q", want)
		}
	}
	at := "/inbox/sessions/" + string(gone.ID())
	if got := v.sends("GET", at, ""); got.status != http.StatusOK {
		t.Errorf("an owner gets %d of a deal", got.status)
	}
	if page := enters(colleague); strings.Contains(page, "saucers") {
		t.Error("a colleague without a role sees a deal that nobody asked it about")
	}
	if got := v.sends("GET", at, ""); got.status != http.StatusNotFound {
		t.Errorf("a colleague without a role gets %d of it", got.status)
	}
}
