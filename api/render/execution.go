package render

import (
	"fmt"
	"slices"
	"strings"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session/evidence"
)

// owedInks are those of what obligations and disputes are.
var owedInks = map[string]ink{
	"breached": bad, "late": bad, "disputed": warn, "asserted": warn, "open": warn, "upheld": bad, "unresolved": bad,
	"fulfilled": good, "deemed": good, "waived": faint, "released": faint, "conceded": good, "agreed": good,
}

// Obligations lists what is carried out.
func Obligations(list []api.ObligationRow, s Style) string {
	var rows [][]Span
	for _, o := range list {
		much := ""
		if o.Quantity != nil {
			much = strings.TrimSpace(number(*o.Remains) + " of " + number(*o.Quantity) + " " + o.Unit)
		}
		names := newNamer()
		rows = append(rows, []Span{
			said(string(o.Session)), said(o.Commitment + "/" + o.ID), {o.Status, owedInks[o.Status]}, said(names.of(o.Party).name),
			hushed(strings.TrimSuffix(whenStamp(o.Due), " UTC")), said(much), said(o.Action + worth(o.Amount)),
		})
	}
	return table(s, "nothing is carried out", []column{
		{"SESSION", identifier}, {"OBLIGATION", fixed}, {"STATUS", fixed}, {"BY", fixed}, {"UNTIL (UTC)", fixed}, {"STILL DUE", optional}, {"ACTION", flexible},
	}, rows)
}

// Deliveries lists what was delivered, and waits for an answer.
func Deliveries(list []api.ObligationView, s Style) string {
	p := &page{Style: s}
	for _, o := range list {
		d, names := o.Delivery, newNamer()
		if d == nil {
			continue
		}
		much := "all that is due"
		if d.Quantity != nil {
			much = strings.TrimSpace(number(*d.Quantity) + " " + o.Unit)
		}
		p.put(0, 2, loud("delivered of "+o.Commitment+"/"+o.ID), said(": "+much+", by "+names.of(d.By).name), hushed(fmt.Sprintf(", entry %d", d.Sequence)))
		for _, e := range d.Evidence {
			p.put(2, 4, said(strings.Join(slices.DeleteFunc([]string{e.Kind, e.Note, string(e.Digest), e.URI}, func(part string) bool { return part == "" }), "  ")))
		}
	}
	return p.String()
}

// worth is what an obligation is worth, after its action; "" for nothing.
func worth(w *performatives.Worth) string {
	if w == nil {
		return ""
	}
	return " " + Terminal.money(w.Value, w.Currency)
}

// Disputes lists disputes.
func Disputes(list []api.DisputeRow, s Style) string {
	var rows [][]Span
	for _, d := range list {
		names := newNamer()
		about := number(float64(d.Entry))
		if d.Obligation != "" {
			about += ", " + d.Commitment + "/" + d.Obligation
		}
		reply := ""
		if n := len(d.Replies); n > 0 {
			reply = d.Replies[n-1].Position
		}
		rows = append(rows, []Span{
			said(string(d.Session)), said(d.ID), {d.Status, owedInks[d.Status]}, said(names.of(d.By).name), said(about), said(d.Ground), said(reply), said(d.Claim),
		})
	}
	return table(s, "no disputes", []column{
		{"SESSION", identifier}, {"DISPUTE", fixed}, {"STATUS", fixed}, {"BY", fixed}, {"ABOUT ENTRY", fixed}, {"GROUND", fixed}, {"REPLY", optional}, {"CLAIM", flexible},
	}, rows)
}

// Evidence tells the story of a bundle, and what is wrong with it.
func Evidence(r evidence.Report, s Style) string {
	b := r.Bundle
	p := &page{Style: s}
	log := Count(r.Logged, "leaf", "leaves") + " verified in the public log"
	if r.LogUnchecked {
		log = "without --log-key, the public log is not checked"
	}
	if len(b.Transcript) > 0 { // else it tells of no session
		p.put(0, 2, loud("session "+string(b.Session)), said("  "), Span{b.State.String(), stateInk(b.State.String(), "")},
			hushed("  "+Count(len(b.Transcript), "entry", "entries")+", "+Count(len(b.Agreements), "agreement", "agreements")+", as of "+r.AsOf+"; "+log))
	}
	for _, o := range b.Obligations {
		names := newNamer()
		p.put(2, 4, stands(r, o.Status), hushed(o.Commitment+"/"+o.ID+"  "), said(names.of(o.Party).name+": "+o.Action), hushed(entriesOf(o.Entries)))
	}
	for _, d := range b.Disputes {
		names := newNamer()
		p.put(2, 4, stands(r, d.Status), hushed("dispute "+d.ID+"  "), said(names.of(d.By).name+": "+d.Ground), hushed(entriesOf(d.Entries)))
	}
	for _, f := range r.Faults {
		p.put(0, 2, Span{"fault ", bad}, said(f.String()))
	}
	switch {
	case len(r.Faults) > 0:
	case len(r.Claimed) > 0:
		p.put(0, 2, Span{"Not proven: ", warn}, said("what is claimed above, and that no obligation or dispute is left out, since "+Count(r.Withheld, "entry is", "entries are")+" withheld. The rest holds: hashes and receipts are right."))
	case r.Withheld > 0:
		p.put(0, 2, Span{"Not proven: ", warn}, said("that there is no obligation or dispute, since "+Count(r.Withheld, "entry is", "entries are")+" withheld. The rest holds: hashes and receipts are right."))
	default:
		p.put(0, 2, Span{"It holds: ", good}, said("hashes, receipts and signatures are right, and the replay leads to this."))
	}
	if len(r.Faults) == 0 {
		p.unproven(r)
		p.unchecked(r.Unchecked, "bundle")
		for _, a := range r.Hosted {
			p.put(2, 4, said(Hosted(a)))
		}
	}
	return p.String()
}

// unproven says what a bundle without faults does not prove.
func (p *page) unproven(r evidence.Report) {
	if r.Unlinked > 0 {
		p.put(2, 4, said("nothing proves that "+Count(r.Unlinked, "withheld entry is", "withheld entries are")+" of this session: no entry after them names them"))
	}
	switch b := r.Bundle; {
	case !b.State.Over():
		p.put(2, 4, said("it tells what was by "+r.AsOf+"; what came after that, it cannot tell"))
	case b.Ended == nil && !r.LogUnchecked:
		p.put(2, 4, said("the session's end has no position in the public log"))
	}
	if r.ReceiptsUnchecked {
		p.put(2, 4, said("the bundle names whose COSE Receipts it has; verify --receipt-key says whose they have to be"))
	}
}

// stands is where the bundle says that an obligation or dispute stands, and whether that is proven.
func stands(r evidence.Report, status string) Span {
	if len(r.Claimed) > 0 {
		return Span{"claimed, not proven: " + status + " ", warn}
	}
	return Span{status + " ", owedInks[status]}
}

// Hosted says who signs for a principal that is hosted.
func Hosted(a performatives.Agent) string {
	return "the broker holds the key of " + string(a) + ", which is hosted"
}

// unchecked says that receipts are by keys that only the file names, which anybody could have made.
func (p *page) unchecked(keys []performatives.Key, file string) {
	for _, k := range keys {
		p.put(2, 4, said("by the key "+string(k)+" that the "+file+" names; verify --broker-key says whose it has to be"))
	}
}

func entriesOf(numbers []uint64) string {
	var all []string
	for _, n := range numbers {
		all = append(all, number(float64(n)))
	}
	return "  entries " + strings.Join(all, ", ")
}
