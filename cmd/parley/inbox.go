package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/render"
	"github.com/parley-asp/parley/wire"
)

func inboxCommand() *cobra.Command {
	return connects(group(&cobra.Command{
		Use: "inbox", Short: "what waits for a human's decision",
		Long: `The escalation inbox: what agents may not decide by themselves. Anybody with a
part in a session may look; a human of the escalating organisation who may decide,
rules: --as human://… with --key, the human's own.`,
	}, inboxLs(), inboxShow(),
		rule("approve", "let the agent go ahead", performatives.Approved),
		rule("deny", "refuse what the agent asks for", performatives.Denied),
		inboxReply()))
}

func inboxLs() *cobra.Command {
	var filter wire.ListEscalations
	cmd := &cobra.Command{
		Use: "ls", Short: "list escalations, the one due first at the top", Args: args(cobra.NoArgs),
		Example: "  parley inbox ls --as human://acme.com/alice --key alice.nk",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return with(cmd, func(ctx context.Context, c connection) error {
				list, err := all(c.Escalations(ctx, filter))
				if err != nil {
					return err
				}
				return show(cmd, wire.Escalations{Escalations: list}, func(s render.Style) string { return render.Escalations(list, s) })
			})
		},
	}
	cmd.Flags().StringVar(&filter.Status, "status", "open", "open, resolved or all")
	return cmd
}

func inboxShow() *cobra.Command {
	cmd := &cobra.Command{
		Use: "show ID", Short: "show an escalation and the conversation behind it", Args: args(cobra.ExactArgs(1)),
		Example: "  parley inbox show 019478a3-7b2c-7def-8a12-3456789abcde",
		RunE: func(cmd *cobra.Command, args []string) error {
			return with(cmd, func(ctx context.Context, c connection) error {
				item, err := c.Escalation(ctx, args[0])
				if err != nil {
					return err
				}
				entries, err := read(item.Transcript)
				if err != nil {
					return err
				}
				return show(cmd, item, func(s render.Style) string {
					var out strings.Builder
					chat := render.NewChat(s)
					for _, e := range entries {
						out.WriteString(chat.Add(e))
					}
					return out.String() + "\n" + render.Item(item, s)
				})
			})
		},
	}
	cmd.Flags().Bool("full", false, "leave nothing out: every line of long messages, every id")
	return cmd
}

// bounds are what an agent may agree to after a ruling.
type bounds struct {
	maxAmount                      float64
	currency, termPath, validUntil string
}

// rule is approve or deny.
func rule(name, short, decision string) *cobra.Command {
	var comment string
	var b bounds
	cmd := &cobra.Command{
		Use: name + " ID", Short: short, Args: args(cobra.ExactArgs(1)),
		Example: "  parley inbox " + name + " 019478a3-7b2c-7def-8a12-3456789abcde --as human://acme.com/alice --key alice.nk",
	}
	cmd.Flags().StringVar(&comment, "comment", "", "why, for the agents")
	if decision == performatives.Approved {
		cmd.Example += ` \
    --max-amount 15000 --currency USD --term-path terms.pricePerMonth --comment "for this month"`
		cmd.Flags().Float64Var(&b.maxAmount, "max-amount", 0, "the highest amount that the agent may agree to")
		cmd.Flags().StringVar(&b.currency, "currency", "", "of --max-amount, such as EUR")
		cmd.Flags().StringVar(&b.termPath, "term-path", "", "where the amount stands in an offer, such as terms.pricePerMonth")
		cmd.Flags().StringVar(&b.validUntil, "valid-until", "", "until when, such as 2026-12-31T00:00:00Z")
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		authority, err := b.authority(cmd)
		if err != nil {
			return err
		}
		return decide(cmd, args[0], client.Ruling{Decision: decision, Comment: comment, Authority: authority})
	}
	return cmd
}

func inboxReply() *cobra.Command {
	return &cobra.Command{
		Use: "reply ID TEXT", Short: "give guidance: the agent decides in the light of it", Args: args(cobra.ExactArgs(2)),
		Example: `  parley inbox reply 019478a3-7b2c-7def-8a12-3456789abcde "ask for 30 days" --as human://acme.com/alice --key alice.nk`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return decide(cmd, args[0], client.Ruling{Decision: performatives.Guidance, Comment: args[1]})
		},
	}
}

// authority is nil where no bound was given.
func (b bounds) authority(cmd *cobra.Command) (*performatives.RulingsAuthority, error) {
	a := performatives.RulingsAuthority{Currency: b.currency, TermPath: b.termPath}
	if cmd.Flags().Changed("max-amount") {
		a.MaxAmount = &b.maxAmount
	}
	if b.validUntil != "" {
		until, err := time.Parse(time.RFC3339, b.validUntil)
		if err != nil {
			return nil, usage(fmt.Errorf("--valid-until %s: want a time such as 2026-12-31T00:00:00Z", b.validUntil))
		}
		a.ValidUntil = &until
	}
	if a == (performatives.RulingsAuthority{}) {
		return nil, nil
	}
	return &a, nil
}

// decide sends a ruling, signed by the human that --as names.
func decide(cmd *cobra.Command, escalation string, ruling client.Ruling) error {
	if !performatives.Agent(text(cmd, "as")).IsHuman() {
		return usage(errors.New("a human decides: name who you are with --as human://…, and your --key"))
	}
	return with(cmd, func(ctx context.Context, c connection) error {
		item, err := c.Escalation(ctx, escalation)
		if err != nil {
			return err
		}
		receipt, err := c.principal.Session(item.Session).Rule(ctx, escalation, ruling)
		if err != nil {
			return err
		}
		return show(cmd, receipt.Acceptance, func(render.Style) string {
			again := ""
			if receipt.Duplicate {
				again = " (as before)"
			}
			return fmt.Sprintf("%s%s; the session is %s\n", ruling.Decision, again, receipt.State)
		})
	})
}
