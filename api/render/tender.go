package render

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/discovery"
	"github.com/parley-asp/parley/performatives"
)

// Proposals lists the candidates for a task, best first, with the subscores and the reasons.
func Proposals(p api.Proposals, s Style) string {
	var rows [][]Span
	for i, c := range p.Candidates {
		score := fmt.Sprintf("%.4f", c.Score)
		if !c.Accepted {
			score = "-"
		}
		rows = append(rows, []Span{
			said(fmt.Sprint(i + 1)), said(cmp.Or(string(c.Agent), c.URL)), said(score), said(string(c.Source)), hushed(subscores(c)), hushed(why(c)),
		})
	}
	text := table(s, "nobody could do it", []column{
		{"", fixed}, {"AGENT", fixed}, {"SCORE", fixed}, {"BY", optional}, {"SKILL IO SPEED LOAD COST", optional}, {"WHY", flexibleOptional},
	}, rows)
	text += fmt.Sprintf("%d asked, %d answered themselves\n", p.Asked, p.Answered)
	for _, warning := range p.Warnings {
		text += "warning: " + Clean(warning) + "\n"
	}
	return text
}

func subscores(c discovery.Candidate) string {
	s := c.Subscores
	if s == nil {
		return ""
	}
	return fmt.Sprintf("%.2f %.2f %.2f %.2f %.2f", s.SkillMatch, s.IOCompatibility, s.Performance, s.Load, s.Cost)
}

// why is the reason of a refusal, or of the best match, and what the ranking went by.
func why(c discovery.Candidate) string {
	if c.Rejection != "" {
		return string(c.Rejection)
	}
	var reasons []string
	if len(c.Matches) > 0 {
		reasons = []string{c.Matches[0].Name + ": " + strings.Join(c.Matches[0].Reasons, "; ")}
	}
	if c.Why != "" {
		reasons = append(reasons, c.Why)
	}
	return strings.Join(reasons, "; ")
}

// A Bid is one row of a tender.
type Bid struct {
	Number   int
	Agent    performatives.Agent
	Standing string
	Offers   int
	Terms    jsontext.Value // of its offer; nil for none
	Best     bool
}

// maxTerms bounds how many terms of offers are compared.
const maxTerms = 12

// Bids shows the offers of a tender beside each other, a column for each term.
func Bids(bids []Bid, s Style) string {
	columns := []column{{"", fixed}, {"AGENT", fixed}, {"STANDING", fixed}, {"OFFERS", optional}}
	var paths []string
	for _, b := range bids {
		for _, l := range flatten(b.Terms) {
			if !slices.Contains(paths, l.path) && len(paths) < maxTerms {
				paths = append(paths, l.path)
				columns = append(columns, column{l.path, flexibleOptional})
			}
		}
	}
	rows := make([][]Span, 0, len(bids))
	for _, b := range bids {
		mark := said(fmt.Sprint(b.Number))
		if b.Best {
			mark = Span{mark.Text + " best", good}
		}
		row := []Span{mark, said(string(b.Agent)), said(b.Standing), hushed(fmt.Sprint(b.Offers))}
		leaves := flatten(b.Terms)
		for _, path := range paths {
			cell := ""
			for _, l := range leaves {
				if l.path == path {
					cell = Value(l.json)
				}
			}
			row = append(row, said(cell))
		}
		rows = append(rows, row)
	}
	return table(s, "no agent was invited", columns, rows)
}
