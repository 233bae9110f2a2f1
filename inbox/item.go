package inbox

import (
	"net/http"
	"regexp"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/wire"
)

// An item is one escalation with everything that a decision may need.
type item struct {
	wire.EscalationItem
	Title, Why        string
	Asks, AsksFor     performatives.Agent
	TitleTheirs       bool // the title is the counterparty's text
	OfferTheirs       bool // the terms are
	Context           []prose
	Facts             []pair // a context that is an object
	Suggested         prose
	Terms             []term
	Compared          bool // there was an offer before
	Fields            []field
	Stake             *stake
	Paths             []string // of the numbers among the terms
	Talk              []entry
	Rest              bool // the conversation is longer than this
	Events            []event
	Colleagues        []wire.Approver
	Due, At, Decided  time.Time
	Opened            bool
	Query             string
	Now               time.Time
	Me                *person
	ClaimMine, Claims bool
	Decides           bool // the reader may
}

// An event is one thing that happened around an item, in words.
type event struct {
	At   time.Time
	Text string
}

func (i *Inbox) item(r *http.Request, who *person, id string) (*item, error) {
	it, err := ask[wire.EscalationItem](r.Context(), i, who.Agent, wire.EscalationGet, wire.EscalationRef{Escalation: id})
	if err != nil {
		return nil, err
	}
	history, err := ask[wire.EscalationEvents](r.Context(), i, who.Agent, wire.EscalationHistory, wire.EscalationRef{Escalation: id})
	if err != nil && !refused(err) { // who may see an item may not always see who else did
		return nil, err
	}
	v := asItem(&it, who)
	v.Now = i.Now()
	v.Events = asEvents(history.Events)
	q := asked(r.URL.Query())
	v.Query = filter(q.Status, q.Urgency, q.Claimed)
	return v, nil
}

func asItem(it *wire.EscalationItem, who *person) *item {
	v := &item{
		EscalationItem: *it, Me: who, Title: titleOf(it), Why: reasonText(it.Reason), Asks: it.By, AsksFor: it.OnBehalfOf,
		Suggested: asProse(it.SuggestedAction), Terms: asTerms(it), Compared: it.Previous != nil, Fields: asFields(it),
		Stake: stakeOf(it), Talk: asTalk(it.Transcript, it.Organisation), Rest: it.Next != nil,
		Due: dueOf(it), At: stamp(it.At), Decided: stamp(it.DecidedAt), Opened: it.Status == "open",
	}
	v.Decides = it.You == nil || it.You.Decide // the broker judges anyway
	us := it.Organisation
	if it.Proposal != nil {
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
	for _, c := range it.Changes {
		if c.After.Kind() == '0' {
			v.Paths = append(v.Paths, c.Path)
		}
	}
	for n := range v.Talk {
		e := &v.Talk[n]
		e.Stake = it.Proposal != nil && e.Number == it.Proposal.Sequence || string(e.URI) == string(it.By) && e.At.Equal(v.At)
	}
	if claim := it.Desk.Claim; claim != nil {
		v.Claims, v.ClaimMine = true, claim.By == who.Agent
	}
	for _, a := range it.Approvers {
		if a.Agent != who.Agent {
			v.Colleagues = append(v.Colleagues, a)
		}
	}
	return v
}

// asEvents words what happened, newest first.
func asEvents(events []wire.DeskEvent) []event {
	all := make([]event, 0, len(events))
	for n := len(events) - 1; n >= 0; n-- {
		e := events[n]
		by := "by the clock"
		if e.By != "" {
			by = called(e.By)
		}
		words, known := eventWords[string(e.Kind)]
		if !known {
			words = string(e.Kind)
		}
		text := words + " " + by
		if e.To != "" {
			text += " → " + called(e.To)
		}
		if !e.Until.IsZero() {
			text += ", until " + moment(e.Until)
		}
		if e.Text != "" && e.Kind != "commented" {
			text += ": " + oneLine(e.Text)
		}
		all = append(all, event{e.At, text})
	}
	return all
}

var eventWords = map[string]string{
	"opened": "asked by", "viewed": "seen by", "claimed": "claimed by", "released": "released by", "assigned": "assigned by",
	"commented": "note by", "transferred": "transferred by", "reminded": "reminder sent", "reescalated": "moved up",
	"notified": "told", "voted": "approved by", "decided": "decided by", "expired": "expired", "closed": "closed by",
}

var amountName = regexp.MustCompile(`(?i)(amount|price|total|cost|fee|budget|value)`)

// stakeOf finds the amount that the decision is about.
func stakeOf(it *wire.EscalationItem) *stake {
	if it.Proposal == nil {
		return nil
	}
	var terms map[string]jsontext.Value
	if json.Unmarshal(it.Proposal.Terms, &terms) != nil {
		return nil
	}
	var currency string
	for _, name := range []string{"currency", "curr"} {
		if v, ok := terms[name]; ok && v.Kind() == '"' {
			currency = valueText(v)
		}
	}
	var found *stake
	for name, v := range terms {
		var n float64
		if v.Kind() == '0' && amountName.MatchString(name) && json.Unmarshal(v, &n) == nil && (found == nil || name < found.Path) {
			found = &stake{Sum: money(n, currency), Path: "terms." + name, Currency: currency, Amount: n}
		}
	}
	return found
}
