package render

import (
	"slices"
	"strconv"

	"github.com/parley-asp/parley/agreement"
)

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
			p.put(2, 4, name, span{text: string(value)}, hushed("  "+f.From), cite)
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
