package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/api/render"
	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/delegation"
	"github.com/parley-asp/parley/performatives"
)

const asCarol = " \\\n    --as human://acme.com/carol --key carol.nk"

func checkCommand() *cobra.Command {
	return connects(group(&cobra.Command{
		Use: "check", Short: "answer what agents delegate to you",
		Long: `A check is a delegation to the principal of --as: an agent asks a specialist, often
a human, to look at an offer. It is named by its session, or by a unique prefix
of that. The authority of the delegation says what may be sent: advisory answers
and remarks, limited also asks, full also accepts, rejects, escalates,
counters and delegates. An offer other than the one that was delegated is named
by --offer. The same is on the pages of the inbox, under Checks.`,
	}, checkLs(), checkShow(), checkJoin(), checkDecline(), checkAnswer(), checkAsk(),
		checkAccept(), checkReject(), checkCounter(), checkEscalate(), checkDelegate()))
}

func checkLs() *cobra.Command {
	var q api.ListChecks
	cmd := lists(&cobra.Command{
		Use: "ls", Short: "list checks, newest session first", Args: args(cobra.NoArgs),
		Example: "  parley check ls" + asCarol,
	}, api.CheckList, &q, nil, func(p api.Checks, s render.Style) string { return render.Checks(p.Checks, s) })
	cmd.Flags().StringVar(&q.Status, "status", api.OpenChecks, "only this `STATUS`: open, over or all")
	return principals(cmd, whoChecks)
}

func checkShow() *cobra.Command {
	cmd := &cobra.Command{
		Use: "show ID", Short: "show a check, and once joined the conversation behind it", Args: args(cobra.ExactArgs(1)),
		Example:           "  parley check show " + exampleSession + asCarol,
		ValidArgsFunction: completeFirst(completeChecks),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withCheck(cmd, args[0], func(ctx context.Context, c connection, check api.Check) error {
				var out strings.Builder
				if check.Status == delegation.Active.String() && !asked(cmd, "json") {
					lines, err := c.messages(ctx, check.Session, 0)
					if err != nil {
						return err
					}
					entries, err := c.opened(ctx, lines)
					if err != nil {
						return err
					}
					chat := render.NewChat(style(cmd))
					for _, e := range entries {
						out.WriteString(chat.Add(e))
					}
					out.WriteString("\n")
				}
				return show(cmd, check, func(s render.Style) string { return out.String() + render.Check(check, s) })
			})
		},
	}
	fullFlag(cmd)
	return principals(cmd, whoChecks)
}

// whoChecks is what a command about checks says without --as.
const whoChecks = "checks are a principal's: set --as human://… and --key"

// withCheck reads the check of the session whose id begins with a prefix.
func withCheck(cmd *cobra.Command, prefix string, do func(context.Context, connection, api.Check) error) error {
	return with(cmd, func(ctx context.Context, c connection) error {
		id, err := c.checkID(ctx, prefix)
		if err != nil {
			return err
		}
		check, err := c.principal.Check(ctx, id)
		if err != nil {
			return err
		}
		return do(ctx, c, check)
	})
}

// checkID returns the only session with a check whose id begins with the argument.
func (c connection) checkID(ctx context.Context, arg string) (performatives.SessionID, error) {
	if err := checkPrefix("a check", arg); err != nil || len(arg) == wholeID {
		return performatives.SessionID(arg), err
	}
	var ids []string
	for check, err := range c.principal.Checks(ctx, api.ListChecks{Status: api.AllChecks, Limit: api.MaxPage}) {
		if err != nil {
			return "", err
		}
		if strings.HasPrefix(string(check.Session), arg) {
			ids = append(ids, string(check.Session))
		}
	}
	id, err := unique("check", arg, ids)
	return performatives.SessionID(id), err
}

// completeChecks completes the sessions of open checks.
func completeChecks(ctx context.Context, c connection, prefix string) (found []cobra.Completion, err error) {
	if c.principal == nil {
		return nil, nil
	}
	page, err := client.Do(ctx, c, api.CheckList, api.ListChecks{Limit: api.MaxPage})
	for _, check := range page.Checks {
		if strings.HasPrefix(string(check.Session), prefix) {
			found = append(found, cobra.CompletionWithDesc(string(check.Session), completionText(check.Authority, check.Scope)))
		}
	}
	return found, err
}

// A checkAct sends one act about a check.
type checkAct func(ctx context.Context, s *client.Session, check api.Check, args []string) (client.Receipt, error)

// acting is a command that sends an act and says what became of it.
func acting(use, short, example string, takes cobra.PositionalArgs, send checkAct) *cobra.Command {
	return principals(&cobra.Command{
		Use: use, Short: short, Args: args(takes), Example: "  parley check " + example + asCarol, ValidArgsFunction: completeFirst(completeChecks),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withCheck(cmd, args[0], func(ctx context.Context, c connection, check api.Check) error {
				receipt, err := send(ctx, c.principal.Session(check.Session), check, args[1:])
				if err != nil {
					return err
				}
				return show(cmd, receipt.Acceptance, func(render.Style) string {
					return fmt.Sprintf("%s: entry %d; the session is %s\n", cmd.Name(), receipt.Sequence, receipt.State)
				})
			})
		},
	}, whoChecks)
}
