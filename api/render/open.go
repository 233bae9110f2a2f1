package render

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
)

// open says what waits, and for whom.
func (w *sayer) open(o api.OpenItem) string {
	by, who := w.whom(o.By), w.whose(o)
	if promised(o) {
		who += ", " + w.promises(o) + ","
	}
	switch o.Kind {
	case "offer":
		if i := w.offerNamed(o.ID); i >= 0 {
			who += ", " + terms(w.v.Offers[i].Terms, nil) + ","
		}
	case "check":
		who = "a result of " + w.all(o.For) + " for " + by
		return who + " is awaited"
	case "obligation":
		return w.obligation(o.ID)
	case "dispute":
		if len(o.For) == 0 {
			return who + " is undecided"
		}
	case "escalation":
		return "a human reviews what " + by + " asked"
	}
	if len(o.For) == 0 {
		return who + " is open"
	}
	return who + " waits for " + w.all(o.For)
}

// whose is what a sentence calls something open.
func (w *sayer) whose(o api.OpenItem) string {
	kind := o.Kind
	if kind == "offer" && promised(o) {
		kind = "amendment"
	}
	if by := w.whom(o.By); by != "you" {
		return "the " + kind + " of " + by
	}
	return "your " + kind
}

// promised reports whether what waits is a commitment or an amendment.
func promised(o api.OpenItem) bool { return len(o.Body) > 0 && o.Kind != "invitation" }

// promises says what the body of a commitment or an amendment has each party do.
func (w *sayer) promises(o api.OpenItem) string {
	var b struct {
		Terms    performatives.CommitmentTerms `json:"terms"`
		Deadline string                        `json:"deadline"`
		Escrow   *performatives.Escrow         `json:"escrow"`
		Outcome  string                        `json:"outcome"`
	}
	if json.Unmarshal(o.Body, &b) != nil {
		return "the terms of its body" // which is cut
	}
	var said []string
	for _, o := range b.Terms.Obligations[:min(len(b.Terms.Obligations), mostSaid)] {
		one := w.whom(o.Party) + ": " + brief(o.Action) + worth(o.Amount)
		if o.Quantity != nil {
			one += " (" + brief(strings.TrimSpace(number(*o.Quantity)+" "+o.Unit)) + ")"
		}
		if o.Deadline != nil {
			one += " by " + api.Timestamp(*o.Deadline)
		}
		said = append(said, one)
	}
	if more := len(b.Terms.Obligations) - mostSaid; more > 0 {
		said = append(said, Count(more, "more obligation", "more obligations"))
	}
	if b.Terms.Penalties != nil {
		said = append(said, "with penalties")
	}
	if b.Escrow != nil {
		said = append(said, "escrow "+Terminal.money(b.Escrow.Amount, b.Escrow.Currency))
	}
	if b.Deadline != "" {
		said = append(said, "by "+brief(b.Deadline))
	}
	if b.Outcome != "" {
		said = append(said, "outcome "+brief(b.Outcome))
	}
	if o.Truncated {
		said = append(said, "and more, which is cut here: session.messages has it")
	}
	return strings.Join(said, "; ")
}

// obligation says what is due by whom, or what waits to be accepted.
func (w *sayer) obligation(id string) string {
	i := slices.IndexFunc(w.v.Obligations, func(o api.ObligationView) bool { return o.Commitment+"/"+o.ID == id })
	if i < 0 {
		return ""
	}
	o := w.v.Obligations[i]
	owes, delivers := " owes: ", " says that this is delivered: "
	if o.Party == w.v.You.Agent {
		owes, delivers = " owe: ", " say that this is delivered: "
	}
	what := brief(o.Action) + worth(o.Amount)
	if o.Quantity != nil {
		left := o.Remains
		if o.Delivery != nil && o.Delivery.Quantity != nil {
			left = o.Delivery.Quantity
		}
		what += " (" + brief(strings.TrimSpace(number(*left)+" of "+number(*o.Quantity)+" "+o.Unit)) + ")"
	}
	text := w.whom(o.Party)
	switch {
	case o.Delivery != nil:
		text += delivers + what + "; it waits for " + w.all(o.To) + " and counts as accepted at " + o.Delivery.Until
	case o.Deadline != "":
		text += owes + what + ", by " + o.Deadline
	default:
		text += owes + what
	}
	if o.Status != "due" && o.Status != "asserted" {
		text += "; " + o.Status
	}
	return text
}
