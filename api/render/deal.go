package render

import (
	"fmt"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/session"
)

// Deal formats a snapshot: what is on the table, what waits for whom, and what the caller may send.
func Deal(v api.Snapshot, s Style) string {
	p := &page{Style: s}
	state := v.State.String()
	line := []Span{{state, stateInk(state, "")}}
	if v.Outcome != "" {
		line = append(line, said(": "+v.Outcome))
	}
	line = append(line, hushed(fmt.Sprintf("  entry %d", v.Head.N)))
	if v.You.Agent != "" {
		line = append(line, hushed("  you are "+string(v.You.Agent)+", "+v.You.Role))
	}
	p.put(0, 2, line...)
	if v.Agreed != nil {
		p.put(2, 4, Span{"agreed ", good}, hushed(v.Agreed.ID+"  "), said(v.Agreed.Text))
	}
	for _, o := range v.Offers {
		if o.Status == session.Open.String() && !v.State.Over() {
			p.put(2, 4, Span{"open ", warn}, hushed(o.ID+"  "), said(o.Text))
		}
	}
	for _, o := range v.Open {
		if o.Kind != "offer" {
			p.put(2, 4, Span{"open ", warn}, hushed(o.ID+"  "), said(o.Text))
		}
	}
	if v.Waiting != nil && v.Waiting.Yours {
		p.put(2, 4, Span{"your turn ", strong}, hushed("since "+whenStamp(v.Waiting.Since)))
	}
	for _, m := range v.Moves {
		name := m.Performative
		if m.Reference != "" {
			name += " " + m.Reference
		}
		p.put(2, 6, said("you may "), loud(name), said("  "+m.Says))
	}
	return p.String()
}
