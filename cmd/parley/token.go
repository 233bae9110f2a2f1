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

func tokenCommand() *cobra.Command {
	return connects(group(&cobra.Command{
		Use: "token", Short: "make, list and remove tokens",
		Long: "A token lets a program act for one principal over protocols other than NATS, such\nas HTTP. The operator makes and removes tokens.",
	}, tokenAdd(), tokenLs(), tokenRm()))
}

func tokenAdd() *cobra.Command {
	var q api.AddToken
	var expires time.Duration
	cmd := &cobra.Command{
		Use: "add URI", Short: "make a token and print it once", Args: args(cobra.ExactArgs(1)),
		Long: `Makes a token for a principal and prints it. The broker keeps only a hash of it, so
it cannot be shown again. A principal that is not hosted can read with its token, and
sends acts that it has signed itself.`,
		Example: `  parley token add agent://acme.com/alpha --name cron --expires 720h
  parley token add agent://acme.com/alpha --read-only`,
		ValidArgsFunction: completeFirst(completeAgents("")),
		RunE: func(cmd *cobra.Command, args []string) error {
			if expires < 0 || cmd.Flags().Changed("expires") && expires < time.Millisecond {
				return usage(errors.New("--expires is a duration such as 720h"))
			}
			q.Agent, q.Lifetime = performatives.Agent(args[0]), expires.Milliseconds()
			return asOperator(cmd, func(ctx context.Context, c connection) error {
				t, err := c.operator.AddToken(ctx, q)
				if err != nil {
					return err
				}
				if !asked(cmd, "json") {
					note(cmd, "Keep it secret. It is not shown again.")
				}
				return show(cmd, t, func(render.Style) string { return t.Token + "\n" })
			})
		},
	}
	cmd.Flags().StringVar(&q.Name, "name", "", "`NAME` of what uses the token")
	cmd.Flags().DurationVar(&expires, "expires", 0, "how long the token is valid (default: until it is removed)")
	cmd.Flags().StringVar(&q.Sender, "macp-sender", "", "`NAME` of the principal in MACP (default: as its card says, or its URI)")
	cmd.Flags().BoolVar(&q.ReadOnly, "read-only", false, "the token can read and cannot act")
	return cmd
}

func tokenLs() *cobra.Command {
	var l listing
	cmd := &cobra.Command{
		Use: "ls [URI]", Short: "list tokens, without their secrets", Args: args(cobra.MaximumNArgs(1)),
		Example:           "  parley token ls agent://acme.com/alpha",
		ValidArgsFunction: completeFirst(completeAgents("")),
		RunE: func(cmd *cobra.Command, args []string) error {
			var q api.ListTokens
			if len(args) > 0 {
				q.Agent = performatives.Agent(args[0])
			}
			return asOperator(cmd, func(ctx context.Context, c connection) error {
				list, next, err := pages(ctx, l, func(ctx context.Context, limit int, cursor string) ([]api.Token, string, error) {
					q.Limit, q.Cursor = limit, cursor
					page, err := c.operator.TokenPage(ctx, q)
					return page.Tokens, page.Next, err
				})
				if err != nil {
					return err
				}
				defer more(cmd, next)
				return show(cmd, api.Tokens{Tokens: list, Next: next}, func(s render.Style) string { return render.Tokens(list, s) })
			})
		},
	}
	l.flags(cmd)
	return cmd
}

func tokenRm() *cobra.Command {
	return &cobra.Command{
		Use: "rm ID", Short: "remove a token, whose requests and streams end at once", Args: args(cobra.ExactArgs(1)),
		Example: "  parley token rm mzxw6ytboi4dqmrt",
		RunE: func(cmd *cobra.Command, args []string) error {
			return asOperator(cmd, func(ctx context.Context, c connection) error {
				t, err := c.operator.RemoveToken(ctx, args[0])
				if err != nil {
					return err
				}
				return show(cmd, t, func(render.Style) string { return fmt.Sprintf("removed %s of %s\n", t.ID, t.Agent) })
			})
		},
	}
}
