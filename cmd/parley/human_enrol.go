package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/render"
)

func humanEnrol() *cobra.Command {
	return &cobra.Command{
		Use: "enrol URI", Short: "make a code that enrols a human's browser", Args: args(cobra.ExactArgs(1)),
		Long: `Prints a code for the human to type at /inbox of the broker's HTTP address. The
browser then makes a key that never leaves it, and that key signs what the human
decides there. The code is good once, for 15 minutes. The human is told of it by mail,
if ` + "`parley serve --notify`" + ` has an address, and in the browsers that they have already.
` + "`parley agent show`" + ` lists a human's devices.`,
		Example: "  parley human enrol human://acme.com/alice",
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
		Use: "unenrol URI KEY", Short: "take a browser's key away, at once", Args: args(cobra.ExactArgs(2)),
		Example: "  parley human unenrol human://acme.com/alice UDXU…",
		RunE: func(cmd *cobra.Command, args []string) error {
			return asOperator(cmd, func(ctx context.Context, c connection) error {
				card, err := c.operator.Unenrol(ctx, performatives.Agent(args[0]), performatives.Key(args[1]))
				if err != nil {
					return err
				}
				return show(cmd, card, func(s render.Style) string { return render.Card(card, s) })
			})
		},
	}
}

// asOperator does what only an operator may.
func asOperator(cmd *cobra.Command, do func(context.Context, connection) error) error {
	return with(cmd, func(ctx context.Context, c connection) error {
		if c.operator == nil {
			return usage(errors.New("an operator does this: leave --as out"))
		}
		return do(ctx, c)
	})
}
