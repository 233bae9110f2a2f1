package main

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-asp/parley/performatives"
)

func humanCommand() *cobra.Command {
	return connects(group(&cobra.Command{
		Use: "human", Short: "register, list and remove humans",
		Long: "Humans decide what agents escalate to them.",
	}, humanAdd(), principalLs(performatives.KindHuman), principalShow(performatives.KindHuman),
		humanAway(), humanBack(), humanEnrol(), humanUnenrol(), principalRm(performatives.KindHuman)))
}

func humanAdd() *cobra.Command {
	r := &registration{}
	var limits ceilings
	cmd := &cobra.Command{
		Use: "add URI", Short: "register a human and generate the keys",
		Example: `  parley human add human://acme.com/alice --may-decide --key-out alice.nk
  parley human add human://acme.com/anna --may-decide --limit 15000 USD
  parley human add human://acme.com/bob --public-key UDXU… --login-key UAQK…`,
		Args: func(cmd *cobra.Command, words []string) error {
			return args(cobra.ExactArgs(1))(cmd, limits.take(words))
		},
		RunE: func(cmd *cobra.Command, words []string) (err error) {
			if r.card.Registry.Limits, err = limits.all(); err != nil {
				return err
			}
			return r.add(cmd, limits.take(words)[0], true)
		},
	}
	r.flags(cmd)
	cmd.Flags().BoolVar(&r.card.Registry.MayDecide, "may-decide", false, "may decide the escalations of the organisation")
	cmd.Flags().Var(&limits, "limit", "decides on no more than this `AMOUNT CURRENCY`, such as 15000 USD; can be repeated for other currencies")
	cmd.Flags().BoolVar(&r.card.Registry.Auditor, "auditor", false, "may read the sessions of the organisation, and nothing else")
	return cmd
}

// ceilings are the values of --limit. A currency after a space arrives among the
// arguments, in the order of the amounts that lack one.
type ceilings struct {
	amounts    []string
	currencies []string
}

var (
	ceiling  = regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)?) ?([A-Z]{3})?$`)
	currency = regexp.MustCompile(`^[A-Z]{3}$`)
)

func (c *ceilings) Set(text string) error {
	for _, one := range strings.Split(text, ",") { // PARLEY_LIMIT may hold several
		if !ceiling.MatchString(strings.TrimSpace(one)) {
			return errors.New("want an amount and a currency, such as 15000 USD")
		}
		c.amounts = append(c.amounts, strings.TrimSpace(one))
	}
	return nil
}

func (c *ceilings) String() string { return strings.Join(c.amounts, ",") }
func (c *ceilings) Type() string   { return "AMOUNT CURRENCY" }

// take keeps the currencies among the arguments and returns the other arguments.
func (c *ceilings) take(words []string) (others []string) {
	c.currencies = nil
	for _, word := range words {
		if currency.MatchString(word) {
			c.currencies = append(c.currencies, word)
		} else {
			others = append(others, word)
		}
	}
	return others
}

func (c *ceilings) all() (limits []performatives.Limit, err error) {
	left := c.currencies
	for _, text := range c.amounts {
		parts := ceiling.FindStringSubmatch(text)
		in := parts[2]
		if in == "" {
			if len(left) == 0 {
				return nil, usage(fmt.Errorf("--limit %s has no currency, such as %[1]s USD", text))
			}
			in, left = left[0], left[1:]
		}
		amount, err := strconv.ParseFloat(parts[1], 64)
		if err != nil {
			return nil, usage(fmt.Errorf("--limit %s: %w", text, err))
		}
		limits = append(limits, performatives.Limit{Currency: in, MaxAmount: amount})
	}
	if len(left) > 0 {
		return nil, usage(fmt.Errorf("%s is not the currency of any --limit", left[0]))
	}
	return limits, nil
}
