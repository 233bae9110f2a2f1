package render

import (
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session/agreement"
)

// Agreement is the cover sheet of an agreement: who agreed on what, from when to when,
// and what proves it.
func Agreement(r agreement.Report, s Style) string {
	d := r.Document
	p := &page{Style: s}
	p.put(0, 2, loud("agreement "+string(d.ID)))
	p.put(0, 2, hushed("session "+string(d.Negotiation.Session())))
	p.gap()
	rows := []Row{}
	add := func(name, text string) {
		if text != "" {
			rows = append(rows, fact(name, text))
		}
	}
	for i, party := range d.Parties {
		add(map[bool]string{true: "between", false: "and"}[i == 0], string(party))
	}
	add("about", d.Category)
	add("from", whenStamp(d.EffectiveFrom))
	add("until", whenStamp(d.EffectiveUntil))
	for _, inherited := range []struct {
		name  string
		value jsontext.Value
	}{{"confidentiality", d.CCC}, {"obligations", d.Obligations}} {
		add(inherited.name, string(inherited.value))
	}
	p.rows(0, rows)
	p.gap()
	terms, err := json.Marshal(d.Terms, json.Deterministic(true))
	if err == nil {
		p.put(0, 2, hushed("terms"))
		p.rows(2, rowsOf(flatten(terms)))
	}
	for _, name := range r.Redacted {
		p.put(4, 6, hushed(name+"  redacted: only its digest is here"))
	}
	p.gap()
	p.put(0, 2, hushed("proof"))
	proof := []Row{fact("hash", string(d.Hash))}
	for _, party := range r.Signed {
		proof = append(proof, fact("signed by", string(party)))
	}
	if e := d.Evidence; e != nil && e.Offer != nil {
		for _, entry := range []struct {
			name string
			data jsontext.Value
		}{{"offer", e.Offer}, {"commitment", e.Commitment}, {"acceptance", e.Acceptance}, {"close", e.Close}} {
			if len(entry.data) > 0 {
				proof = append(proof, fact(entry.name, entryLine(entry.data)))
			}
		}
	}
	if d.Log != nil {
		checked := ", not checked"
		if r.Logged {
			checked = ""
		}
		proof = append(proof, fact("public log", "leaf "+strconv.FormatInt(d.Log.Index, 10)+checked))
	}
	p.rows(2, proof)
	if len(r.Faults) == 0 {
		p.put(2, 4, Span{r.Proves(), good})
		p.unchecked(r.Unchecked, "agreement")
		if len(r.Signed) > 0 || d.Evidence != nil && d.Evidence.Offer != nil {
			p.put(2, 4, said("if a party is hosted, the broker holds its key; 'parley session verify' says which are"))
		}
	}
	for _, f := range r.Faults {
		p.put(0, 2, Span{"fault  ", bad}, said(f.String()))
	}
	return p.String()
}

// Agreements lists agreements.
func Agreements(all []api.AgreementRow, s Style) string {
	rows := make([][]Span, len(all))
	for i, d := range all {
		parties := make([]string, len(d.Parties))
		for j, party := range d.Parties {
			parties[j] = string(party)
		}
		rows[i] = []Span{said(string(d.Agreement)), said(d.Subject), said(amountOf(d.Amount)), said(strings.Join(parties, ", ")), said(whenStamp(d.EffectiveFrom)), said(whenStamp(d.EffectiveUntil)), hushed(string(d.Session))}
	}
	return table(s, "no agreements", []column{
		{"AGREEMENT", fixed}, {"SUBJECT", flexible}, {"AMOUNT", fixed}, {"PARTIES", flexible}, {"FROM", optional}, {"UNTIL", optional}, {"SESSION", optional},
	}, rows)
}

func fact(name, text string) Row { return Row{Name: name, Value: []Span{said(text)}} }

// entryLine says who made an entry and when it was accepted.
func entryLine(data []byte) string {
	m, stamp, _, err := performatives.ReadDelivered(data)
	if err != nil {
		return "unreadable"
	}
	return "entry " + strconv.FormatUint(stamp.Sequence, 10) + ", " + m.Performative.String() + " of " + string(m.Sender) + ", " + whenStamp(stamp.Receipt.AcceptedAt)
}

// Mapping shows what a protocol takes from an agreement, and what it leaves open.
func Mapping(m agreement.Mapping, s Style) string {
	p := &page{Style: s}
	p.put(0, 2, loud("agreement "+string(m.Agreement)), hushed(" as "+string(m.As)+" "+m.Version))
	object := ""
	var sources []string
	for _, f := range m.Fields {
		if f.Object != object {
			object = f.Object
			p.gap()
			p.put(0, 2, hushed(object))
		}
		if !slices.Contains(sources, f.Source) {
			sources = append(sources, f.Source)
		}
		name, value := said(f.Name+"  "), m.Objects[f.Object][f.Name]
		cite := hushed("  [" + strconv.Itoa(slices.Index(sources, f.Source)+1) + "]")
		switch {
		case value != nil:
			p.put(2, 4, name, Span{Text: string(value)}, hushed("  "+f.From), cite)
		case f.Required:
			p.put(2, 4, name, hushed("required, open: "+f.Open), cite)
		default:
			p.put(2, 4, name, hushed("open: "+f.Open), cite)
		}
	}
	p.gap()
	for i, source := range sources {
		p.put(0, 4, hushed("["+strconv.Itoa(i+1)+"] "+source))
	}
	return p.String()
}

// Consents says what whoever accepts lets the public log show of an agreement; "" if it is digests only.
func Consents(publish jsontext.Value) string {
	p, _ := agreement.ParsePublish(publish)
	switch {
	case p.All:
		return "Whoever accepts consents that the public log shows all terms of the agreement."
	case len(p.Names) > 0:
		return "Whoever accepts consents that the public log shows of the agreement: " + Clean(strings.Join(p.Names, ", ")) + "."
	}
	return ""
}
