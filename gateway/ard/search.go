package ardgateway

import (
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api"
)

// A query is the body of a search.
type query struct {
	Query struct {
		Text   *string                   `json:"text"`
		Filter map[string]jsontext.Value `json:"filter,omitzero"`
	} `json:"query"`
	Federation string `json:"federation,omitzero"`
	PageSize   *int   `json:"pageSize,omitzero"`
	PageToken  string `json:"pageToken,omitzero"`
}

// search finds the agents whose cards have most of the words.
func (g *Gateway) search(w http.ResponseWriter, r *http.Request) {
	data, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	var q query
	switch {
	case len(data) > maxBody:
		fail(w, http.StatusRequestEntityTooLarge, invalidArgument, "the body has at most 64 KiB")
		return
	case err != nil || json.Unmarshal(data, &q, json.RejectUnknownMembers(true)) != nil:
		fail(w, http.StatusBadRequest, invalidArgument, `the body is {"query": {"text": …, "filter": {…}}, "federation": …, "pageSize": …, "pageToken": …}`)
		return
	case q.Query.Text == nil:
		fail(w, http.StatusBadRequest, invalidArgument, "query.text is required")
		return
	case len(q.Query.Filter) > maxFilter:
		fail(w, http.StatusBadRequest, invalidArgument, "filter has at most 8 fields")
		return
	case !slices.Contains([]string{"", "auto", "referrals", "none"}, q.Federation):
		fail(w, http.StatusBadRequest, invalidArgument, "federation is auto, referrals or none")
		return
	}
	size := defaultResults
	if q.PageSize != nil {
		size = *q.PageSize
	}
	from, ok := start(w, size, q.PageToken)
	if !ok {
		return
	}
	select {
	case g.searching <- struct{}{}:
	case <-r.Context().Done():
		return // the client went away
	}
	found, unknown := g.find(q)
	<-g.searching
	if unknown != "" {
		fail(w, http.StatusBadRequest, invalidArgument, "filter takes "+strings.Join(filterable, ", ")+", each with a text or texts; not "+unknown)
		return
	}
	found = found[min(from, len(found)):]
	results := []result{}
	for _, m := range found[:min(size, len(found))] {
		results = append(results, result{g.entry(m.card, g.base(r)), m.score, g.base(r)})
	}
	reply := map[string]any{"results": results}
	if len(found) > size {
		reply["pageToken"] = strconv.Itoa(from + size)
	}
	if q.Federation == "referrals" {
		reply["referrals"] = []any{}
	}
	write(w, http.StatusOK, "application/json", reply)
}

// A result is an entry that a search found.
type result struct {
	entry
	Score  int    `json:"score"` // 0 to 100: how many of the words the card has
	Source string `json:"source"`
}

// A match is a card that a search found.
type match struct {
	card  api.Card
	score int
}

func (g *Gateway) find(q query) (found []match, unknown string) {
	words := wordsOf(*q.Query.Text)
	for field, wanted := range q.Query.Filter {
		if _, known := (entry{}).has(field, wanted); !known {
			return nil, strconv.Quote(field)
		}
	}
	for card := range g.o.Agents("") {
		score := relevance(card, words)
		if score > 0 && g.fits(card, q.Query.Filter) {
			found = append(found, match{card, score})
		}
	}
	slices.SortStableFunc(found, func(a, b match) int { return b.score - a.score })
	return found, ""
}

// wordsOf returns the first different words of a text.
func wordsOf(text string) (words []string) {
	for word := range strings.FieldsSeq(strings.ToLower(text)) {
		if len(words) < maxWords && !slices.Contains(words, word) {
			words = append(words, word)
		}
	}
	return words
}

func (g *Gateway) fits(card api.Card, filter map[string]jsontext.Value) bool {
	if len(filter) == 0 {
		return true
	}
	e := g.entry(card, "")
	for field, wanted := range filter {
		if ok, _ := e.has(field, wanted); !ok {
			return false
		}
	}
	return true
}

// relevance is the percentage of the words that the card has.
func relevance(card api.Card, words []string) int {
	if len(words) == 0 {
		return 100
	}
	text := card.SearchText()
	has := 0
	for _, word := range words {
		if strings.Contains(text, word) {
			has++
		}
	}
	return 100 * has / len(words)
}
