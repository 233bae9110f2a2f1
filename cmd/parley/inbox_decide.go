package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/render"
	"github.com/parley-asp/parley/session"
)

// bounds are what an agent may agree to after a ruling.
type bounds struct {
	maxAmount                      float64
	currency, termPath, validUntil string
}

// rule is approve, modify or deny.
func rule(name, short, decision string) *cobra.Command {
	var comment string
	var b bounds
	var shown showing
	cmd := &cobra.Command{
		Use: name + " ID", Short: short, Args: args(cobra.ExactArgs(1)),
		Example: "  parley inbox " + name + " 019478a3-7b2c-7def-8a12-3456789abcde --as human://acme.com/alice --key alice.nk",
	}
	cmd.Flags().StringVar(&comment, "comment", "", "why, for the agents of both sides")
	if decision != performatives.Denied {
		cmd.Example += ` \
    --max-amount 15000 --currency USD --term-path terms.pricePerMonth --comment "for this month"`
		cmd.Flags().Float64Var(&b.maxAmount, "max-amount", 0, "the highest amount that the agent may agree to; the broker holds it to that")
		cmd.Flags().StringVar(&b.currency, "currency", "", "of --max-amount, such as EUR")
		cmd.Flags().StringVar(&b.termPath, "term-path", "", "where the amount stands in an offer, such as terms.pricePerMonth (default: the usual places)")
		cmd.Flags().StringVar(&b.validUntil, "valid-until", "", "until when, such as 2026-12-31T00:00:00Z")
	}
	shown.flags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		authority, err := b.authority(cmd)
		if err != nil {
			return err
		}
		if decision == performatives.Modified && authority == nil {
			return usage(errors.New("modify sets other bounds: say which, such as --max-amount 12000 --currency USD"))
		}
		return decide(cmd, args[0], client.Ruling{Decision: decision, Comment: comment, Authority: authority}, shown)
	}
	return cmd
}

func inboxReply() *cobra.Command {
	var shown showing
	cmd := &cobra.Command{
		Use: "reply ID TEXT", Short: "give guidance: the agent decides in the light of it", Args: args(cobra.ExactArgs(2)),
		Example: `  parley inbox reply 019478a3-7b2c-7def-8a12-3456789abcde "ask for 30 days" --as human://acme.com/alice --key alice.nk`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return decide(cmd, args[0], client.Ruling{Decision: performatives.Guidance, Comment: args[1]}, shown)
		},
	}
	shown.flags(cmd)
	return cmd
}

// A showing is what the human has seen, where that was another command's doing.
type showing struct{ revision int64 }

func (s *showing) flags(cmd *cobra.Command) {
	cmd.Flags().Int64Var(&s.revision, "revision", -1, "decide only on what `parley inbox show` called this revision (default: on what is there now)")
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
	if a.Empty() {
		return nil, nil
	}
	return &a, nil
}

// decide sends a ruling on what is there now, signed by the human that --as
// names: if that changes in between, it is refused.
func decide(cmd *cobra.Command, escalation string, ruling client.Ruling, shown showing) error {
	if !performatives.Agent(text(cmd, "as")).IsHuman() {
		return usage(errors.New("a human decides: name who you are with --as human://…, and your --key"))
	}
	return with(cmd, func(ctx context.Context, c connection) error {
		item, err := c.Escalation(ctx, escalation)
		if err != nil {
			return err
		}
		if shown.revision >= 0 && uint64(shown.revision) != item.Revision {
			return changed(item, shown.revision)
		}
		if item.Status == "open" && item.ViewHash != "" {
			ruling.On = &item
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
			if receipt.State == session.Escalated {
				return fmt.Sprintf("%s%s; others have to approve it, too\n", ruling.Decision, again)
			}
			return fmt.Sprintf("%s%s; the session is %s\n", ruling.Decision, again, receipt.State)
		})
	})
}

func changed(item api.EscalationItem, revision int64) error {
	return session.Refuse(session.ChainConflict, "the escalation is at revision %d, not %d as it was shown to you: look at it again", item.Revision, revision)
}
