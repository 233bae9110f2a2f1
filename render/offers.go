package render

import (
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// terms draws an offer's terms, compared with those of another.
func (c *Chat) terms(p *page, before, now string, invitation bool) {
	after := c.refs[now].terms
	old, has := c.refs[before]
	if invitation {
		after, old.terms = readable(after), readable(old.terms)
	}
	if !has || before == now || !overlap(old.terms, after) {
		p.rows(bodyIndent, rowsOf(after))
		return
	}
	rows, same := differences(old.terms, after)
	p.rows(bodyIndent, rows)
	switch {
	case len(rows) == 0:
		p.put(bodyIndent+2, bodyIndent+2, hushed("the same terms as "+c.refer(before).text))
	case same > 0:
		p.put(bodyIndent+2, bodyIndent+2, hushed(count(same, "other term", "other terms")+" as in "+c.refer(before).text))
	}
}

// overlap reports whether two offers have a term in common.
func overlap(a, b []leaf) bool {
	paths := map[string]bool{}
	for _, l := range a {
		paths[l.path] = true
	}
	return slices.ContainsFunc(b, func(l leaf) bool { return paths[l.path] })
}

// readable formats an invitation's terms for people: milliseconds as durations, and
// no participants, because the heading lists them.
func readable(terms []leaf) []leaf {
	var shown []leaf
	for _, l := range terms {
		switch l.path {
		case "participants":
			continue
		case "maxDuration", "invitationTimeoutMs":
			if ms, err := strconv.ParseInt(string(l.json), 10, 64); err == nil {
				l.json = jsontext.Value(strconv.Quote(milliseconds(ms)))
			}
		}
		shown = append(shown, l)
	}
	return shown
}
