package render

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

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
		said = append(said, count(more, "more term", "more terms"))
	}
	if said = append(said, gone[:min(len(gone), mostSaid)]...); len(said) == 0 {
		return "no terms"
	}
	return strings.Join(said, ", ")
}

func brief(s string) string { return fit.Text(Clean(s), longest) }

func (w *sayer) open(o api.OpenItem) string {
	by := w.whom(o.By)
	who := "the " + o.Kind + " of " + by
	if by == "you" {
		who = "your " + o.Kind
	}
	switch o.Kind {
	case "offer":
		if i := w.offerNamed(o.ID); i >= 0 {
			who += ", " + terms(w.v.Offers[i].Terms, nil) + ","
		}
	case "check":
		who = "a result of " + w.all(o.For) + " for " + by
		return who + " is awaited"
	case "escalation":
		return "a human reviews what " + by + " asked"
	}
	return who + " waits for " + w.all(o.For)
}

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
	case m.Performative == "INFORM" && about != "":
		deed = "answer " + about
	case m.Performative == "COMMIT" && about == "":
		deed = "commit to obligations"
	case m.Performative == "WITHDRAW" && w.given(m.Reference):
		deed = "give back " + about
	case strings.Contains(deed, "%s"):
		deed = fmt.Sprintf(deed, about)
	}
	if consent := Consents(w.v.Publish); consent != "" && (m.Performative == "ACCEPT" || m.Performative == "COMMIT") {
		deed += ". " + strings.TrimSuffix(consent, ".")
	}
	if len(m.Fill) > 0 {
		deed += "; say " + strings.Join(m.Fill, ", ")
	}
	return deed
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
			whose := "the " + o.Kind + " of " + w.whom(o.By)
			if w.whom(o.By) == "you" {
				whose = "your " + o.Kind
			}
			if i := w.offerNamed(id); i >= 0 {
				whose += ", " + terms(w.v.Offers[i].Terms, nil)
			}
			return whose
		}
	}
	if i := w.offerNamed(id); i >= 0 {
		return "what was agreed, " + terms(w.v.Offers[i].Terms, nil)
	}
	return fit.Text(Clean(id), longestID)
}
