package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/render"
)

func inboxCommand() *cobra.Command {
	return connects(group(&cobra.Command{
		Use: "inbox", Short: "what waits for a human's decision",
		Long: `The escalation inbox: what agents may not decide by themselves. Anybody with a
part in a session may look; a human of the escalating organisation who may decide,
rules: --as human://… with --key, the human's own. The same is at /inbox of the
broker's HTTP address, in a browser.`,
	}, inboxLs(), inboxShow(), inboxWatch(),
		inboxClaim(), inboxRelease(), inboxAssign(), inboxComment(), inboxTransfer(),
		rule("approve", "let the agent go ahead", performatives.Approved),
		rule("modify", "let the agent go ahead, within other bounds than it asked for", performatives.Modified),
		rule("deny", "refuse what the agent asks for", performatives.Denied),
		inboxReply(), inboxHistory()))
}

func inboxLs() *cobra.Command {
	var filter api.ListEscalations
	var follow bool
	cmd := &cobra.Command{
		Use: "ls", Short: "list escalations, the one due first at the top", Args: args(cobra.NoArgs),
		Example: `  parley inbox ls --as human://acme.com/alice --key alice.nk
  parley inbox ls --urgency critical --claimed nobody --as human://acme.com/alice --key alice.nk
  parley inbox ls --watch --as human://acme.com/alice --key alice.nk`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if follow {
				return watch(cmd, filter)
			}
			return with(cmd, func(ctx context.Context, c connection) error {
				list, err := queue(ctx, c, filter)
				if err != nil {
					return err
				}
				return show(cmd, list, func(s render.Style) string { return render.Escalations(list, s) })
			})
		},
	}
	cmd.Flags().StringVar(&filter.Status, "status", "open", "open, resolved or all")
	queueFlags(cmd, &filter)
	cmd.Flags().BoolVar(&follow, "watch", false, "go on and show what changes, as `parley inbox watch` does")
	return cmd
}

// queueFlags narrow the queue.
func queueFlags(cmd *cobra.Command, filter *api.ListEscalations) {
	cmd.Flags().StringVar(&filter.Urgency, "urgency", "", "only low, medium, high or critical")
	cmd.Flags().StringVar(&filter.Search, "search", "", "only those with these words in what they are about, between whom, or why")
	cmd.Flags().StringVar(&filter.Claimed, "claimed", "", "only those held by me, nobody or others")
	cmd.Flags().IntVar(&filter.Limit, "limit", 0, "so many at most (default: all)")
}

// queue is what a filter lets through, with the counts of all.
func queue(ctx context.Context, c connection, filter api.ListEscalations) (api.Escalations, error) {
	most := filter.Limit
	all := api.Escalations{Escalations: []api.EscalationItem{}}
	for {
		filter.Limit = api.MaxPage
		if most > 0 {
			filter.Limit = min(most-len(all.Escalations), api.MaxPage)
		}
		page, err := c.EscalationPage(ctx, filter)
		if err != nil {
			return all, err
		}
		all.Escalations = append(all.Escalations, page.Escalations...)
		all.Counts, all.Now, filter.Cursor = page.Counts, page.Now, page.Next
		if page.Next == "" || most > 0 && len(all.Escalations) >= most {
			return all, nil
		}
	}
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

func inboxHistory() *cobra.Command {
	return &cobra.Command{
		Use: "history ID", Short: "show who looked, claimed, said and decided what, and when", Args: args(cobra.ExactArgs(1)),
		Example: "  parley inbox history 019478a3-7b2c-7def-8a12-3456789abcde --json",
		RunE: func(cmd *cobra.Command, args []string) error {
			return with(cmd, func(ctx context.Context, c connection) error {
				history, err := c.EscalationHistory(ctx, args[0])
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
	cmd := action("claim ID", "hold an escalation while you are at work on it", cobra.ExactArgs(1),
		"  parley inbox claim 019478a3-7b2c-7def-8a12-3456789abcde --for 30m --as human://acme.com/alice --key alice.nk",
		func(ctx context.Context, c connection, args []string) (api.EscalationItem, error) {
			return c.ClaimEscalation(ctx, args[0], lease)
		})
	cmd.Flags().DurationVar(&lease, "for", 0, "for how long; then it is everybody's again (default 10m)")
	return cmd
}

func inboxRelease() *cobra.Command {
	return action("release ID", "let go of an escalation that you hold", cobra.ExactArgs(1),
		"  parley inbox release 019478a3-7b2c-7def-8a12-3456789abcde --as human://acme.com/alice --key alice.nk",
		func(ctx context.Context, c connection, args []string) (api.EscalationItem, error) {
			return c.ReleaseEscalation(ctx, args[0])
		})
}

func inboxAssign() *cobra.Command {
	return action("assign ID [HUMAN]", "say whose an escalation is to decide, or nobody's", cobra.RangeArgs(1, 2),
		"  parley inbox assign 019478a3-7b2c-7def-8a12-3456789abcde human://acme.com/anna --as human://acme.com/alice --key alice.nk",
		func(ctx context.Context, c connection, args []string) (api.EscalationItem, error) {
			var to performatives.Agent
			if len(args) == 2 {
				to = performatives.Agent(args[1])
			}
			return c.AssignEscalation(ctx, args[0], to)
		})
}

func inboxComment() *cobra.Command {
	return action("comment ID TEXT", "write to colleagues; no agent reads it", cobra.ExactArgs(2),
		`  parley inbox comment 019478a3-7b2c-7def-8a12-3456789abcde "we have a better offer" --as human://acme.com/alice --key alice.nk`,
		func(ctx context.Context, c connection, args []string) (api.EscalationItem, error) {
			return c.CommentEscalation(ctx, args[0], args[1])
		})
}

func inboxTransfer() *cobra.Command {
	var to, level, reason string
	cmd := action("transfer ID", "hand an escalation to a colleague, or up the chain before its time", cobra.ExactArgs(1),
		`  parley inbox transfer 019478a3-7b2c-7def-8a12-3456789abcde --level board --reason "above me" --as human://acme.com/alice --key alice.nk`,
		func(ctx context.Context, c connection, args []string) (api.EscalationItem, error) {
			if (to == "") == (level == "") {
				return api.EscalationItem{}, usage(errors.New("transfer to a colleague (--to) or to a level (--level)"))
			}
			return c.TransferEscalation(ctx, api.TransferEscalation{Escalation: args[0], To: performatives.Agent(to), Level: level, Reason: reason})
		})
	cmd.Flags().StringVar(&to, "to", "", "the colleague, human://…")
	cmd.Flags().StringVar(&level, "level", "", "the level of the chain, by its name or number")
	cmd.Flags().StringVar(&reason, "reason", "", "why, for colleagues")
	return cmd
}

// action is a command that acts on an escalation and prints the escalation after it.
func action(use, short string, takes cobra.PositionalArgs, example string, do func(context.Context, connection, []string) (api.EscalationItem, error)) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Args: args(takes), Example: example,
		RunE: func(cmd *cobra.Command, args []string) error {
			return with(cmd, func(ctx context.Context, c connection) error {
				item, err := do(ctx, c, args)
				if err != nil {
					return err
				}
				return show(cmd, item, func(s render.Style) string { return render.Item(item, s) })
			})
		},
	}
}
