package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/api/render"
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
	}
	asks(cmd, api.TokenAdd, &q, first(&q.Agent), func(t api.Token, _ render.Style) string {
		note(cmd, "Keep it secret. It is not shown again.")
		return t.Token + "\n"
	})
	cmd.Flags().StringVar(&q.Name, "name", "", "`NAME` of what uses the token")
	cmd.Flags().DurationVar(&expires, "expires", 0, "how long the token is valid (default: until it is removed)")
	cmd.Flags().StringVar(&q.Sender, "macp-sender", "", "`NAME` of the principal in MACP (default: as its card says, or its URI)")
	cmd.Flags().BoolVar(&q.ReadOnly, "read-only", false, "the token can read and cannot act")
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		if expires < 0 || cmd.Flags().Changed("expires") && expires < time.Millisecond {
			return usage(errors.New("--expires is a duration such as 720h"))
		}
		q.Lifetime = expires.Milliseconds()
		return nil
	}
	return cmd
}

func tokenLs() *cobra.Command {
	var q api.ListTokens
	return lists(&cobra.Command{
		Use: "ls [URI]", Short: "list tokens, without their secrets", Args: args(cobra.MaximumNArgs(1)),
		Example:           "  parley token ls agent://acme.com/alpha",
		ValidArgsFunction: completeFirst(completeAgents("")),
	}, api.TokenList, &q, first(&q.Agent), func(p api.Tokens, s render.Style) string { return render.Tokens(p.Tokens, s) })
}

func tokenRm() *cobra.Command {
	var q api.TokenRef
	return asks(&cobra.Command{
		Use: "rm ID", Short: "remove a token, whose requests and streams end at once", Args: args(cobra.ExactArgs(1)),
		Example: "  parley token rm mzxw6ytboi4dqmrt",
	}, api.TokenRemove, &q, first(&q.ID), func(t api.Token, _ render.Style) string { return fmt.Sprintf("removed %s of %s\n", t.ID, t.Agent) })
}
