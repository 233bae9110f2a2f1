package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
)

// bounds limit what an agent may agree to after a ruling.
type bounds struct {
	maxAmount                      float64
	currency, termPath, validUntil string
	most, least, equal             []string
	exactly, unbounded, thread     bool
}

func (b *bounds) flags(cmd *cobra.Command, decision string) {
	cmd.Flags().Float64Var(&b.maxAmount, "max-amount", 0, "the highest `AMOUNT` that the agent may agree to, enforced by the broker")
	cmd.Flags().StringVar(&b.currency, "currency", "", "`CURRENCY` of --max-amount, such as EUR")
	cmd.Flags().StringVar(&b.termPath, "term-path", "", "`PATH` of the amount in an offer, such as terms.pricePerMonth (default: the paths that the escalation rules list)")
	cmd.Flags().StringVar(&b.validUntil, "valid-until", "", "`TIME` until which the bounds apply, such as 2026-12-31T00:00:00Z")
	cmd.Flags().StringArrayVar(&b.most, "max", nil, "`PATH=VALUE` that a term may reach, such as 'terms.price=12000 USD'; can be repeated")
	cmd.Flags().StringArrayVar(&b.least, "min", nil, "`PATH=VALUE` that a term may not go below, such as terms.seats=250")
	cmd.Flags().StringArrayVar(&b.equal, "equals", nil, "`PATH=VALUE` that a term must have, as JSON or text, such as terms.region=eu")
	cmd.Flags().BoolVar(&b.thread, "thread", false, "bind the agent in the thread of the offer at stake only; elsewhere what was ruled before holds")
	if decision == performatives.Approved {
		cmd.Flags().BoolVar(&b.exactly, "exactly", false, "allow exactly the terms at stake, also where other bounds are set; the default without any")
		cmd.Flags().BoolVar(&b.unbounded, "unbounded", false, "set no bound: the agent may agree to anything")
	}
}

// authority returns the bounds, or nil without any.
func (b *bounds) authority(cmd *cobra.Command) (*performatives.RulingsAuthority, error) {
	a := performatives.RulingsAuthority{Currency: strings.ToUpper(b.currency), TermPath: b.termPath}
	if cmd.Flags().Changed("max-amount") {
		a.MaxAmount = &b.maxAmount
	}
	for _, kind := range []struct {
		flag  string
		given []string
	}{{"max", b.most}, {"min", b.least}, {"equals", b.equal}} {
		for _, text := range kind.given {
			bound, err := parseBound(kind.flag, text)
			if err != nil {
				return nil, usage(err)
			}
			a.Bounds = append(a.Bounds, bound)
		}
	}
	if b.validUntil != "" {
		until, err := time.Parse(time.RFC3339, b.validUntil)
		if err != nil {
			return nil, usage(fmt.Errorf("--valid-until %s: want a time such as 2026-12-31T00:00:00Z", b.validUntil))
		}
		if !until.After(time.Now()) {
			return nil, usage(fmt.Errorf("--valid-until %s is in the past: the agent could agree to nothing", b.validUntil))
		}
		a.ValidUntil = &until
	}
	if b.unbounded && (b.exactly || a.MaxAmount != nil || len(a.Bounds) > 0) {
		return nil, usage(errors.New("--unbounded sets no bound: leave it out, or the bounds and --exactly"))
	}
	if a.Empty() {
		return nil, nil
	}
	return &a, nil
}

// parseBound reads PATH=VALUE, the value of a maximum or minimum with a currency.
func parseBound(flag, text string) (b performatives.RulingsBound, err error) {
	path, value, ok := strings.Cut(text, "=")
	if path = strings.TrimSpace(path); !ok || path == "" {
		return b, fmt.Errorf("--%s %s: want PATH=VALUE, such as terms.price=12000", flag, text)
	}
	b.TermPath = path
	if flag == "equals" {
		if b.Equals = jsontext.Value(strings.TrimSpace(value)); !b.Equals.IsValid() {
			b.Equals, err = json.Marshal(value)
		}
		return b, err
	}
	number, currency, _ := strings.Cut(strings.TrimSpace(value), " ")
	n, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return b, fmt.Errorf("--%s %s: %q is not a number", flag, text, number)
	}
	if b.Currency = strings.ToUpper(strings.TrimSpace(currency)); flag == "max" {
		b.Max = &n
	} else {
		b.Min = &n
	}
	return b, nil
}

// otherCurrency returns the bounds that are in another currency than the amount at stake, as texts: they allow no such amount.
func otherCurrency(a *performatives.RulingsAuthority, item api.EscalationItem) (all []string) {
	if a == nil || item.Amount == nil || item.Amount.Code() == "" {
		return nil
	}
	asked, at := item.Amount.Code(), inTerms(item.Amount.Path)
	other := func(path, currency, says string) {
		if currency != "" && currency != asked && inTerms(path) == at {
			all = append(all, fmt.Sprintf("%s, where %s %s is asked for: the agent could agree to no amount in %s", says, plain(item.Amount.Value), asked, asked))
		}
	}
	if a.MaxAmount != nil {
		other(cmp.Or(a.TermPath, at), a.Currency, plain(*a.MaxAmount)+" "+a.Currency)
	}
	for _, b := range a.Bounds {
		other(b.TermPath, b.Currency, b.String())
	}
	return all
}

// inTerms is the path of a term as offers have it.
func inTerms(path string) string { return "terms." + strings.TrimPrefix(path, "terms.") }

// beyond returns what an authority allows beyond what was asked for, and where it does not allow that, as texts.
func beyond(a *performatives.RulingsAuthority, item api.EscalationItem) (more, less []string) {
	if a == nil {
		return nil, nil
	}
	compare := func(says string, above, below bool, asked float64) {
		text := fmt.Sprintf("%s, where %s is asked for", says, plain(asked))
		switch {
		case above:
			more = append(more, text)
		case below:
			less = append(less, text)
		}
	}
	if item.Amount != nil && a.MaxAmount != nil {
		compare(plain(*a.MaxAmount), *a.MaxAmount > item.Amount.Value, *a.MaxAmount < item.Amount.Value, item.Amount.Value)
	}
	for _, b := range a.Bounds {
		path := inTerms(b.TermPath)
		i := slices.IndexFunc(item.Changes, func(c api.Change) bool { return c.After != nil && c.Path == path })
		if i < 0 {
			// A path into a list, or of an object, is none of those that changed, and may be right.
			partly := func(c api.Change) bool {
				return strings.HasPrefix(path, c.Path+".") || strings.HasPrefix(c.Path, path+".")
			}
			if len(item.Changes) > 0 && item.Omitted["changes"] == 0 && !slices.ContainsFunc(item.Changes, partly) {
				less = append(less, b.TermPath+", which the terms at stake do not have")
			}
			continue
		}
		if is := item.Changes[i].After; b.Equals != nil && !bytes.Equal(is, b.Equals) {
			less = append(less, fmt.Sprintf("%s, where it is %s", b.String(), is))
		}
		var asked float64
		if after := item.Changes[i].After; after.Kind() == '0' && json.Unmarshal(after, &asked) == nil {
			compare(b.String(), b.Max != nil && *b.Max > asked || b.Min != nil && *b.Min < asked, b.Max != nil && *b.Max < asked || b.Min != nil && *b.Min > asked, asked)
		}
	}
	return more, less
}

func plain(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }
