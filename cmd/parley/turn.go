package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/api/render"
)

const asCron = " \\\n    --as agent://acme.com/cron --key cron.nk"

func turnCommand() *cobra.Command {
	return connects(group(&cobra.Command{
		Use: "turn", Short: "take the turns that wait for an agent",
		Long: `A turn waits for the principal of --as when the next act in a session is its own.
pickup claims the turn that has waited longest for one worker, respond answers
it, and release lets it wait again. A turn is named by its session.`,
	}, turnPickup(), turnRespond(), turnRelease()))
}

// whoTakesTurns is what a command about turns says without --as.
const whoTakesTurns = "turns are a principal's: set --as agent://… and --key"

func workerFlag(cmd *cobra.Command, worker *string) {
	cmd.Flags().StringVar(worker, "worker", api.DefaultWorker, "`NAME` of the program that takes the turn")
}

func turnPickup() *cobra.Command {
	var q api.PickUpTurn
	var lease time.Duration
	cmd := asks(&cobra.Command{
		Use: "pickup [SESSION]", Short: "claim the turn that has waited longest", Args: args(cobra.MaximumNArgs(1)),
		Example: "  parley turn pickup --json" + asCron,
	}, api.TurnPickup, &q, first(&q.Session), func(t api.Turn, _ render.Style) string { return turnText(t) })
	cmd.Flags().StringSliceVar(&q.Modes, "mode", nil, "only turns in this `MODE`; can be repeated")
	cmd.Flags().DurationVar(&lease, "lease", 0, "how long the claim lasts, if not as long as the broker lets it")
	workerFlag(cmd, &q.Worker)
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		if lease < 0 || cmd.Flags().Changed("lease") && lease < time.Millisecond {
			return usage(errors.New("--lease is at least 1ms"))
		}
		q.Lease = lease.Milliseconds()
		return nil
	}
	return principals(cmd, whoTakesTurns)
}

func turnText(t api.Turn) string {
	if t.Claim == nil {
		return "no turn waits\n"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "session    %s (%s)\n", t.Session, t.Mode)
	if t.OnBehalfOf != "" {
		fmt.Fprintf(&b, "for        %s\n", t.OnBehalfOf)
	}
	fmt.Fprintf(&b, "turn       %d", t.Turn.Number)
	if t.Turn.Cap > 0 {
		fmt.Fprintf(&b, " of %d", t.Turn.Cap)
	}
	fmt.Fprintf(&b, "\ndeadline   %s\n", t.Turn.Deadline)
	if t.Reference != "" {
		fmt.Fprintf(&b, "answers    %s %s\n", t.CounterpartyAct, render.Clean(t.Reference))
	}
	for _, e := range t.History {
		fmt.Fprintf(&b, "%10d %s %s %s\n", e.Sequence, e.From, e.Performative, render.JSON(string(e.Body)))
	}
	return b.String()
}

func turnRespond() *cobra.Command {
	q := api.RespondTurn{}
	var body string
	cmd := &cobra.Command{
		Use: "respond SESSION PERFORMATIVE", Short: "answer a turn that was picked up", Args: args(cobra.ExactArgs(2)),
		Long: `Answers a turn. The body is a JSON object. An agent that signs for itself signs the
act with --key; for a hosted agent the broker signs.`,
		Example: "  parley turn respond " + exampleSession + ` ACCEPT --body '{"referenceId": "p1"}'` + asCron,
		RunE: func(cmd *cobra.Command, args []string) error {
			q.ID, q.Performative, q.Body = args[0], strings.ToUpper(args[1]), jsontext.Value(body)
			if !q.Body.IsValid() || q.Body.Kind() != '{' {
				return usage(errors.New("--body is a JSON object"))
			}
			return with(cmd, func(ctx context.Context, c connection) error {
				accepted, err := c.principal.RespondTurn(ctx, q)
				if err != nil {
					return err
				}
				return show(cmd, accepted, func(render.Style) string {
					return fmt.Sprintf("accepted as %d; the session is %s\n", accepted.Sequence, accepted.State)
				})
			})
		},
	}
	cmd.Flags().StringVar(&body, "body", "{}", "`JSON` of the act's body")
	workerFlag(cmd, &q.Worker)
	return principals(cmd, whoTakesTurns)
}

func turnRelease() *cobra.Command {
	var q api.ReleaseTurn
	cmd := asks(&cobra.Command{
		Use: "release SESSION", Short: "let a turn wait for any worker again", Args: args(cobra.ExactArgs(1)),
		Example: "  parley turn release " + exampleSession + asCron,
	}, api.TurnRelease, &q, first(&q.ID), func(r api.ReleasedTurn, _ render.Style) string {
		return fmt.Sprintf("released the turn in %s\n", r.Session)
	})
	workerFlag(cmd, &q.Worker)
	return principals(cmd, whoTakesTurns)
}
