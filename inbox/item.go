package inbox

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
)

// An item is one escalation with everything that a decision needs.
type item struct {
	api.EscalationItem
	Title, Why       string
	Asks, AsksFor    performatives.Agent
	TitleTheirs      bool // the title is the counterparty's text
	OfferTheirs      bool // the terms are
	Context          []prose
	Facts            []pair // a context that is an object
	Suggested        prose
	Terms, MoreTerms []term // the first, and those that are folded
	Compared         bool   // there is a previous offer
	Fields           []field
	Stake            *stake
	Paths            []string // of terms that may hold an amount
	Talk             []entry
	Rest             bool // the conversation has more entries
	Events           []event
	Earlier          []row // items about the same other organisation
	Colleagues       []api.Approver
	Due, At, Decided time.Time
	Opened           bool
	Query            string
	Now              time.Time
	Me               *person
	Claim            *api.Claim
	ClaimMine        bool
	Assignee         performatives.Agent
	HandedOver       *api.CaseAction // to the assignee; nil if that cannot be seen
	Levels           []level
	Tally            tally
	Votes            []vote
	InForce          *grant // what the approvals so far allow together
	Confirms         bool   // the agents have agreed: it is confirmed, or not
	Decides          bool   // the reader may decide
	Approves         bool   // and has neither voted nor escalated it
	Extent           string // what the Approve form proposes: amount, terms or any; "" if the reader cannot approve
	Ceilings         string // the reader's
	Acts             bool   // and may comment, claim and hand over
	Lapsed           bool   // the offer at stake has expired
	OfferUntil       time.Time
	Matter           string // changes when what is decided changes
}

// Classification is the confidentiality that the session inherits of its parties, in words.
func (v item) Classification() string { return classified(v.CCC) }

// An event is an entry of an item's history, as text.
type event struct {
	At    time.Time
	Text  string
	Until time.Time
	Note  string // a comment or a rule
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
	v := asItem(&it, who, i.newTeller(r.Context(), who, it.Organisation))
	v.Now = i.Now()
	v.Lapsed = v.Lapsed || !v.OfferUntil.IsZero() && v.Now.After(v.OfferUntil)
	v.Events = i.events(history.Actions)
	v.Query = filter(asked(r.URL.Query()))
	if v.Earlier, err = i.earlier(r.Context(), who, &it); err != nil {
		return nil, err
	}
	for n := range history.Actions {
		if a := &history.Actions[n]; a.To != "" && a.To == v.Assignee {
			v.HandedOver = a
		}
	}
	return v, nil
}

func asItem(it *api.EscalationItem, who *person, t *teller) *item {
	v := &item{
		EscalationItem: *it, Me: who, Title: titleOf(it), Why: reasonText(it.Reason), Asks: it.By, AsksFor: it.OnBehalfOf,
		Suggested: asProse(it.SuggestedAction), Compared: it.Previous != nil, Fields: asFields(it),
		Stake: stakeOf(it), Paths: numbers(it), Tally: tallyOf(it), Votes: asVotes(it), InForce: inForce(it), Talk: t.all(it.Transcript), Rest: it.Next != nil,
		Levels: asLevels(it), Due: dueOf(it), At: stamp(it.At), Decided: stamp(it.DecidedAt), Opened: it.Status == "open",
	}
	v.Confirms = it.Reason == performatives.Confirmation
	v.Decides = it.You == nil || it.You.Decide // the broker authorizes it anyway
	v.Approves = v.Decides && (it.You == nil || !it.You.Voted) && it.By != who.Agent
	v.Acts = it.You == nil || !it.You.Reads
	us := it.Organisation
	if it.Proposal != nil {
		v.OfferUntil = stamp(it.Proposal.ValidUntil)
		v.Lapsed = it.Proposal.Status == "expired"
		v.OfferTheirs = it.Proposal.By.Organisation() != us
		v.TitleTheirs = v.OfferTheirs && it.Proposal.Subject != ""
	}
	if it.Context.Kind() == '{' {
		var e entry
		e.value(it.Context)
		v.Facts = e.Pairs
	} else if it.Context.Kind() != 0 {
		v.Context = []prose{asProse(valueText(it.Context))}
	}
	v.Terms, v.MoreTerms = foldTerms(asTerms(it))
	v.Extent = v.extent()
	if it.You != nil {
		v.Ceilings = ceilings(it.You.Limits)
	}
	if v.Matter = it.Status; it.Head != nil {
		v.Matter += " " + string(it.Head.Hash)
	}
	for n := range v.Talk {
		e := &v.Talk[n]
		e.Stake = it.Proposal != nil && e.Number == it.Proposal.Sequence || string(e.URI) == string(it.By) && e.At.Equal(v.At)
	}
	v.Claim, v.Assignee = it.Case.Claim, it.Case.Assignee
	v.ClaimMine = v.Claim != nil && v.Claim.By == who.Agent
	for _, a := range it.Approvers {
		if a.Agent != who.Agent {
			v.Colleagues = append(v.Colleagues, a)
		}
	}
	return v
}

// extent returns what an approval of the reader's is bound by: the amount at stake,
// else the terms that were shown. Who has no ceiling may approve anything.
func (v *item) extent() string {
	limited := v.You != nil && len(v.You.Limits) > 0
	exactly := v.TermsHash != "" && (!limited || v.Route != nil && v.Route.NonMonetary != "")
	switch {
	case v.Stake != nil || limited && !exactly && len(v.Paths) > 0:
		return "amount"
	case exactly:
		return "terms"
	case !limited:
		return "any"
	}
	return ""
}

// MayAny reports whether the reader may approve without a bound.
func (v *item) MayAny() bool { return v.You == nil || len(v.You.Limits) == 0 }

// Others are colleagues who can approve what the reader cannot.
func (v *item) Others() (all []api.Approver) {
	for _, a := range v.Colleagues {
		if len(a.Limits) == 0 && !a.Trigger && !a.Voted {
			all = append(all, a)
		}
	}
	return all
}

func ceilings(limits []performatives.Limit) string {
	all := make([]string, len(limits))
	for n, l := range limits {
		all[n] = money(l.MaxAmount, l.Currency)
	}
	return strings.Join(all, ", ")
}

// events formats the history, newest first.
func (i *Inbox) events(events []api.CaseAction) []event {
	all := make([]event, 0, len(events))
	for n := len(events) - 1; n >= 0; n-- {
		e := events[n]
		text, known := eventWords[e.Kind]
		if !known {
			text = string(e.Kind)
		}
		if e.Kind == escalation.Claimed && e.To != "" {
			text, e.Text = "taken over by", ""
		}
		switch {
		case e.By != "" && !strings.HasPrefix(string(e.By), "broker://"):
			text += " " + i.called(e.By)
		case e.Kind == escalation.Assigned:
			text = "assigned"
		case e.Kind == escalation.Reminded, e.Kind == escalation.Reescalated, e.Kind == escalation.Ended:
			text += ", by timer"
		}
		if e.To != "" {
			arrow := " → "
			if e.Kind == escalation.Claimed {
				arrow = " from "
			}
			text += arrow + i.called(e.To)
		}
		if e.Absent != "" {
			text += ", who stands in for " + i.called(e.Absent)
		}
		v := event{At: e.At, Text: text, Until: e.Until}
		switch {
		case e.Text == "" || e.Kind == escalation.Commented: // shown under Notes
		case e.Kind == escalation.Opened:
			v.Note = "rule " + oneLine(e.Text)
		default:
			v.Note = oneLine(e.Text)
		}
		all = append(all, v)
	}
	return all
}

var eventWords = map[escalation.Kind]string{
	escalation.Opened: "escalated by", escalation.Viewed: "viewed by", escalation.Claimed: "claimed by", escalation.Released: "released by",
	escalation.Assigned: "assigned by", escalation.Commented: "note by", escalation.Transferred: "transferred by",
	escalation.Reminded: "reminded", escalation.Reescalated: "moved to the next level", escalation.Notified: "notified",
	escalation.Voted: "vote by", escalation.Decided: "decided by", escalation.Ended: "ended",
}

// stakeOf returns the amount at stake, as the broker found it.
func stakeOf(it *api.EscalationItem) *stake {
	if it.Amount == nil {
		return nil
	}
	return &stake{Sum: money(it.Amount.Value, it.Amount.Currency), Path: it.Amount.Path, Currency: code(it.Amount.Currency), Amount: it.Amount.Value}
}

// lacks returns why an approver's ceiling does not cover the amount at stake.
func lacks(a api.Approver, at *stake) string {
	if at == nil {
		return "no amount to compare"
	}
	if !slices.ContainsFunc(a.Limits, func(l performatives.Limit) bool {
		return at.Currency == "" || strings.EqualFold(l.Currency, at.Currency)
	}) {
		return "no ceiling in " + at.Currency
	}
	return "above their ceiling"
}

// A level is a level of the approval chain.
type level struct {
	api.Level
	Due  time.Time
	Turn string // past, now or later
	Last bool
}

func asLevels(it *api.EscalationItem) []level {
	if it.Route == nil {
		return nil
	}
	var all []level
	for n, l := range it.Route.Levels {
		v := level{Level: l, Due: stamp(l.Due), Turn: "later", Last: n == len(it.Route.Levels)-1}
		if v.Name == "" {
			v.Name = "Level " + strconv.Itoa(n+1)
		}
		switch {
		case n < it.Route.Level:
			v.Turn = "past"
		case n == it.Route.Level:
			v.Turn = "now"
		}
		all = append(all, v)
	}
	return all
}
