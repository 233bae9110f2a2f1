package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/api/render"
	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/discovery"
	bindugateway "github.com/parley-asp/parley/gateway/bindu"
	"github.com/parley-asp/parley/performatives"
)

// plainAmount is what cannot be read in two ways. Who calls for proposals may say more, as Bindu's callers do.
var plainAmount = regexp.MustCompile(`^\$?[0-9]+(\.[0-9]+)?( ?[A-Z]{3})?$`)

func findCommand() *cobra.Command {
	var q api.CallForProposals
	var cost string
	var agents, probes []string
	var within time.Duration
	var invite, among int
	var asks tenderRequest
	var o tenderOptions
	cmd := &cobra.Command{
		Use: "find TASK", Short: "ask who could do a task, and rank them", Args: args(cobra.ExactArgs(1)),
		Long: `Asks all agents that could do a task how well they fit, and ranks them. An agent
that is online answers itself; any other is assessed by its card. The subscores say
why: skill match, input and output, speed, load and cost, each from 0 to 1.

--rank is best, cheapest, queue or trust, each with an optional least score as in
cheapest:0.6, or weights of score, confidence, trust, skill, load, cost and latency.
With --probe agents elsewhere that answer as Bindu's do are ranked beside them; one
that does not answer in time is a warning.

With --invite the principal of --as opens a session with each of the best ones that
accept.

--tender invites them too, and compares their offers beside each other: it proposes
--terms to each that has not offered, or waits for offers, accepts one as --accept says, and
withdraws from the others. What --terms or --policy offers binds each agent that accepts
it and closes its session: to be bound by one offer only, wait for theirs. After an
interruption, continue with 'parley tender ID'.`,
		Example: `  parley find "extract tables from PDF invoices" --max-cost 0.001
  parley find "translate a manual" --capability "text.*" --rank score=3,trust=1
  parley find "print cups" --tender 3 --terms cups.yaml --as agent://acme.com/me`,
		RunE: func(cmd *cobra.Command, args []string) error {
			ms := int(within.Milliseconds())
			q.Summary, q.WaitMs = args[0], &ms
			for _, a := range agents {
				q.Agents = append(q.Agents, performatives.Agent(a))
			}
			if cost != "" {
				if !plainAmount.MatchString(cost) {
					return usage(fmt.Errorf("--max-cost: %q is no amount such as 0.001", cost))
				}
				amount, err := json.Marshal(cost)
				if err != nil {
					return err
				}
				q.MaxCost = amount
			}
			rank, err := discovery.ParsePolicy(q.Rank)
			if err != nil {
				return usage(err)
			}
			for _, url := range probes {
				if _, err := bindugateway.ProbeURL(url); err != nil {
					return usage(err)
				}
			}
			if len(probes) > 0 && among > 0 {
				return usage(errors.New("--probe asks agents elsewhere, whom --tender cannot invite"))
			}
			if among > 0 {
				return asks.run(cmd, &o, q, among)
			}
			return with(cmd, func(ctx context.Context, c connection) error {
				if invite > 0 && c.principal == nil {
					return usage(errors.New("--invite opens sessions: say as whom with --as"))
				}
				probed := probeAll(ctx, probes, q.Task, cmp.Or(probing(cmd, within), api.ProbeWait*time.Millisecond))
				found, err := c.Find(ctx, q)
				if err != nil {
					return err
				}
				elsewhere, warnings := probed()
				merge(&found, elsewhere, warnings, rank, q.Limit)
				if err := show(cmd, found, func(s render.Style) string { return render.Proposals(found, s) }); err != nil || invite == 0 {
					return err
				}
				return inviteBest(ctx, cmd, c.principal, found, q.Summary, invite)
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&q.Details, "details", "", "longer `TEXT` about the task")
	f.StringVar(&q.Capability, "capability", "", "only agents with this `CAPABILITY`, or a prefix as in data.*")
	f.StringSliceVar(&agents, "agent", nil, "only this agent `URI`; can be repeated")
	f.StringSliceVar(&probes, "probe", nil, "also ask the agent at this `URL`, as Bindu's orchestrators do, such as http://agent1:3773; can be repeated; asked from this machine")
	f.StringSliceVar(&q.InputTypes, "input", nil, "the agent reads this MIME `TYPE`; one of several is enough")
	f.StringSliceVar(&q.OutputTypes, "output", nil, "the agent writes this MIME `TYPE`; one of several is enough")
	f.StringSliceVar(&q.RequiredTools, "require-tool", nil, "the agent has this `TOOL`; can be repeated")
	f.StringSliceVar(&q.ForbiddenTools, "forbid-tool", nil, "no skill of the agent has this `TOOL`; can be repeated")
	f.Float64Var(&q.MaxLatency, "max-latency-ms", 0, "`MILLISECONDS` that the task may take; an agent that needs more than twice as many refuses")
	f.StringVar(&cost, "max-cost", "", "the most that the task may cost, an `AMOUNT` such as 0.001")
	f.Float64Var(&q.MinScore, "min-score", 0, "agents with a lower `SCORE`, 0 to 1, refuse")
	f.Float64Var(&q.MinTrust, "min-trust", 0, "only agents with at least this trust `SCORE`, 0 to 100")
	f.DurationVar(&within, "within", api.DefaultWait*time.Millisecond, "how long to wait for answers, at most 10s; 0s asks nobody and assesses cards")
	f.StringVar(&q.Rank, "rank", "best", "`POLICY` of the ranking")
	f.IntVar(&q.Limit, "limit", 20, "show at most `N` agents, up to 200")
	f.IntVar(&invite, "invite", 0, "open sessions with the best `N`")
	groupFlags(f, "Tender flags", func(f *pflag.FlagSet) {
		f.IntVar(&among, "tender", 0, "compare the offers of the best `N`, at most 20, and accept one")
		f.StringVar(&asks.terms, "terms", "", "`FILE` of JSON or YAML with the terms to propose (default: wait for their offers)")
		f.StringVar(&asks.schema, "schema", "", "`NAME` of the terms schema of all offers")
		o.flags(f)
	})
	return connects(cmd)
}

// inviteBest opens a session with each of the best that accept, but for the principal itself. Of those that cannot be
// invited it says why, and goes on.
func inviteBest(ctx context.Context, cmd *cobra.Command, c *client.Client, found api.Proposals, purpose string, n int) error {
	var refused []error
	for _, candidate := range found.Candidates {
		if n == 0 || !candidate.Accepted {
			break
		}
		if candidate.Agent == "" || candidate.Agent == c.Agent() { // it is elsewhere, or oneself
			continue
		}
		s, err := c.Invite(ctx, client.Invitation{With: []performatives.Agent{candidate.Agent}, Purpose: purpose})
		if err != nil {
			refused = append(refused, fmt.Errorf("%s: %w", candidate.Agent, err))
			continue
		}
		note(cmd, "Invited "+string(candidate.Agent)+" to "+string(s.ID())+".")
		n--
	}
	if n == 0 {
		for _, err := range refused {
			note(cmd, "Not invited: "+err.Error()+".")
		}
		return nil
	}
	return errors.Join(refused...)
}
