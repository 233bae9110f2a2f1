package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/api/render"
	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// rule makes the approve, modify and deny commands.
func rule(name, short, decision string) *cobra.Command {
	var comment string
	var open, sealComment bool
	var reason int
	var b bounds
	var seen reviewed
	cmd := &cobra.Command{
		Use: name + " ID", Short: short, Args: args(cobra.ExactArgs(1)),
		Example:           "  parley inbox " + name + " " + exampleEscalation + asAlice,
		ValidArgsFunction: completeFirst(completeEscalations),
	}
	cmd.Flags().StringVar(&comment, "comment", "", "`TEXT` for the agents of both sides that says why")
	cmd.Flags().BoolVar(&sealComment, "seal-comment", false, "only your own organisation reads the comment")
	if decision != performatives.Denied {
		cmd.Example += ` \
    --max-amount 15000 --currency USD --comment "for this month"`
		if decision == performatives.Approved {
			cmd.Long = `Approves exactly the terms at stake, which 'parley inbox show' prints: these and no
others. With bounds, the agent may agree to whatever is within them, and the answer
names the terms that may change. Where no offer is at stake, an approval
sets no bound, and lifts those of earlier approvals.`
		}
		b.flags(cmd, decision)
		cmd.Flags().BoolVar(&open, "open-rulings", false, "the other sides may read what you allow, too; otherwise it is sealed")
	} else {
		cmd.Flags().IntVar(&reason, "reason", 0, "the `NUMBER` of a reason that your rules offer, in place of --comment")
	}
	seen.flags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if cmd.Flags().Changed("reason") && comment != "" {
			return usage(errors.New("give the reason once: either --reason N, or --comment in your own words"))
		}
		authority, err := b.authority(cmd)
		if err != nil {
			return err
		}
		if decision == performatives.Modified && authority == nil {
			return usage(errors.New("modify needs bounds, such as --max 'terms.price=12000 USD'"))
		}
		ruling := client.Ruling{
			Decision: decision, Comment: comment, Authority: authority, Unbounded: b.unbounded, OpenAuthority: open, SealComment: sealComment,
		}
		return decide(cmd, args[0], ruling, seen, func(r *client.Ruling, item api.EscalationItem) error {
			if decision == performatives.Denied {
				return giveReason(r, item, reason)
			}
			switch {
			case !item.AsShown():
				if b.exactly && item.TermsHash == "" {
					return usage(errors.New("no proposal is at stake, whose terms could be approved exactly: leave out --exactly"))
				}
			case b.unbounded:
				return usage(errors.New("without bounds, exactly what is at stake is approved here: set bounds that allow more, in place of --unbounded"))
			case b.exactly && !r.Authority.Boundless():
				return usage(errors.New("what is at stake is approved here as it is, or within bounds: leave out --exactly, or the bounds"))
			}
			if b.exactly || b.thread {
				r.Authority = cmp.Or(r.Authority, new(performatives.RulingsAuthority))
			}
			if b.exactly {
				r.Authority.TermsHash = item.TermsHash
			}
			if b.thread {
				r.Authority.Scope = performatives.ThreadScope
			}
			for _, text := range otherCurrency(r.Authority, item) {
				note(cmd, "warning: this allows nothing of what is asked for: "+text)
			}
			more, less := beyond(r.Authority, item)
			for _, text := range more {
				note(cmd, "warning: this allows more: "+text)
			}
			if decision == performatives.Approved && !b.exactly {
				for _, text := range less {
					note(cmd, "warning: the offer at stake is not allowed: "+text)
				}
			}
			return nil
		})
	}
	return cmd
}

// giveReason completes a denial with a reason that the rules offer, by its number.
func giveReason(r *client.Ruling, item api.EscalationItem, number int) error {
	var reasons []string
	var required bool
	if item.Route != nil {
		reasons, required = item.Route.Reasons, item.Route.ReasonToDeny
	}
	if number > 0 && number <= len(reasons) {
		r.Comment = reasons[number-1]
	}
	if number == 0 && !required || strings.TrimSpace(r.Comment) != "" {
		return nil
	}
	var offers strings.Builder
	for n, reason := range reasons {
		fmt.Fprintf(&offers, "; --reason %d: %s", n+1, render.Clean(reason))
	}
	if number != 0 {
		return usage(fmt.Errorf("your rules offer no reason %d: use --comment%s", number, offers.String()))
	}
	return usage(fmt.Errorf("your rules want a reason to deny: use --comment%s", offers.String()))
}

func inboxGuide() *cobra.Command {
	var open bool
	var seen reviewed
	cmd := &cobra.Command{
		Use: "guide ID TEXT", Aliases: []string{"reply"}, Short: "give guidance and let the agent decide", Args: args(cobra.ExactArgs(2)),
		Example:           "  parley inbox guide " + exampleEscalation + ` "ask for 30 days" \` + "\n   " + asAlice,
		ValidArgsFunction: completeFirst(completeEscalations),
		RunE: func(cmd *cobra.Command, args []string) error {
			if strings.TrimSpace(args[1]) == "" {
				return usage(errors.New("the guidance is empty: say what the agent is to do"))
			}
			return decide(cmd, args[0], client.Ruling{Decision: performatives.Guidance, Comment: args[1], SealComment: !open}, seen, nil)
		},
	}
	cmd.Flags().BoolVar(&open, "open-rulings", false, "the other sides may read the guidance, too; otherwise it is sealed")
	seen.flags(cmd)
	return cmd
}

// reviewed is the revision that the human has reviewed with another command.
type reviewed struct{ revision int64 }

func (s *reviewed) flags(cmd *cobra.Command) {
	cmd.Flags().Int64Var(&s.revision, "revision", -1, "decide only if the escalation is still at this `REVISION`, which 'parley inbox show' prints; -1 is any")
}

// decide sends a ruling signed by the human of --as, completed from the item. The
// broker refuses it if the escalation has changed since it was read.
func decide(cmd *cobra.Command, id string, ruling client.Ruling, seen reviewed, complete func(*client.Ruling, api.EscalationItem) error) error {
	if !performatives.Agent(text(cmd, "as")).IsHuman() {
		return usage(errors.New("only a human can decide: set --as human://… and --key"))
	}
	return with(cmd, func(ctx context.Context, c connection) error {
		item, err := c.escalation(ctx, id)
		if err != nil {
			return err
		}
		if item.Dispute != "" {
			return usage(fmt.Errorf("this is about a dispute, which is answered: parley dispute reply %s %s concede, deny or offer", item.Session, render.Clean(item.Dispute)))
		}
		if seen.revision >= 0 && uint64(seen.revision) != item.Revision {
			return changed(item, seen.revision)
		}
		if item.Status == "open" && item.ViewHash != "" {
			ruling.On = &item
		}
		if complete != nil {
			if err := complete(&ruling, item); err != nil {
				return err
			}
		}
		receipt, err := c.principal.Session(item.Session).Rule(ctx, string(item.ID), ruling)
		if err != nil {
			return err
		}
		return show(cmd, receipt.Acceptance, func(render.Style) string { return ruled(ctx, c.principal.Agent(), ruling, item, receipt, c.escalation) })
	})
}

// A look reads an escalation again.
type look func(ctx context.Context, id string) (api.EscalationItem, error)

// ruled says what a ruling that is recorded has done, and what all approvals so far allow together.
func ruled(ctx context.Context, by performatives.Agent, ruling client.Ruling, item api.EscalationItem, receipt client.Receipt, again look) string {
	repeated, outcome, allowed := "", "the session is "+receipt.State.String(), ""
	if receipt.Duplicate {
		repeated = " (already recorded)"
	}
	if receipt.State == session.Escalated {
		outcome = pending(ctx, item, again)
	}
	if approved := ruling.Decision == performatives.Approved; (approved || ruling.Decision == performatives.Modified) && !item.Confirms() {
		if approved && !ruling.Unbounded {
			ruling.Authority = item.Exactly(ruling.Authority)
		}
		item.Votes = votes(ctx, item, api.VoteView{By: by, Decision: ruling.Decision, Authority: ruling.Authority}, again)
		inForce, _ := item.InForce()
		allowed = "allowed: " + render.Allows(inForce, render.StakeOf(&item)) + "\n"
	}
	return fmt.Sprintf("%s%s; %s\n%s", ruling.Decision, repeated, outcome, allowed)
}

// votes are those with a new one. What the broker has recorded counts: it limits what a human with a ceiling allows.
func votes(ctx context.Context, item api.EscalationItem, own api.VoteView, again look) []api.VoteView {
	now, err := again(ctx, string(item.ID))
	if err == nil && slices.ContainsFunc(now.Votes, func(v api.VoteView) bool { return v.By == own.By }) {
		return now.Votes
	}
	return append(slices.Clip(item.Votes), own)
}

// pending says who has yet to decide on an escalation that a ruling has not ended. The ruling
// counts, also if nobody answers this.
func pending(ctx context.Context, item api.EscalationItem, again look) string {
	const more = "more approvals are needed"
	if item.Reason != performatives.Confirmation {
		return more
	}
	now, err := again(ctx, string(item.ID))
	switch {
	case err != nil:
		return "others have yet to confirm the agreement"
	case now.Status == "open":
		return more
	}
	return "your organisation has confirmed the agreement, the other one has not yet"
}

func changed(item api.EscalationItem, revision int64) error {
	return session.Refuse(session.ChainConflict, "the escalation is at revision %d, not %d: review it again", item.Revision, revision)
}
