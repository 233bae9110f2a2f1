package inbox

import (
	"cmp"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/api/render"
	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
)

// An item is one escalation with everything that a decision needs.
type item struct {
	api.EscalationItem
	Title               string
	TitleByCounterparty bool                  // the title is the counterparty's text
	OfferByCounterparty bool                  // the terms are
	Foreign             bool                  // another organisation filed the dispute that it asks about
	With                []performatives.Agent // the counterparties who are not said to dispute
	Terms, MoreTerms    termTable             // the first, and those that are folded
	Fields              []field
	FoldedFields        []field  // those that the form shows on request
	Paths               []string // of terms that may hold an amount
	Conversation        []entry
	Events              []render.Event // newest first
	Earlier             []row          // items about the same other organisation
	Colleagues          []api.Approver
	Sealers             []sealer // in a session with an arbiter
	Query               string
	Now                 time.Time
	Me                  *person
	ClaimMine           bool
	HandedOver          *api.CaseAction // to the assignee; nil if that cannot be seen
	Tally               tally
	InForce             *grant // what the approvals so far allow together
	Opened              bool
	AnswerDue           string         // when the reader's level ends
	Confirms            bool           // the agents have agreed: it is confirmed, or not
	Disputed            string         // link to the dispute that it asks about
	Decides             bool           // the reader may decide
	Approves            bool           // and has neither voted nor escalated it
	MayExactly          bool           // the reader may approve exactly the terms that were shown
	MayAny              bool           // and without a bound
	OnlyShown           bool           // what has no bound allows exactly what is at stake
	Others              []api.Approver // colleagues who can approve what the reader cannot
	Unseals             bool           // the reader may open something to the arbiter; the broker authorizes it anyway
	Extent              string         // what the Approve form proposes: amount, terms or any; "" if the reader cannot approve
	Ceilings            string         // the reader's
	Acts                bool           // and may comment, claim and hand over
	Lapsed              bool           // the offer at stake has expired
	OfferUntil          time.Time
	Matter              string // changes when what is decided changes
	Wary                bool   // the agent warns of the offer
	Used                *entry // what the approval was used for first; nil if it was not
	Allows              bool   // it was approved
}

func (i *Inbox) item(r *http.Request, who *person) (*item, error) {
	id := r.PathValue("id")
	it, err := ask(r.Context(), i, who.Agent, api.EscalationGet, api.GetEscalation{Escalation: id})
	if err != nil {
		return nil, err
	}
	history, err := ask(r.Context(), i, who.Agent, api.EscalationHistory, api.ReadCaseLog{Escalation: id})
	if err != nil && !refused(err) { // the history may be hidden from those who see the item
		return nil, err
	}
	v := asItem(&it, who, i.newConversation(r.Context(), who, it.Organisation))
	v.Now = i.Now()
	v.Lapsed = v.Lapsed || !v.OfferUntil.IsZero() && v.Now.After(v.OfferUntil)
	v.Events = render.Events(history.Actions, i.name)
	slices.Reverse(v.Events)
	v.Query = filter(asked(r.URL.Query()))
	if v.Earlier, err = i.earlier(r.Context(), who, &it); err != nil {
		return nil, err
	}
	for n := range history.Actions {
		if a := &history.Actions[n]; a.To != "" && a.To == it.Case.Assignee {
			v.HandedOver = a
		}
	}
	return v, nil
}

func asItem(it *api.EscalationItem, who *person, c *conversation) *item {
	v := &item{
		EscalationItem: *it, Me: who, Title: titleOf(it), Fields: asFields(it), AnswerDue: it.AnswerDue(), Disputed: disputeLink(it.Session, it.Dispute), Paths: numbers(it), Tally: tallyOf(it), InForce: inForce(it),
		Conversation: c.all(it.Transcript, it.Opens), Opened: it.Status == "open", Confirms: it.Confirms(),
		Decides: it.You == nil || it.You.Decide, // the broker authorizes it anyway
		Acts:    it.You == nil || !it.You.Reads,
		Matter:  it.Status,
		Foreign: it.Dispute != "" && it.By.Organisation() != it.Organisation,
		With:    others(it),
	}
	v.Approves = v.Decides && (it.You == nil || !it.You.Voted) && it.By != who.Agent
	if it.Proposal != nil {
		v.OfferUntil = stamp(it.Proposal.ValidUntil)
		v.Lapsed = it.Proposal.Status == "expired"
		v.OfferByCounterparty = it.Proposal.By.Organisation() != it.Organisation
		v.TitleByCounterparty = v.OfferByCounterparty && it.Proposal.Subject != ""
	}
	v.Terms, v.MoreTerms = foldTerms(it)
	v.FoldedFields = folded(v.Fields)
	v.MayAny = it.You == nil || len(it.You.Limits) == 0
	// Who has a ceiling needs an amount to compare, unless the rules need none.
	v.MayExactly = it.TermsHash != "" && (v.MayAny || it.Amount != nil || it.Route != nil && it.Route.NonMonetary != "")
	v.OnlyShown = it.AsShown()
	v.Extent = v.extent()
	if it.You != nil {
		v.Ceilings = ceilings(it.You.Limits)
	}
	if it.Head != nil {
		v.Matter += " " + string(it.Head.Hash)
	}
	for n := range v.Conversation {
		e := &v.Conversation[n]
		e.Stake = it.Proposal != nil && e.Number == it.Proposal.Sequence || e.From == it.By && e.At.Equal(stamp(it.At))
	}
	v.Wary = it.Reason == adversarial || discourages.MatchString(it.SuggestedAction)
	v.Allows = !v.Confirms && (it.Status == performatives.Approved || it.Status == performatives.Modified)
	v.Sealers = sealers(it)
	v.Unseals = v.Acts && slices.ContainsFunc(v.Sealers, func(s sealer) bool { return !s.Opened })
	v.ClaimMine = it.Case.Claim != nil && it.Case.Claim.By == who.Agent
	for _, a := range it.Approvers {
		if a.Agent != who.Agent {
			v.Colleagues = append(v.Colleagues, a)
			if len(a.Limits) == 0 && !a.Trigger && !a.Voted {
				v.Others = append(v.Others, a)
			}
		}
	}
	return v
}

// others are the counterparties, without one that filed the dispute which the item asks about.
func others(it *api.EscalationItem) []performatives.Agent {
	return slices.DeleteFunc(slices.Clone(it.Counterparties), func(a performatives.Agent) bool { return a == it.By })
}

// adversarial is the reason of an agent that suspects bad faith.
const adversarial = "adversarial-detected"

// discourages are the words of an agent that suggests not to approve.
var discourages = regexp.MustCompile(`(?i)\b(deny|denied|reject|refuse|decline|do not approve|don't approve)\b`)

// uses finds the first act after an approval that needed it: an ACCEPT of an offer, or a COMMIT, by
// the side that asked.
func (v *item) uses(offers []api.SnapshotOffer) {
	if !v.Allows {
		return
	}
	decided := stamp(v.DecidedAt)
	for n := range v.Conversation {
		e := &v.Conversation[n]
		of := func(o api.SnapshotOffer) bool { return o.ID == e.About }
		if (e.Act == "ACCEPT" || e.Act == "COMMIT") && e.From.Organisation() == v.Organisation && e.At.After(decided) && slices.ContainsFunc(offers, of) {
			v.Used = e
			return
		}
	}
}

// extent returns what the Approve form proposes: exactly the terms that were shown, else
// an amount. Who has no ceiling may approve anything.
func (v *item) extent() string {
	switch {
	case v.MayExactly:
		return "terms"
	case v.OnlyShown && v.MayAny:
		return "any"
	case v.Amount != nil || !v.MayAny && len(v.Paths) > 0:
		return "amount"
	case v.MayAny:
		return "any"
	}
	return ""
}

func ceilings(limits []performatives.Limit) string {
	all := make([]string, len(limits))
	for n, l := range limits {
		all[n] = render.Money(l.MaxAmount, l.Currency)
	}
	return strings.Join(all, ", ")
}

// lacks returns why an approver's ceiling does not cover the amount at stake.
func lacks(a api.Approver, at *escalation.Amount) string {
	if at == nil {
		return "no amount to compare"
	}
	currency := at.Code()
	if !slices.ContainsFunc(a.Limits, func(l performatives.Limit) bool {
		return currency == "" || strings.EqualFold(l.Currency, currency)
	}) {
		return "no ceiling in " + currency
	}
	return "above their ceiling"
}

// A grant is an authority as text, one bound a line.
type grant struct {
	Lines []string
	Free  string // the terms that may change
	Until time.Time
}

// String is the grant without its time.
func (g *grant) String() string {
	text := strings.Join(g.Lines, "; ")
	if g.Free != "" {
		text += "; " + g.Free
	}
	return text
}

// asGrant words what an approval allows. The labels are those of the item's terms.
func asGrant(a *performatives.RulingsAuthority, item *api.EscalationItem) *grant {
	of := render.StakeOf(item)
	of.Label = func(path string) string { return cmp.Or(oneLine(item.Labels[path].Title), inWords(path)) }
	g := new(grant)
	if g.Lines, g.Free = render.Page.Grant(a, of); a != nil && a.ValidUntil != nil {
		g.Until = *a.ValidUntil
	}
	return g
}

// granted words what one human has approved; nil for other decisions.
func granted(v api.VoteView, item *api.EscalationItem) *grant {
	if !escalation.Approves(v.Decision) || item.Confirms() {
		return nil
	}
	return asGrant(v.Authority, item)
}

// inForce words what the approvals so far allow together; nil without any.
func inForce(item *api.EscalationItem) *grant {
	all, approved := item.InForce()
	if !approved || item.Confirms() {
		return nil
	}
	return asGrant(all, item)
}

// A tally counts approvals. Wanted is 1 unless several have to approve.
type tally struct{ Approved, Wanted int }

// tallyOf returns the tally of the level that is asked. People with a ceiling who
// approve terms without an amount may have to be two.
func tallyOf(item *api.EscalationItem) tally {
	t := tally{Wanted: 1}
	if item.Route == nil || len(item.Route.Levels) == 0 {
		return t
	}
	level := item.Route.Levels[min(item.Route.Level, len(item.Route.Levels)-1)]
	t = tally{level.Approved, level.Quorum}
	if item.Route.NonMonetary == escalation.NonMonetaryTwo && item.You != nil && len(item.You.Limits) > 0 {
		t.Wanted = max(t.Wanted, 2)
	}
	return t
}

// numbers returns the paths of the terms that may hold an amount, without those that a
// page cannot show as they are.
func numbers(item *api.EscalationItem) (paths []string) {
	for _, c := range item.Changes {
		if clean(c.Path) != c.Path {
			continue
		}
		if c.After.Kind() == '0' || c.After.Kind() == '"' && isDecimal(plainValue(c.After)) {
			paths = append(paths, c.Path)
		}
	}
	return paths
}
