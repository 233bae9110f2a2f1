package demo

import (
	"fmt"
	"math"
	"strings"

	"github.com/go-json-experiment/json"
)

// drawn is how many columns the values of a term are drawn in.
const drawn = 48

// draw draws a term of all offers from its least to its greatest value, one line an offer, so
// that one sees them converge. ● is an offer of the inviter's, ○ of the other side's.
func (p *printer) draw(sc *scene, all played) {
	type offer struct {
		from, mark string
		value      float64
		accepted   bool
	}
	var offers []offer
	least, most := math.Inf(1), math.Inf(-1)
	for _, o := range all.view.Proposals {
		var terms map[string]any
		if json.Unmarshal(o.Terms, &terms) != nil {
			continue
		}
		value, isNumber := terms[sc.drawn].(float64)
		if !isNumber {
			continue
		}
		made := offer{from: string(o.From), mark: "○", value: value, accepted: o.Status == "accepted"}
		for i, r := range sc.roles {
			if r.agent == o.From {
				made.from = r.name
				if i == 0 {
					made.mark = "●"
				}
			}
		}
		offers, least, most = append(offers, made), min(least, value), max(most, value)
	}
	if sc.drawn == "" || p.quiet || len(offers) < 2 {
		return
	}
	p.print(fmt.Sprintf("    %-12s %8s %s\n", sc.drawn, "", p.ink(faint, fmt.Sprintf("%-*g%*g", drawn/2, least, drawn/2, most))))
	for _, o := range offers {
		at := 0
		if most > least {
			at = int(math.Round((drawn - 1) * (o.value - least) / (most - least)))
		}
		line := p.ink(faint, strings.Repeat("·", at)) + o.mark + p.ink(faint, strings.Repeat("·", drawn-1-at))
		end := ""
		if o.accepted {
			end = p.ink(green, " agreed")
		}
		p.print(fmt.Sprintf("    %-12s %8g %s%s\n", o.from, o.value, line, end))
	}
	p.print("\n")
}
