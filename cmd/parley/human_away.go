package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/render"
)

func humanAway() *cobra.Command {
	var to, from, until string
	cmd := &cobra.Command{
		Use: "away URI", Short: "say who stands in for a human", Args: args(cobra.ExactArgs(1)),
		Long: `Until the end, new escalations that ask the human, and those that are handed to them,
are assigned to the stand-in, who is notified. The stand-in is a colleague who may
decide, and gains no right by it: what asks only the human stays with them. An operator
sets it for anybody, and a human for themselves, with --as.`,
		Example:           "  parley human away human://acme.com/alice \\\n    --to human://acme.com/bob --until 168h",
		ValidArgsFunction: completeFirst(completeAgents(performatives.KindHuman)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if to == "" || until == "" {
				return usage(errors.New("--to says who stands in, and --until how long"))
			}
			begins, err := timeOf("from", from)
			ends, late := timeOf("until", until)
			if err = errors.Join(err, late); err != nil {
				return usage(err)
			}
			return setAway(cmd, performatives.Agent(args[0]), performatives.Agent(to), begins, ends)
		},
	}
	cmd.Flags().StringVar(&to, "to", "", "the stand-in's `URI`, human://…")
	cmd.Flags().StringVar(&from, "from", "", "`TIME` such as 2026-12-24T08:00:00Z, or after a time such as 48h (default: now)")
	cmd.Flags().StringVar(&until, "until", "", "`TIME` such as 2027-01-07T08:00:00Z, or after a time such as 168h")
	return cmd
}

func humanBack() *cobra.Command {
	return &cobra.Command{
		Use: "back URI", Short: "end an absence", Args: args(cobra.ExactArgs(1)),
		Example:           "  parley human back human://acme.com/alice",
		ValidArgsFunction: completeFirst(completeAgents(performatives.KindHuman)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return setAway(cmd, performatives.Agent(args[0]), "", time.Time{}, time.Time{})
		},
	}
}

// setAway says who stands in; without a stand-in the human is back.
func setAway(cmd *cobra.Command, human, to performatives.Agent, from, until time.Time) error {
	return with(cmd, func(ctx context.Context, c connection) error {
		var card api.Card
		var err error
		switch {
		case c.operator != nil && to == "":
			card, err = c.operator.Back(ctx, human)
		case c.operator != nil:
			card, err = c.operator.Away(ctx, human, to, from, until)
		case human != c.principal.Agent():
			err = usage(errors.New("a human says this only of themselves: omit --as to say it as the operator"))
		case to == "":
			card, err = c.principal.Back(ctx)
		default:
			card, err = c.principal.Away(ctx, to, from, until)
		}
		if err != nil {
			return err
		}
		return show(cmd, card, func(s render.Style) string { return render.Card(card, s) })
	})
}

// timeOf reads a time, or a duration from now. "" is the zero time.
func timeOf(flag, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if after, err := time.ParseDuration(text); err == nil {
		return time.Now().Add(after), nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return at, fmt.Errorf("--%s %s: want a time such as 2026-12-24T08:00:00Z, or a duration such as 48h", flag, text)
	}
	return at, nil
}
