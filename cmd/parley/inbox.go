package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/api/render"
	"github.com/parley-asp/parley/performatives"
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
		inboxClaim(), inboxRelease(), inboxAssign(), inboxComment(), inboxTransfer(), inboxUnseal(),
		rule("approve", "approve what the agent asks for", performatives.Approved),
		rule("modify", "approve it within other bounds", performatives.Modified),
		rule("deny", "deny what the agent asks for", performatives.Denied),
		inboxGuide(), inboxHistory()))
}

func inboxLs() *cobra.Command {
	var q api.ListEscalations
	var follow bool
	cmd := lists(&cobra.Command{
		Use: "ls", Short: "list escalations, by default the one due first at the top", Args: args(cobra.NoArgs),
		Example: "  parley inbox ls" + asAlice + `
  parley inbox ls --urgency critical --claimed nobody \
   ` + asAlice,
	}, api.EscalationList, &q, nil, render.Escalations)
	cmd.Flags().StringVar(&q.Status, "status", "open", "only this `STATUS`: open, resolved or all")
	queueFlags(cmd, &q)
	cmd.Flags().StringVar(&q.Outcome, "outcome", "", "of those that have ended, only with this `OUTCOME`: approved, modified, denied, guidance, expired or closed")
	cmd.Flags().StringVar((*string)(&q.DecidedBy), "decided-by", "", "of those that have ended, only decided or approved by this `HUMAN`")
	cmd.Flags().StringVar(&q.DecidedFrom, "decided-from", "", "of those that have ended, only from this `TIME` on, such as 2026-03-02T00:00:00Z")
	cmd.Flags().StringVar(&q.DecidedUntil, "decided-until", "", "of those that have ended, only before this `TIME`")
	cmd.Flags().StringVar((*string)(&q.Counterparty), "with", "", "only with somebody of this `ORGANISATION`")
	cmd.Flags().StringVar(&q.Sort, "sort", api.SortDue, "`ORDER`: due, newest or amount (the largest of each currency first)")
	cmd.Flags().BoolVar(&follow, "watch", false, "keep running and print changes, as 'parley inbox watch' does")
	once := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if follow {
			return watch(cmd, q)
		}
		return once(cmd, args)
	}
	return cmd
}

// queueFlags filter the queue.
func queueFlags(cmd *cobra.Command, filter *api.ListEscalations) {
	cmd.Flags().StringVar(&filter.Urgency, "urgency", "", "only this `URGENCY`: low, medium, high or critical")
	cmd.Flags().StringVar(&filter.Search, "search", "", "only escalations with these `WORDS` in their subject, parties or reason")
	cmd.Flags().StringVar(&filter.Claimed, "claimed", "", "only escalations claimed by `WHOM`: me, nobody or others")
}

func inboxHistory() *cobra.Command {
	var q api.ReadCaseLog
	return runs(aboutEscalation("history ID", "show who viewed, claimed, commented and decided, and when",
		exampleEscalation+" --json"), api.EscalationHistory.Verb, escalation(&q.Escalation), func(ctx context.Context, cmd *cobra.Command, c connection) error {
		history, _, err := pages(ctx, c, api.EscalationHistory, q, listing{})
		if err != nil {
			return err
		}
		return show(cmd, history, func(s render.Style) string { return render.History(history, s) })
	})
}

// aboutEscalation is a command about one escalation.
func aboutEscalation(use, short, example string) *cobra.Command {
	name, rest, _ := strings.Cut(use, " ")
	takes := cobra.ExactArgs(len(strings.Fields(rest)))
	return &cobra.Command{
		Use: use, Short: short, Args: args(takes), Example: "  parley inbox " + name + " " + example, ValidArgsFunction: completeFirst(completeEscalations),
	}
}

// escalation fills in the escalation whose id begins with the first argument.
func escalation(id *string) filler {
	return func(ctx context.Context, c connection, args []string) (err error) {
		*id, err = c.escalationID(ctx, args[0])
		return err
	}
}

func inboxClaim() *cobra.Command {
	var q api.ClaimEscalation
	var lease time.Duration
	cmd := asks(aboutEscalation("claim ID", "claim an escalation while you work on it", exampleEscalation+" --for 30m \\\n   "+asAlice),
		api.EscalationClaim, &q, escalation(&q.Escalation), render.Item)
	cmd.Flags().BoolVar(&q.TakeOver, "take-over", false, "end the claim of a colleague, who is notified")
	cmd.Flags().DurationVar(&lease, "for", 0, "how long the claim lasts (default: 10m)")
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if lease < 0 || lease > 8*time.Hour {
			return usage(errors.New("--for is between 1ms and 8h"))
		}
		q.Lease = lease.Milliseconds()
		return nil
	}
	return cmd
}

func inboxRelease() *cobra.Command {
	var q api.EscalationRef
	return asks(aboutEscalation("release ID", "release an escalation that you claimed", exampleEscalation+asAlice),
		api.EscalationRelease, &q, escalation(&q.Escalation), render.Item)
}

func inboxAssign() *cobra.Command {
	var q api.AssignEscalation
	cmd := asks(aboutEscalation("assign ID [HUMAN]", "assign an escalation to a human, or to nobody", exampleEscalation+" human://acme.com/anna \\\n   "+asAlice),
		api.EscalationAssign, &q, second(escalation(&q.Escalation), &q.To), render.Item)
	cmd.Args = args(cobra.RangeArgs(1, 2))
	return cmd
}

func inboxComment() *cobra.Command {
	var q api.CommentEscalation
	return asks(aboutEscalation("comment ID TEXT", "write a note that only colleagues read", exampleEscalation+` "we have a better offer" \`+"\n   "+asAlice),
		api.EscalationComment, &q, second(escalation(&q.Escalation), &q.Text), render.Item)
}

func inboxUnseal() *cobra.Command {
	var q api.UnsealEscalation
	cmd := asks(aboutEscalation("unseal ID [PRINCIPAL]", "let the arbiter read what the agent, or another of you, has sealed", exampleEscalation+" human://acme.com/anna \\\n   "+asAlice),
		api.EscalationUnseal, &q, second(escalation(&q.Escalation), &q.Sealer), render.Item)
	cmd.Args = args(cobra.RangeArgs(1, 2))
	return cmd
}

func inboxTransfer() *cobra.Command {
	var q api.TransferEscalation
	cmd := asks(aboutEscalation("transfer ID", "hand an escalation to a colleague or to a later level", exampleEscalation+` --level board --reason "above me" \`+"\n   "+asAlice),
		api.EscalationTransfer, &q, escalation(&q.Escalation), render.Item)
	cmd.Flags().StringVar((*string)(&q.To), "to", "", "transfer to the colleague with this `URI`, human://…")
	cmd.Flags().StringVar(&q.Level, "level", "", "transfer to this `LEVEL` of the chain, by name or number")
	cmd.Flags().StringVar(&q.Reason, "reason", "", "`TEXT` for colleagues that says why")
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if (q.To == "") == (q.Level == "") {
			return usage(errors.New("set either --to or --level"))
		}
		return nil
	}
	return cmd
}

// escalation returns the escalation whose id begins with a prefix.
func (c connection) escalation(ctx context.Context, prefix string) (api.EscalationItem, error) {
	id, err := c.escalationID(ctx, prefix)
	if err != nil {
		return api.EscalationItem{}, err
	}
	return c.Escalation(ctx, id)
}
