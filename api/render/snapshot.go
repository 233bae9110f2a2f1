package render

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/api/fit"
	"github.com/parley-asp/parley/performatives"
)

// Bounds of a sentence.
const (
	mostSaid  = 12  // terms
	longestID = 40  // bytes of an id
	longest   = 120 // bytes of a value
)

// Say puts a snapshot into sentences: each offer with its terms, what waits for an answer, and
// what each move does.
func Say(v *api.Snapshot) {
	w := sayer{names: newNamer(), v: v}
	for _, a := range append([]performatives.Agent{v.You.Agent}, w.others()...) {
		w.names.of(a)
	}
	for i := range v.Offers {
		v.Offers[i].Text = w.offer(v.Offers[i])
	}
	if v.Agreed != nil {
		v.Agreed.Text = w.offer(*v.Agreed)
	}
	for i := range v.Open {
		v.Open[i].Text = w.open(v.Open[i])
	}
	for i := range v.Moves {
		v.Moves[i].Says = w.move(v.Moves[i])
	}
}

type sayer struct {
	names namer
	v     *api.Snapshot
}

func (w *sayer) others() (all []performatives.Agent) {
	for _, o := range w.v.Others {
		all = append(all, o.Agent)
	}
	return all
}

// whom is what the sentence calls somebody.
func (w *sayer) whom(a performatives.Agent) string {
	if a == w.v.You.Agent && a != "" {
		return "you"
	}
	return Clean(w.names.of(a).name)
}

func (w *sayer) offer(o api.SnapshotOffer) string {
	verb := " offers "
	if o.By == w.v.You.Agent {
		verb = " offer "
	}
	text := w.whom(o.By) + verb + terms(o.Terms, o.Changes)
	if o.Status != "open" {
		text += "; " + o.Status
	}
	return text
}

// terms lists what an offer offers, and what it was in the offer before.
func terms(offered jsontext.Value, changes []api.TermChange) string {
	was := map[string]jsontext.Value{}
	var gone []string
	for _, c := range changes {
		if c.From != nil {
			was[strings.TrimPrefix(c.Path, "terms.")] = c.From
		}
		if c.To == nil {
			gone = append(gone, "no more "+brief(strings.TrimPrefix(c.Path, "terms.")))
		}
	}
	var said []string
	leaves := flatten(offered)
	for _, l := range leaves[:min(len(leaves), mostSaid)] {
		one := strings.TrimSpace(brief(l.path) + " " + brief(PageValue(l.json)))
		if before, changed := was[l.path]; changed && !bytes.Equal(before, l.json) {
			one += " (was " + brief(PageValue(before)) + ")"
		}
		said = append(said, one)
	}
	if more := len(leaves) - mostSaid; more > 0 {
		said = append(said, Count(more, "more term", "more terms"))
	}
	if said = append(said, gone[:min(len(gone), mostSaid)]...); len(said) == 0 {
		return "no terms"
	}
	return strings.Join(said, ", ")
}

func brief(s string) string { return fit.Text(Clean(s), longest) }

func (w *sayer) all(agents []performatives.Agent) string {
	var names []string
	for _, a := range agents[:min(len(agents), mostSaid)] {
		names = append(names, w.whom(a))
	}
	if more := len(agents) - mostSaid; more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ")
}

// deeds are what acts do, in the words of who does them.
var deeds = map[string]string{
	"PROPOSE": "make an offer", "ACCEPT": "accept %s", "REJECT": "reject %s", "COUNTER": "offer other terms instead of %s", "CLARIFY": "ask about %s",
	"COMMIT": "commit to %s", "WITHDRAW": "take back %s", "INFORM": "say something", "QUERY": "ask something", "OBSERVE": "remark something",
	"DELEGATE": "have another agent check or act for you", "ESCALATE": "ask a human of your organisation", "CLOSE": "end the session",
}

func (w *sayer) move(m api.Move) string {
	deed, about := deeds[m.Performative], w.named(m.Reference)
	switch {
	case m.Performative == "INFORM" && w.executes(m) != "":
		deed = w.executes(m)
	case m.Performative == "PROPOSE" && about != "":
		deed = "offer other obligations in place of those of " + about + " that are still due"
	case m.Performative == "CLOSE" && w.owing() && w.left():
		deed = "end the session: every other party has left, and what is due, or waits to be accepted, is released"
	case m.Performative == "CLOSE" && w.owing():
		deed = "leave; the session ends once every party has said so, and what is due is released"
	case m.Performative == "CLOSE" && len(w.v.Completes) > 0:
		deed += ", which makes the agreement: " + w.completes() + "; with the outcome abandoned or failed it makes none"
	case m.Performative == "INFORM" && about != "":
		deed = "answer " + about
	case m.Performative == "COMMIT" && about == "":
		deed = "commit to obligations"
	case m.Performative == "WITHDRAW" && w.given(m.Reference):
		deed = "give back " + about
	case strings.Contains(deed, "%s"):
		deed = fmt.Sprintf(deed, about)
	}
	for _, o := range w.v.Open {
		if m.Performative == "ACCEPT" && o.ID == m.Reference && promised(o) {
			deed += ": " + w.promises(o)
		}
	}
	if consent := Consents(w.v.Publish); consent != "" && (m.Performative == "ACCEPT" || m.Performative == "COMMIT") {
		deed += ". " + strings.TrimSuffix(consent, ".")
	}
	if len(m.Fill) > 0 {
		deed += "; say " + strings.Join(m.Fill, ", ")
	}
	return deed
}

// completes says what a CLOSE agrees to: the terms of the offers that were accepted, or of those too old to be
// here, the ids.
func (w *sayer) completes() string {
	var said []string
	for n, id := range w.v.Completes {
		if n == mostSaid {
			return strings.Join(said, "; ") + fmt.Sprintf("; and %d more", len(w.v.Completes)-n)
		}
		if i := w.offerNamed(id); i >= 0 {
			said = append(said, terms(w.v.Offers[i].Terms, nil))
		} else {
			said = append(said, fit.Text(Clean(id), longestID))
		}
	}
	return strings.Join(said, "; ")
}

// replies are what a reply to a dispute does.
var replies = map[string]string{
	performatives.Concede: "concede the dispute ", performatives.Deny: "deny the dispute ", performatives.OfferOf: "offer what would end the dispute ",
}

// executes says what an INFORM of what is carried out does, "" for any other.
func (w *sayer) executes(m api.Move) string {
	var body performatives.InformBody
	if json.Unmarshal(m.Body, &body) != nil {
		return ""
	}
	of := func(commitment string, id performatives.ObligationID) string {
		for _, o := range w.v.Obligations {
			if o.Commitment == commitment && o.ID == string(id) {
				return brief(o.Action)
			}
		}
		return fit.Text(Clean(commitment+"/"+string(id)), longestID)
	}
	if d, ok := body.Delivery(); ok {
		return "say that this is delivered: " + of(d.CommitmentID, d.Obligation)
	}
	if d, ok := body.Progress(); ok {
		return "report progress on: " + of(d.CommitmentID, d.Obligation)
	}
	if d, ok := body.Waiver(); ok {
		return "do without: " + of(d.CommitmentID, d.Obligation)
	}
	if d, ok := body.Reply(); ok {
		return replies[d.Position] + fit.Text(Clean(d.DisputeID), longestID)
	}
	if d, ok := body.Decides(); ok {
		return "decide the dispute " + fit.Text(Clean(d.DisputeID), longestID) + ": " + d.Decision
	}
	if body.Kind() == performatives.Dispute {
		return "dispute an entry, such as a delivery or a breach"
	}
	return ""
}

// owing reports whether something is due.
func (w *sayer) owing() bool {
	return slices.ContainsFunc(w.v.Open, func(o api.OpenItem) bool { return o.Kind == "obligation" })
}

// left reports whether every other party of what is carried out has said CLOSE.
func (w *sayer) left() bool {
	stays := func(a performatives.Agent) bool {
		return a != w.v.You.Agent && a != w.v.You.OnBehalfOf && !slices.Contains(w.v.Leaving, a)
	}
	return !slices.ContainsFunc(w.v.Obligations, func(o api.ObligationView) bool {
		return stays(o.Party) || slices.ContainsFunc(o.To, stays)
	})
}

// given reports whether an id names a delegation to the caller.
func (w *sayer) given(id string) bool {
	return slices.ContainsFunc(w.v.Open, func(o api.OpenItem) bool {
		return o.ID == id && (o.Kind == "delegation" || o.Kind == "check") && slices.Contains(o.For, w.v.You.Agent)
	})
}

func (w *sayer) offerNamed(id string) int {
	return slices.IndexFunc(w.v.Offers, func(o api.SnapshotOffer) bool { return o.ID == id })
}

// named is what a sentence calls what an id names.
func (w *sayer) named(id string) string {
	for _, o := range w.v.Open {
		if o.ID == id {
			whose := w.whose(o)
			if i := w.offerNamed(id); i >= 0 {
				whose += ", " + terms(w.v.Offers[i].Terms, nil)
			}
			return whose
		}
	}
	for _, o := range w.v.Obligations {
		if o.Delivery != nil && o.Delivery.Reference == id {
			return "what was delivered: " + brief(o.Action)
		}
	}
	if i := w.offerNamed(id); i >= 0 {
		return "what was agreed, " + terms(w.v.Offers[i].Terms, nil)
	}
	return fit.Text(Clean(id), longestID)
}
