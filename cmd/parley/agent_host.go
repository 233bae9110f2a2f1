package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/render"
)

func agentHost() *cobra.Command {
	return custodyCommand("host", "have the broker hold a signing key for an agent",
		`The broker makes a signing key for the agent and keeps it sealed, so the agent can
act over HTTP with a token. The agent's own key still works. Transcripts say which
entries the broker signed (custody: hosted).`,
		func(ctx context.Context, c connection, a performatives.Agent) (api.Card, error) {
			return c.operator.Host(ctx, a)
		})
}

func agentUnhost() *cobra.Command {
	return custodyCommand("unhost", "destroy the signing key that the broker holds",
		"The agent signs for itself from now on. It needs a key of its own.",
		func(ctx context.Context, c connection, a performatives.Agent) (api.Card, error) {
			return c.operator.Unhost(ctx, a)
		})
}

func custodyCommand(name, short, long string, change func(context.Context, connection, performatives.Agent) (api.Card, error)) *cobra.Command {
	return &cobra.Command{
		Use: name + " URI", Short: short, Long: long, Args: args(cobra.ExactArgs(1)),
		Example:           "  parley agent " + name + " agent://acme.com/procurement/alpha",
		ValidArgsFunction: completeFirst(completeAgents("")),
		RunE: func(cmd *cobra.Command, args []string) error {
			return asOperator(cmd, func(ctx context.Context, c connection) error {
				card, err := change(ctx, c, performatives.Agent(args[0]))
				if err != nil {
					return err
				}
				return show(cmd, card, func(s render.Style) string { return render.Card(card, s) })
			})
		},
	}
}

func agentVerifyDomain() *cobra.Command {
	var by string
	cmd := &cobra.Command{
		Use: "verify-domain URI", Short: "have the domain of an agent's URI vouch for its key", Args: args(cobra.ExactArgs(1)),
		Long: `Binds the agent's key to the domain of its URI; its card then says domainVerified.
The operator vouches for it, or, with --by, the domain does: by a DNS TXT record
of _parley.DOMAIN that is parley-key=KEY, or by a file at
https://DOMAIN/.well-known/asp/keys.json that is {"keys": ["KEY"]}. With --as the
agent verifies its own domain. A new key has to be verified again.`,
		Example: `  parley agent verify-domain agent://acme.com/alpha --by dns`,
		RunE: func(cmd *cobra.Command, args []string) error {
			agent, err := performatives.ParseAgent(args[0])
			if err != nil {
				return usage(err)
			}
			return with(cmd, func(ctx context.Context, c connection) error {
				card, err := c.VerifyDomain(ctx, agent, by)
				if err != nil {
					return err
				}
				return show(cmd, card, func(s render.Style) string { return render.Card(card, s) })
			})
		},
	}
	cmd.Flags().StringVar(&by, "by", api.ByOperator, "`WHO` vouches: operator, dns or file")
	return connects(cmd)
}
