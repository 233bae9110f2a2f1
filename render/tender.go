package render

import (
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/performatives"
)

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
	rows := make([][]span, 0, len(bids))
	for _, b := range bids {
		mark := said(fmt.Sprint(b.Number))
		if b.Best {
			mark = span{mark.text + " best", good}
		}
		row := []span{mark, said(string(b.Agent)), said(b.Standing), hushed(fmt.Sprint(b.Offers))}
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
