package inbox

import (
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
)

// An offered is the offer on top of the page: what a human is asked about, what was agreed, or what is on
// the table.
type offered struct {
	What, Where  string // of the heading, and of the amount
	Kind, ID     string
	By           performatives.Agent
	AcceptedBy   []performatives.Agent
	Status       string
	Schema       string
	Text         string // the offer as a sentence
	Counterparty bool   // the other side made it
	Amount       *escalation.Amount
	Terms, Rest  termTable // the first, and those that are folded
	PreviousID   string    // the offer that it is compared with; "" if it is that before
	PreviousBy   performatives.Agent
	Until        time.Time
}

// accepted adds who accepted the offer, as far as the conversation is shown.
func (o *offered) accepted(conversation []entry) {
	for _, e := range conversation {
		if o != nil && e.Act == "ACCEPT" && e.About == o.ID {
			o.AcceptedBy = append(o.AcceptedBy, e.From)
		}
	}
}

// onTop returns what was agreed last, else the newest open offer, else the newest; nil for none.
func onTop(v *api.Snapshot, proposals []api.OfferView, us performatives.Organisation, labels map[string]api.Label) *offered {
	if v.Agreed == nil && len(v.Offers) == 0 {
		return nil
	}
	top := &offered{What: "The last offer", Where: "offered last", Kind: "offer"}
	shown := v.Agreed
	if shown != nil {
		top.What, top.Where = "What was agreed", "agreed"
	} else {
		shown = &v.Offers[len(v.Offers)-1]
		for n := range slices.Backward(v.Offers) {
			if v.Offers[n].Status == "open" {
				shown, top.What, top.Where = &v.Offers[n], "On the table", "on the table"
				break
			}
		}
	}
	top.ID, top.By, top.Status, top.Until = shown.ID, shown.By, shown.Status, stamp(shown.Expires)
	top.Text, top.Counterparty, top.Amount = sentence(clean(shown.Text)), shown.By.Organisation() != us, amountOf(shown.Terms)
	for _, p := range proposals {
		if p.Proposal == shown.ID {
			top.Schema = p.Schema
		}
	}
	top.Terms, top.Rest = fold(termsOf(changesOf(shown, labels), top.Amount, labels), len(shown.Changes) > 0)
	return top
}

// atStake returns the offer that an escalation asks about; nil for none, and for a dispute, which is about
// what was agreed.
func atStake(it *item) *offered {
	p := it.Proposal
	if it.Dispute != "" || p == nil && len(it.Terms.Rows) == 0 {
		return nil
	}
	top := &offered{What: "What is at stake", Where: "at stake", Amount: it.Amount, Terms: it.Terms, Rest: it.MoreTerms, Counterparty: it.OfferByCounterparty}
	if p != nil {
		top.Kind, top.ID, top.By, top.Status, top.Schema, top.Until = "offer", p.Proposal, p.By, p.Status, p.Schema, stamp(p.ValidUntil)
		if p.Commitment != "" {
			top.Kind, top.ID = "commitment", p.Commitment
		}
	}
	if was := it.Previous; was != nil {
		top.PreviousID, top.PreviousBy = was.Proposal, was.By
	}
	return top
}

// changesOf lists the terms of an offer against the offer before.
func changesOf(o *api.SnapshotOffer, labels map[string]api.Label) []api.Change {
	all := api.Compare(o.Terms, nil, labels)
	for _, changed := range o.Changes {
		at := slices.IndexFunc(all, func(c api.Change) bool { return c.Path == changed.Path })
		switch {
		case at < 0:
			all = append(all, api.Change{Path: changed.Path, Label: labels[changed.Path].Title, Kind: api.Removed, Before: changed.From})
		case changed.From == nil:
			all[at].Kind = api.Added
		default:
			all[at].Kind, all[at].Before = api.Changed, changed.From
		}
	}
	return all
}

// amountOf returns the highest amount that the terms of an offer name.
func amountOf(terms jsontext.Value) *escalation.Amount {
	body, err := json.Marshal(map[string]jsontext.Value{"terms": terms})
	if err != nil || len(terms) == 0 {
		return nil
	}
	highest, _ := escalation.Highest(body, nil, true)
	return highest
}
