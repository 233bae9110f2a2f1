package inbox

import (
	"strings"
	"testing"
)

// TestRank finds words at the beginning of others first, then within them, then with a slip of one letter.
func TestRank(t *testing.T) {
	t.Parallel()
	const text = "crossing of the skagerrak · sales/beta · other.example"
	for query, want := range map[string]int{
		"": 1, "skag": 4, "gerrak": 3, "cross beta": 7,
		"skagerak": 2, "skagerrrak": 2, "skagerrsk": 2, "skgaerrak": 2, "crosing": 2, "skaxerr": 2,
		"skagrk": 0, "betx": 2, "bet4": 2, "bxt": 0, "nothing": 0, "cross nothing": 0, "skagerrakxx": 0,
	} {
		if got := rank(strings.Fields(query), text); got != want {
			t.Errorf("%q ranks %d, want %d", query, got, want)
		}
	}
}

// TestFindings are bounded, each is there once, and all are numbered in their order.
func TestFindings(t *testing.T) {
	t.Parallel()
	f := &findings{Query: "deal"}
	many := make([]foundRow, 0, 40)
	for n := range 20 {
		row := foundRow{Title: "deal", Link: strings.Repeat("x", n)}
		many = append(many, row, row)
	}
	f.add("Deals", many)
	f.add("Nothing", []foundRow{{Title: "other"}})
	f.add("Pages", places)
	if len(f.Groups) != 2 || len(f.Groups[0].Rows) != mostFound || f.Groups[0].Rows[1].Link == f.Groups[0].Rows[0].Link {
		t.Errorf("found are %+v", f.Groups)
	}
	last := f.Groups[1].Rows
	if n := last[len(last)-1].Number; n != f.Total || n != mostFound+len(last) {
		t.Errorf("the last of %d has the number %d", f.Total, n)
	}
}
