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

// bounds limit what an agent may agree to after a ruling.
type bounds struct {
	maxAmount                      float64
	currency, termPath, validUntil string
}

// rule makes the approve, modify and deny commands.
func rule(name, short, decision string) *cobra.Command {
	var comment string
	var b bounds
	var seen reviewed
	cmd := &cobra.Command{
		Use: name + " ID", Short: short, Args: args(cobra.ExactArgs(1)),
		Example:           "  parley inbox " + name + " " + exampleEscalation + asAlice,
		ValidArgsFunction: completeFirst(completeEscalations),
	}
	cmd.Flags().StringVar(&comment, "comment", "", "`TEXT` for the agents of both sides that says why")
	if decision != performatives.Denied {
		cmd.Example += ` \
    --max-amount 15000 --currency USD --comment "for this month"`
		cmd.Flags().Float64Var(&b.maxAmount, "max-amount", 0, "the highest `AMOUNT` that the agent may agree to, enforced by the broker")
		cmd.Flags().StringVar(&b.currency, "currency", "", "`CURRENCY` of --max-amount, such as EUR")
		cmd.Flags().StringVar(&b.termPath, "term-path", "", "`PATH` of the amount in an offer, such as terms.pricePerMonth (default: the paths that the escalation rules list)")
		cmd.Flags().StringVar(&b.validUntil, "valid-until", "", "`TIME` until which the bounds apply, such as 2026-12-31T00:00:00Z")
	}
	seen.flags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		authority, err := b.authority(cmd)
		if err != nil {
			return err
		}
		if decision == performatives.Modified && authority == nil {
			return usage(errors.New("modify needs bounds, such as --max-amount 12000 --currency USD"))
		}
		return decide(cmd, args[0], client.Ruling{Decision: decision, Comment: comment, Authority: authority}, seen)
	}
	return cmd
}

func inboxGuide() *cobra.Command {
	var seen reviewed
	cmd := &cobra.Command{
		Use: "guide ID TEXT", Aliases: []string{"reply"}, Short: "give guidance and let the agent decide", Args: args(cobra.ExactArgs(2)),
		Example:           "  parley inbox guide " + exampleEscalation + ` "ask for 30 days" \` + "\n   " + asAlice,
		ValidArgsFunction: completeFirst(completeEscalations),
		RunE: func(cmd *cobra.Command, args []string) error {
			return decide(cmd, args[0], client.Ruling{Decision: performatives.Guidance, Comment: args[1]}, seen)
		},
	}
	seen.flags(cmd)
	return cmd
}

// reviewed is the revision that the human has reviewed with another command.
type reviewed struct{ revision int64 }

func (s *reviewed) flags(cmd *cobra.Command) {
	cmd.Flags().Int64Var(&s.revision, "revision", -1, "decide only if the escalation is still at this `REVISION`, which 'parley inbox show' prints; -1 is any")
}

// authority returns the bounds, or nil without any.
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

// decide sends a ruling signed by the human of --as. The broker refuses it if the
// escalation has changed since it was read.
func decide(cmd *cobra.Command, escalation string, ruling client.Ruling, seen reviewed) error {
	if !performatives.Agent(text(cmd, "as")).IsHuman() {
		return usage(errors.New("only a human can decide: set --as human://… and --key"))
	}
	return with(cmd, func(ctx context.Context, c connection) error {
		item, err := c.escalation(ctx, escalation)
		if err != nil {
			return err
		}
		if seen.revision >= 0 && uint64(seen.revision) != item.Revision {
			return changed(item, seen.revision)
		}
		if item.Status == "open" && item.ViewHash != "" {
			ruling.On = &item
		}
		receipt, err := c.principal.Session(item.Session).Rule(ctx, string(item.ID), ruling)
		if err != nil {
			return err
		}
		return show(cmd, receipt.Acceptance, func(render.Style) string {
			repeated := ""
			if receipt.Duplicate {
				repeated = " (already recorded)"
			}
			if receipt.State == session.Escalated {
				return fmt.Sprintf("%s%s; more approvals are needed\n", ruling.Decision, repeated)
			}
			return fmt.Sprintf("%s%s; the session is %s\n", ruling.Decision, repeated, receipt.State)
		})
	})
}

func changed(item api.EscalationItem, revision int64) error {
	return session.Refuse(session.ChainConflict, "the escalation is at revision %d, not %d: review it again", item.Revision, revision)
}
