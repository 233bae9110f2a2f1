package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/render"
)

func humanEnrol() *cobra.Command {
	return &cobra.Command{
		Use: "enrol URI", Short: "make a code to enrol a human's browser", Args: args(cobra.ExactArgs(1)),
		Long: `Prints a code that the human types at /inbox on the broker's HTTP address. The
browser then generates a key that never leaves it, and signs decisions with it.
The code works once, within 15 minutes. The human is notified by mail, if serve
--notify has an address, and in every enrolled browser. 'parley human show' lists
the devices.`,
		Example:           "  parley human enrol human://acme.com/alice",
		ValidArgsFunction: completeFirst(completeAgents(performatives.KindHuman)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return asOperator(cmd, func(ctx context.Context, c connection) error {
				code, err := c.operator.Enrol(ctx, performatives.Agent(args[0]))
				if err != nil {
					return err
				}
				return show(cmd, code, func(s render.Style) string { return render.Enrolment(code, s) })
			})
		},
	}
}

func humanUnenrol() *cobra.Command {
	return &cobra.Command{
		Use: "unenrol URI KEY", Short: "revoke a browser's key", Args: args(cobra.ExactArgs(2)),
		Long:              "What the key signs is refused at once. An operator revokes any key, and a human their\nown, with --as.",
		Example:           "  parley human unenrol human://acme.com/alice UDXU…",
		ValidArgsFunction: completeFirst(completeAgents(performatives.KindHuman)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return with(cmd, func(ctx context.Context, c connection) error {
				human, key := performatives.Agent(args[0]), performatives.Key(args[1])
				var card api.Card
				var err error
				switch {
				case c.operator != nil:
					card, err = c.operator.Unenrol(ctx, human, key)
				case human != c.principal.Agent():
					err = usage(errors.New("a human revokes only their own keys: omit --as to revoke them as the operator"))
				default:
					card, err = c.principal.Unenrol(ctx, key)
				}
				if err != nil {
					return err
				}
				return show(cmd, card, func(s render.Style) string { return render.Card(card, s) })
			})
		},
	}
}

// asOperator connects as the operator and calls do.
func asOperator(cmd *cobra.Command, do func(context.Context, connection) error) error {
	return with(cmd, func(ctx context.Context, c connection) error {
		if c.operator == nil {
			return usage(errors.New("only an operator can do this: omit --as"))
		}
		return do(ctx, c)
	})
}
