package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/render"
)

const (
	exampleEscalation = "019478a3"
	asAlice           = " --as human://acme.com/alice --key alice.nk"
)

func inboxCommand() *cobra.Command {
	return connects(group(&cobra.Command{
		Use: "inbox", Short: "decide what agents escalate to humans",
		Long: `The escalation inbox: decisions that exceed an agent's authority. Every participant
of a session may look. A human of the escalating organisation who may decide
decides with --as human://… and --key. The same inbox is on the broker's HTTP
address at /inbox, for a browser.`,
	}, inboxLs(), inboxShow(), inboxWatch(),
		inboxClaim(), inboxRelease(), inboxAssign(), inboxComment(), inboxTransfer(),
		rule("approve", "approve what the agent asks for", performatives.Approved),
		rule("modify", "approve it within other bounds", performatives.Modified),
		rule("deny", "deny what the agent asks for", performatives.Denied),
		inboxGuide(), inboxHistory()))
}

func inboxLs() *cobra.Command {
	var filter api.ListEscalations
	var l listing
	var follow bool
	cmd := &cobra.Command{
		Use: "ls", Short: "list escalations, by default the one due first at the top", Args: args(cobra.NoArgs),
		Example: "  parley inbox ls" + asAlice + `
  parley inbox ls --urgency critical --claimed nobody \
   ` + asAlice,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if follow {
				return watch(cmd, filter)
			}
			return with(cmd, func(ctx context.Context, c connection) error {
				list, err := queue(ctx, c, filter, l)
				if err != nil {
					return err
				}
				defer more(cmd, list.Next)
				return show(cmd, list, func(s render.Style) string { return render.Escalations(list, s) })
			})
		},
	}
	cmd.Flags().StringVar(&filter.Status, "status", "open", "only this `STATUS`: open, resolved or all")
	queueFlags(cmd, &filter)
	cmd.Flags().StringVar(&filter.Outcome, "outcome", "", "of those that have ended, only with this `OUTCOME`: approved, modified, denied, guidance, expired or closed")
	cmd.Flags().StringVar((*string)(&filter.DecidedBy), "decided-by", "", "of those that have ended, only decided or approved by this `HUMAN`")
	cmd.Flags().StringVar(&filter.DecidedFrom, "decided-from", "", "of those that have ended, only from this `TIME` on, such as 2026-03-02T00:00:00Z")
	cmd.Flags().StringVar(&filter.DecidedUntil, "decided-until", "", "of those that have ended, only before this `TIME`")
	cmd.Flags().StringVar((*string)(&filter.Counterparty), "with", "", "only with somebody of this `ORGANISATION`")
	cmd.Flags().StringVar(&filter.Sort, "sort", api.SortDue, "`ORDER`: due, newest or amount (the largest of each currency first)")
	l.flags(cmd)
	cmd.Flags().BoolVar(&follow, "watch", false, "keep running and print changes, as 'parley inbox watch' does")
	return cmd
}

// queueFlags filter the queue.
func queueFlags(cmd *cobra.Command, filter *api.ListEscalations) {
	cmd.Flags().StringVar(&filter.Urgency, "urgency", "", "only this `URGENCY`: low, medium, high or critical")
	cmd.Flags().StringVar(&filter.Search, "search", "", "only escalations with these `WORDS` in their subject, parties or reason")
	cmd.Flags().StringVar(&filter.Claimed, "claimed", "", "only escalations claimed by `WHOM`: me, nobody or others")
}

// queue returns the escalations that the filter selects, and the counts of all.
func queue(ctx context.Context, c connection, filter api.ListEscalations, l listing) (list api.Escalations, err error) {
	list.Escalations, list.Next, err = pages(ctx, l, func(ctx context.Context, limit int, cursor string) ([]api.EscalationItem, string, error) {
		filter.Limit, filter.Cursor = limit, cursor
		page, err := c.EscalationPage(ctx, filter)
		list.Counts, list.Now = page.Counts, page.Now
		return page.Escalations, page.Next, err
	})
	return list, err
}

func inboxHistory() *cobra.Command {
	return &cobra.Command{
		Use: "history ID", Short: "show who viewed, claimed, commented and decided, and when", Args: args(cobra.ExactArgs(1)),
		Example:           "  parley inbox history " + exampleEscalation + " --json",
		ValidArgsFunction: completeFirst(completeEscalations),
		RunE: func(cmd *cobra.Command, args []string) error {
			return with(cmd, func(ctx context.Context, c connection) error {
				id, err := c.escalationID(ctx, args[0])
				if err != nil {
					return err
				}
				history, err := c.EscalationHistory(ctx, id)
				if err != nil {
					return err
				}
				return show(cmd, history, func(s render.Style) string { return render.History(history, s) })
			})
		},
	}
}

func inboxClaim() *cobra.Command {
	var lease time.Duration
	var takeOver bool
	cmd := action("claim ID", "claim an escalation while you work on it", cobra.ExactArgs(1),
		"  parley inbox claim "+exampleEscalation+" --for 30m \\\n   "+asAlice,
		func(ctx context.Context, c connection, args []string) (api.EscalationItem, error) {
			if lease < 0 || lease > 8*time.Hour {
				return api.EscalationItem{}, usage(errors.New("--for is between 1ms and 8h"))
			}
			if takeOver {
				return c.TakeOverEscalation(ctx, args[0], lease)
			}
			return c.ClaimEscalation(ctx, args[0], lease)
		})
	cmd.Flags().BoolVar(&takeOver, "take-over", false, "end the claim of a colleague, who is notified")
	cmd.Flags().DurationVar(&lease, "for", 0, "how long the claim lasts (default: 10m)")
	return cmd
}

func inboxRelease() *cobra.Command {
	return action("release ID", "release an escalation that you claimed", cobra.ExactArgs(1),
		"  parley inbox release "+exampleEscalation+asAlice,
		func(ctx context.Context, c connection, args []string) (api.EscalationItem, error) {
			return c.ReleaseEscalation(ctx, args[0])
		})
}

func inboxAssign() *cobra.Command {
	return action("assign ID [HUMAN]", "assign an escalation to a human, or to nobody", cobra.RangeArgs(1, 2),
		"  parley inbox assign "+exampleEscalation+" human://acme.com/anna \\\n   "+asAlice,
		func(ctx context.Context, c connection, args []string) (api.EscalationItem, error) {
			var to performatives.Agent
			if len(args) == 2 {
				to = performatives.Agent(args[1])
			}
			return c.AssignEscalation(ctx, args[0], to)
		})
}

func inboxComment() *cobra.Command {
	return action("comment ID TEXT", "write a note that only colleagues read", cobra.ExactArgs(2),
		"  parley inbox comment "+exampleEscalation+` "we have a better offer" \`+"\n   "+asAlice,
		func(ctx context.Context, c connection, args []string) (api.EscalationItem, error) {
			return c.CommentEscalation(ctx, args[0], args[1])
		})
}

func inboxTransfer() *cobra.Command {
	var to, level, reason string
	cmd := action("transfer ID", "hand an escalation to a colleague or to a later level", cobra.ExactArgs(1),
		"  parley inbox transfer "+exampleEscalation+` --level board --reason "above me" \`+"\n   "+asAlice,
		func(ctx context.Context, c connection, args []string) (api.EscalationItem, error) {
			if (to == "") == (level == "") {
				return api.EscalationItem{}, usage(errors.New("set either --to or --level"))
			}
			return c.TransferEscalation(ctx, api.TransferEscalation{Escalation: args[0], To: performatives.Agent(to), Level: level, Reason: reason})
		})
	cmd.Flags().StringVar(&to, "to", "", "transfer to the colleague with this `URI`, human://…")
	cmd.Flags().StringVar(&level, "level", "", "transfer to this `LEVEL` of the chain, by name or number")
	cmd.Flags().StringVar(&reason, "reason", "", "`TEXT` for colleagues that says why")
	return cmd
}

// action is a command that changes an escalation without deciding it, and shows
// the result.
func action(use, short string, takes cobra.PositionalArgs, example string, do func(context.Context, connection, []string) (api.EscalationItem, error)) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Args: args(takes), Example: example, ValidArgsFunction: completeFirst(completeEscalations),
		RunE: func(cmd *cobra.Command, args []string) error {
			return with(cmd, func(ctx context.Context, c connection) error {
				id, err := c.escalationID(ctx, args[0])
				if err != nil {
					return err
				}
				item, err := do(ctx, c, append([]string{id}, args[1:]...))
				if err != nil {
					return err
				}
				return show(cmd, item, func(s render.Style) string { return render.Item(item, s) })
			})
		},
	}
}

// escalation returns the escalation whose id begins with a prefix.
func (c connection) escalation(ctx context.Context, prefix string) (api.EscalationItem, error) {
	id, err := c.escalationID(ctx, prefix)
	if err != nil {
		return api.EscalationItem{}, err
	}
	return c.Escalation(ctx, id)
}
