package inbox_test

import (
	"encoding/csv"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/test/testkit"
)

// promises opens a session of two sides in which a commitment is carried out.
func promises(w *testkit.World, from, to performatives.Agent, purpose string, all ...performatives.Obligation) (gives, takes *client.Session) {
	w.Helper()
	s, err := w.Client(from).Invite(w.Ctx, client.Invitation{ProposalID: "inv", With: []performatives.Agent{to}, Purpose: purpose})
	testkit.Must(w, err)
	gives, takes = w.Client(from).Session(s.ID()), w.Client(to).Session(s.ID())
	_, err = takes.Accept(w.Ctx, "inv")
	testkit.Must(w, err)
	_, err = takes.Observe(w.Ctx, "on we go", nil)
	testkit.Must(w, err)
	_, err = gives.Commit(w.Ctx, client.Commitment{ID: "k1", Obligations: all})
	testkit.Must(w, err)
	_, err = takes.Accept(w.Ctx, "k1")
	testkit.Must(w, err)
	return gives, takes
}

func in(d time.Duration) *time.Time {
	at := time.Now().Add(d).UTC().Truncate(time.Millisecond)
	return &at
}

func number(n float64) *float64 { return &n }

// The page of what is due has what waits for somebody, what is overdue first; its export the same.
func TestDue(t *testing.T) {
	t.Parallel()
	w, v := entersWorld(t, &escalation.Organisation{Roles: map[string][]string{escalation.RoleAuditor: {string(alice)}}})
	gives, takes := promises(w, beta, alpha, "cups <b>and</b> saucers",
		performatives.Obligation{ID: "overdue", Party: beta, Action: "send the <i>cups</i>", Deadline: in(300 * time.Millisecond)},
		performatives.Obligation{ID: "later", Party: beta, Action: "send the saucers", Deadline: in(30 * 24 * time.Hour), Quantity: number(50), Unit: "boxes", Amount: &performatives.Worth{Value: 1200, Currency: "USD"}},
		performatives.Obligation{ID: "pay", Party: alpha, Action: `=1+1`, Deadline: in(48 * time.Hour)},
		performatives.Obligation{ID: "thanks", Party: alpha, Action: "say thanks"},
		performatives.Obligation{ID: "gone", Party: alpha, Action: "be patient"},
		performatives.Obligation{ID: "brought", Party: beta, Action: "bring the spoons", Quantity: number(4)},
	)
	_, err := gives.Inform(w.Ctx, performatives.Waiver, performatives.WaiverData{CommitmentID: "k1", Obligation: "gone", Reason: "it is done"})
	testkit.Must(t, err)
	_, err = gives.Inform(w.Ctx, performatives.Result, performatives.ResultData{CommitmentID: "k1", Obligation: "brought"})
	testkit.Must(t, err)

	var page string
	testkit.Eventually(t, "the deadline passes", func() bool {
		page = v.sends("GET", "/inbox/due", "").body
		return strings.Contains(page, `<span class="chip bad">Breached</span>`)
	})
	var order []int
	for _, want := range []string{
		`<h2 id="overdue">Overdue <span class="soft">1</span>`, "send the &lt;i&gt;cups&lt;/i&gt;", "1 breach on record",
		`<h2 id="soon">In the next seven days <span class="soft">2</span>`, "=1&#43;1", "bring the spoons", "Delivered, to be answered",
		`<h2 id="later">Later`, "send the saucers", "USD&nbsp;1,200", "<bdi>50 of 50 boxes</bdi>",
		`<h2 id="undated">Without a date`, "say thanks",
	} {
		at := strings.Index(page, want)
		if order = append(order, at); at < 0 {
			t.Errorf("the page does not have %q", want)
		}
	}
	if !slices.IsSorted(order) {
		t.Errorf("what is overdue does not come first: %v", order)
	}
	if strings.Contains(page, "be patient") {
		t.Error("what was waived is shown as due")
	}

	line, rows, _ := strings.Cut(v.sends("GET", "/inbox/part/due", "").body, "\n")
	if line != `<p class="dev"><b>1 obligation is overdue</b>, and 2 obligations are due within seven days. <a href="due">What is due</a></p>` {
		t.Errorf("the line above the queue is %s", line)
	}
	overdue, soon := strings.Index(rows, `<a class="row critical" href="sessions/`), strings.Index(rows, `<a class="row" href="sessions/`)
	if overdue < 0 || soon < overdue || strings.Count(rows, "<li>") != 3 || !strings.Contains(rows, "cups &lt;b&gt;and&lt;/b&gt; saucers") || !strings.Contains(rows, "bring the spoons") {
		t.Errorf("the rows above the queue are %s", rows)
	}
	home := v.sends("GET", "/inbox/home", "").body
	if !strings.Contains(home, "Overdue, or due within seven days") || !strings.Contains(home, "bring the spoons") || strings.Contains(home, "send the saucers") {
		t.Error("home does not show what is overdue or due soon, and no more")
	}

	for query, want := range map[string]string{
		"": "overdue pay brought later thanks", "?by=us": "pay brought thanks", "?by=them": "overdue later",
	} {
		rows, err := csv.NewReader(strings.NewReader(v.sends("GET", "/inbox/due.csv"+query, "").body)).ReadAll()
		testkit.Must(t, err)
		if got := strings.Join(column(rows[1:], 3), " "); got != want {
			t.Errorf("%q exports %s, want %s", query, got, want)
		}
		if at := slices.Index(column(rows, 3), "pay"); at > 0 && rows[at][5] != "'=1+1" {
			t.Errorf("a spreadsheet would compute %q", rows[at][5])
		}
	}
	if got := v.sends("GET", "/inbox/due?by=nobody", ""); got.status != http.StatusUnprocessableEntity {
		t.Errorf("by=nobody is answered %d", got.status)
	}
	_, err = takes.Accept(w.Ctx, acceptable(w, takes, "brought"))
	testkit.Must(t, err)
	if page := v.sends("GET", "/inbox/due", "").body; strings.Contains(page, "bring the spoons") {
		t.Error("what was accepted is shown as due")
	}
}

// acceptable is the delivery of an obligation that waits for an answer.
func acceptable(w *testkit.World, s *client.Session, obligation string) string {
	w.Helper()
	view, err := s.View(w.Ctx)
	testkit.Must(w, err)
	for _, o := range view.Owed {
		if o.ID == obligation && o.Delivery != nil {
			return o.Delivery.Reference
		}
	}
	w.Fatalf("nothing was delivered of %s", obligation)
	return ""
}

// Who has no part in a deal is told of nothing that is due in it.
func TestDueOfOthers(t *testing.T) {
	t.Parallel()
	w, v := entersWorld(t, &escalation.Organisation{})
	promises(w, beta, alpha, "cups", performatives.Obligation{Party: beta, Action: "send the cups", Deadline: in(time.Hour)})
	if page := v.sends("GET", "/inbox/due", "").body; !strings.Contains(page, "Nothing is due") || strings.Contains(page, "cups") {
		t.Error("a colleague is told of a deal")
	}
	if line := v.sends("GET", "/inbox/part/due", "").body; line != "" {
		t.Errorf("the line above the queue is %s", line)
	}
	if sheet := v.sends("GET", "/inbox/due.csv", "").body; strings.Contains(sheet, "cups") {
		t.Error("a colleague exports a deal")
	}
}
