package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/api/render"
	"github.com/parley-asp/parley/performatives"
)

func disputeCommand() *cobra.Command {
	return connects(group(&cobra.Command{
		Use: "dispute", Short: "dispute what was delivered, and decide disputes",
		Long: `A dispute is about an entry of a session in which something is carried out, such as
a delivery or a breach. The other side concedes, denies, or offers what would end it;
the arbiter whom the invitation names decides. Nothing that was agreed is reopened.`,
	}, disputeLs(), disputeOpen(), disputeReply(), disputeAccept(), disputeRule()))
}

func disputeLs() *cobra.Command {
	var q api.ListDisputes
	cmd := &cobra.Command{
		Use: "ls [ID]", Short: "list the open disputes of all sessions, or every dispute of one", Args: args(cobra.MaximumNArgs(1)),
		Example:           "  parley dispute ls" + asCron + "\n  parley dispute ls " + exampleSession + asCron,
		ValidArgsFunction: completeFirst(completeSessions),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return with(cmd, func(ctx context.Context, c connection) error {
					list, _, err := pages(ctx, c, api.DisputeList, q, listing{})
					if err != nil {
						return err
					}
					return show(cmd, list.Disputes, func(s render.Style) string { return render.Disputes(list.Disputes, s) })
				})
			}
			return withDeal(cmd, args[0], func(_ context.Context, _ connection, deal api.Snapshot) error {
				rows := make([]api.DisputeRow, len(deal.Disputes))
				for n, d := range deal.Disputes {
					rows[n] = api.DisputeRow{Session: deal.Session, DisputeView: d}
				}
				return show(cmd, deal.Disputes, func(s render.Style) string { return render.Disputes(rows, s) })
			})
		},
	}
	cmd.Flags().StringVar(&q.Status, "status", "", "without ID: open, or `all`: also those that have ended in sessions that are not over")
	fullFlag(cmd)
	return principals(cmd, whoCarriesOut)
}

func disputeOpen() *cobra.Command {
	d := performatives.DisputeData{Severity: 3, Ground: "other"}
	var entry uint64
	cmd := &cobra.Command{
		Use: "open ID", Short: "dispute an entry", Args: args(cobra.ExactArgs(1)),
		Example: "  parley dispute open " + exampleSession + ` --entry 9 --ground mismatch \
    --claim "ten boxes are cracked" --remedy "ten boxes, or their price"` + asCron,
		ValidArgsFunction: completeFirst(completeSessions),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !cmd.Flags().Changed("entry") || d.Claim == "" {
				return usage(errors.New("say what you dispute, and what you claim: --entry N --claim TEXT"))
			}
			return withDeal(cmd, args[0], func(ctx context.Context, c connection, deal api.Snapshot) error {
				lines, err := c.messages(ctx, deal.Session, entry)
				if err != nil {
					return err
				}
				if len(lines) == 0 {
					return usage(fmt.Errorf("--entry %d: the newest entry is %d", entry, deal.Head.N))
				}
				about, err := api.ReadEntry(lines[0], nil)
				if err != nil {
					return err
				}
				d.Subject, d.DisputeID = about.Hash, fmt.Sprintf("dispute-%d", deal.Head.N+1)
				body, err := informs(performatives.Dispute, d)
				if err != nil {
					return err
				}
				receipt, err := c.principal.Session(deal.Session).Say(ctx, body)
				if err != nil {
					return err
				}
				return show(cmd, receipt.Acceptance, func(render.Style) string {
					return fmt.Sprintf("%s: entry %d\n", d.DisputeID, receipt.Sequence)
				})
			})
		},
	}
	cmd.Flags().Uint64Var(&entry, "entry", 0, "the number `N` of the entry that it is about")
	cmd.Flags().StringVar(&d.Ground, "ground", d.Ground, "`GROUND`: non-delivery, late, mismatch, unauthorized-change, escrow or other")
	cmd.Flags().StringVar(&d.Claim, "claim", "", "what is claimed, in a `TEXT`")
	cmd.Flags().StringVar(&d.Remedy, "remedy", "", "what would end it, in a `TEXT`")
	cmd.Flags().IntVar(&d.Severity, "severity", d.Severity, "how bad it is, a `NUMBER` from 1 to 5")
	return principals(cmd, whoCarriesOut)
}

func disputeReply() *cobra.Command {
	var comment, remedy, shown string
	cmd := &cobra.Command{
		Use: "reply ID DISPUTE POSITION", Short: "concede or deny a dispute, or offer what would end it", Args: args(cobra.ExactArgs(3)),
		Example: "  parley dispute reply " + exampleSession + ` dispute-9 offer --remedy "half the price"` + asSeller,
	}
	cmd.Flags().StringVar(&comment, "comment", "", "`TEXT` for all participants")
	cmd.Flags().StringVar(&remedy, "remedy", "", "what is offered, in a `TEXT`")
	shownFlag(cmd, &shown)
	return saysOf(cmd, func(_ api.Snapshot, args []string) (performatives.Body, error) {
		positions := []string{performatives.Concede, performatives.Deny, performatives.OfferOf}
		if !slices.Contains(positions, args[1]) {
			return nil, usage(fmt.Errorf("%s is no position: want %s", args[1], anyOf(positions)))
		}
		if args[1] == performatives.OfferOf && strings.TrimSpace(remedy) == "" {
			return nil, usage(errors.New("say what you offer: --remedy TEXT"))
		}
		return informs(performatives.Reply, performatives.ReplyData{DisputeID: args[0], Position: args[1], Comment: comment, Remedy: remedy, ViewHash: performatives.Hash(shown)})
	})
}

func disputeAccept() *cobra.Command {
	cmd := &cobra.Command{
		Use: "accept ID DISPUTE", Short: "accept the newest offer to end a dispute", Args: args(cobra.ExactArgs(2)),
		Example: "  parley dispute accept " + exampleSession + " dispute-9" + asCron,
	}
	return saysOf(cmd, func(deal api.Snapshot, args []string) (performatives.Body, error) {
		for _, d := range deal.Disputes {
			for _, r := range slices.Backward(d.Replies) {
				if d.ID == args[0] && r.Position == performatives.OfferOf {
					return &performatives.AcceptBody{ReferenceID: r.Reference}, nil
				}
			}
		}
		return nil, fmt.Errorf("nobody has offered anything to end dispute %s", args[0])
	})
}

// shownFlag adds the flag that binds an answer to the dispute as its sender saw it.
func shownFlag(cmd *cobra.Command, shown *string) {
	cmd.Flags().StringVar(shown, "shown", "", "the `HASH` that dispute ls --json shows of the dispute: refuse if it has changed since")
}

func disputeRule() *cobra.Command {
	var reason, award, shown string
	cmd := &cobra.Command{
		Use: "rule ID DISPUTE DECISION", Short: "decide a dispute, as its arbiter", Args: args(cobra.ExactArgs(3)),
		Example: "  parley dispute rule " + exampleSession + ` dispute-9 split --reason "packed badly" \
    --as agent://chamber.org/arbiter --key arbiter.nk`,
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, in a `TEXT` for people")
	cmd.Flags().StringVar(&award, "award", "", "what follows, as `JSON` or a text")
	shownFlag(cmd, &shown)
	return saysOf(cmd, func(_ api.Snapshot, args []string) (performatives.Body, error) {
		decisions := []string{performatives.Upheld, performatives.Dismissed, performatives.Split}
		switch {
		case !slices.Contains(decisions, args[1]):
			return nil, usage(fmt.Errorf("%s is no decision: want %s", args[1], anyOf(decisions)))
		case reason == "":
			return nil, usage(errors.New("say why: --reason TEXT"))
		}
		d := performatives.DecisionData{DisputeID: args[0], Decision: args[1], Reason: reason, ViewHash: performatives.Hash(shown)}
		if award = strings.TrimSpace(award); award != "" {
			if d.Award = jsontext.Value(award); !d.Award.IsValid() {
				raw, err := json.Marshal(award)
				if err != nil {
					return nil, err
				}
				d.Award = raw
			}
		}
		return informs(performatives.Resolution, d)
	})
}
