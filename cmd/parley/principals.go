package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/render"
)

// The ls, show and rm commands of agent, for every kind of principal, and those of
// human, for humans only.

func example(kind string) string {
	if kind == performatives.KindHuman {
		return "human://acme.com/alice"
	}
	return "agent://acme.com/procurement/alpha"
}

func principalLs(kind string) *cobra.Command {
	filter := api.ListAgents{Kind: kind}
	var l listing
	cmd := &cobra.Command{
		Use: "ls", Short: "list principals", Args: args(cobra.NoArgs),
		Example: "  parley " + cmp.Or(kind, "agent") + " ls --organisation acme.com",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return with(cmd, func(ctx context.Context, c connection) error {
				list, next, err := pages(ctx, l, func(ctx context.Context, limit int, cursor string) ([]api.Card, string, error) {
					filter.Limit, filter.Cursor = limit, cursor
					page, err := c.AgentPage(ctx, filter)
					return page.Agents, page.Next, err
				})
				if err != nil {
					return err
				}
				defer more(cmd, next)
				return show(cmd, api.Agents{Agents: list, Next: next}, func(s render.Style) string { return render.Agents(list, s) })
			})
		},
	}
	cmd.Flags().StringVar(&filter.Organization, "organisation", "", "only principals of this `DOMAIN`, such as acme.com")
	if kind == "" {
		cmd.Flags().StringVar(&filter.Capability, "capability", "", "only agents with this `CAPABILITY`")
		cmd.Flags().StringVar(&filter.Kind, "kind", "", "only this `KIND`: system, personal or human")
	} else {
		cmd.Short = "list humans"
	}
	l.flags(cmd)
	return cmd
}

func principalShow(kind string) *cobra.Command {
	return &cobra.Command{
		Use: "show URI", Short: "show a principal's card", Args: args(cobra.ExactArgs(1)),
		Example:           "  parley " + cmp.Or(kind, "agent") + " show " + example(kind),
		ValidArgsFunction: completeFirst(completeAgents(kind)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkKind(kind, args[0]); err != nil {
				return err
			}
			return with(cmd, func(ctx context.Context, c connection) error {
				card, err := c.Card(ctx, performatives.Agent(args[0]))
				if err != nil {
					return err
				}
				return show(cmd, card, func(s render.Style) string { return render.Card(card, s) })
			})
		},
	}
}

func principalRm(kind string) *cobra.Command {
	return &cobra.Command{
		Use: "rm URI", Short: "remove a principal, who can then no longer log in", Args: args(cobra.ExactArgs(1)),
		Long:              "Removes a principal. Transcripts keep its pinned keys and still verify.",
		Example:           "  parley " + cmp.Or(kind, "agent") + " rm " + example(kind),
		ValidArgsFunction: completeFirst(completeAgents(kind)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if text(cmd, "as") != "" {
				return usage(errors.New("only the operator can remove: omit --as"))
			}
			if err := checkKind(kind, args[0]); err != nil {
				return err
			}
			return with(cmd, func(ctx context.Context, c connection) error {
				card, err := c.operator.RemoveAgent(ctx, performatives.Agent(args[0]))
				if err != nil {
					return err
				}
				return show(cmd, card, func(render.Style) string { return "removed " + args[0] + "\n" })
			})
		},
	}
}

// checkKind refuses an agent as the argument of a human command.
func checkKind(kind, uri string) error {
	if kind == performatives.KindHuman && !performatives.Agent(uri).IsHuman() {
		return usage(fmt.Errorf("%s is not a human://… URI", uri))
	}
	return nil
}
