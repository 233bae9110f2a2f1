package inbox

import (
	"net/http"
	"strconv"

	"github.com/parley-asp/parley/inbox/amount"
)

// locale is how the reader's browser writes numbers.
func locale(r *http.Request) amount.Locale { return amount.Of(r.Header.Get("Accept-Language")) }

// understand answers how an amount in a field is understood. What a field says is signed only as this
// answers it.
func (i *Inbox) understand(w http.ResponseWriter, r *http.Request, _ *person) {
	q := r.URL.Query()
	decimal := func(name string) amount.Decimal {
		d, _ := amount.Parse(q.Get(name))
		return d
	}
	i.json(w, http.StatusOK, locale(r).Read(amount.Asked{
		Typed: q.Get("typed"), Exact: decimal("exact"), Currency: q.Get("currency"), Money: q.Get("money") != "", Label: oneLine(q.Get("label")), Rule: q.Get("rule"),
		Stake: decimal("stake"), StakeCurrency: q.Get("stakeCurrency"), Min: decimal("min"), Max: decimal("max"), Step: decimal("step"),
	}))
}

// plainly is a number with all its digits, for a field.
func plainly(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }
