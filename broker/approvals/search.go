package approvals

import (
	"strings"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/escalation"
)

// A search looks for words, in any order and case: in what an approval is about, between whom, why, and
// in its ids. All participants of the session may read that, but for what is sealed: nobody finds more than
// they may see.
const (
	maxSearch     = 200
	maxSearchable = 4 << 10 // of one approval
)

// searchWords are the words that an approval has to contain.
func searchWords(text string) []string {
	words := strings.Fields(strings.ToLower(text))
	for n, word := range words {
		if strings.Trim(word, "0123456789,.") == "" { // 15,000 as people read it
			words[n] = strings.ReplaceAll(word, ",", "")
		}
	}
	return words
}

// searchable is the text in which an approval is searched.
func searchable(item *api.EscalationItem) string {
	var b strings.Builder
	add := func(text string) {
		if left := maxSearchable - b.Len(); len(text) > left {
			text = strings.ToValidUTF8(text[:max(0, left)], "")
		}
		b.WriteString(text)
		b.WriteByte('\n') // or a word would begin in one and end in the next
	}
	add(string(item.ID))
	add(string(item.Session))
	add(string(item.By))
	add(string(item.OnBehalfOf))
	for _, other := range item.Counterparties {
		add(string(other))
	}
	add(item.Reason)
	if item.Proposal != nil {
		add(item.Proposal.Proposal)
		add(item.Proposal.Subject)
	}
	add(item.Purpose)
	if item.Amount != nil {
		add(escalation.Money(item.Amount.Value, item.Amount.Currency))
	}
	add(string(item.Context))
	add(item.SuggestedAction)
	return strings.ToLower(b.String())
}

func (k *approval) contains(words []string, opens api.Opens) bool {
	text := k.open
	if opens(k.Organisation) {
		text = k.text
	}
	for _, word := range words {
		if !strings.Contains(text, word) {
			return false
		}
	}
	return true
}
