package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/api/render"
	"github.com/parley-asp/parley/performatives"
)

// The commands of agent, for every kind of principal, and those of human, for humans only.

func example(kind string) string {
	if kind == performatives.KindHuman {
		return "human://acme.com/alice"
	}
	return "agent://acme.com/procurement/alpha"
}

// everyKind lists humans and agents.
const everyKind = "all"

func principalLs(kind string) *cobra.Command {
	q := api.ListAgents{Kind: kind}
	cmd := listsOf(&cobra.Command{
		Use: "ls", Short: "list agents", Args: args(cobra.NoArgs),
		Example: "  parley " + cmp.Or(kind, "agent") + " ls --organisation acme.com",
	}, api.AgentList.Verb, nil, func(ctx context.Context, c connection, l listing) (api.Agents, string, error) {
		switch q.Kind {
		case everyKind:
			return pages(ctx, c, api.AgentList, api.ListAgents{Organization: q.Organization, Capability: q.Capability}, l)
		case performatives.KindHuman:
			return pages(ctx, c, api.AgentList, q, l)
		}
		return pages(ctx, c, api.AgentSearch, api.SearchAgents{Organization: q.Organization, Capability: q.Capability, Kind: q.Kind}, l)
	}, func(p api.Agents, s render.Style) string { return render.Agents(p.Agents, s) })
	cmd.Flags().StringVar(&q.Organization, "organisation", "", "only principals of this `DOMAIN`, such as acme.com")
	if kind == "" {
		cmd.Flags().StringVar(&q.Capability, "capability", "", "only agents with this `CAPABILITY`")
		cmd.Flags().StringVar(&q.Kind, "kind", "", "only this `KIND`: system or personal; or human, or all (default: agents of both kinds)")
	} else {
		cmd.Short = "list humans"
	}
	return cmd
}

// aboutPrincipal is a command about one principal of a kind.
func aboutPrincipal(kind, name, short, long string) *cobra.Command {
	return &cobra.Command{
		Use: name + " URI", Short: short, Long: long, Args: args(cobra.ExactArgs(1)),
		Example:           "  parley " + cmp.Or(kind, "agent") + " " + name + " " + example(kind),
		ValidArgsFunction: completeFirst(completeAgents(kind)),
	}
}

// principal fills in the first argument, a principal of a kind.
func principal(kind string, into *performatives.Agent) filler {
	return func(_ context.Context, _ connection, args []string) error {
		*into = performatives.Agent(args[0])
		if kind == performatives.KindHuman && !into.IsHuman() {
			return usage(fmt.Errorf("%s is not a human://… URI", args[0]))
		}
		return nil
	}
}

func principalShow(kind string) *cobra.Command {
	var q api.AgentRef
	return asks(aboutPrincipal(kind, "show", "show a principal's card", ""), api.AgentGet, &q, principal(kind, &q.Agent), render.Card)
}

func principalRm(kind string) *cobra.Command {
	var q api.AgentRef
	return asks(aboutPrincipal(kind, "rm", "remove a principal, who can then no longer log in",
		`Removes a principal. Transcripts keep its pinned keys and still verify.
'parley session ls --with URI' lists the sessions that are left.`),
		api.AgentRemove, &q, principal(kind, &q.Agent), func(c api.Card, _ render.Style) string { return "removed " + string(c.Agent) + "\n" })
}

func agentHost() *cobra.Command {
	var q api.AgentRef
	return asks(aboutPrincipal("", "host", "have the broker hold a signing key for an agent",
		`The broker makes a signing key for the agent and keeps it sealed, so the agent can
act over HTTP with a token. The agent's own key still works. Transcripts say which
entries the broker signed (custody: hosted).`), api.AgentHost, &q, first(&q.Agent), render.Card)
}

func agentUnhost() *cobra.Command {
	var q api.AgentRef
	return asks(aboutPrincipal("", "unhost", "destroy the signing key that the broker holds",
		"The agent signs for itself from now on. It needs a key of its own."), api.AgentUnhost, &q, first(&q.Agent), render.Card)
}

func agentVerifyDomain() *cobra.Command {
	var q api.VerifyDomain
	cmd := asks(aboutPrincipal("", "verify-domain", "have the domain of an agent's URI vouch for its key",
		`Binds the agent's key to the domain of its URI; its card then says domainVerified.
The operator vouches for it, or, with --by, the domain does: by a DNS TXT record
of _parley.DOMAIN that is parley-key=KEY, or by a file at
https://DOMAIN/.well-known/asp/keys.json that is {"keys": ["KEY"]}. With --as the
agent verifies its own domain. A new key has to be verified again.`), api.AgentVerify, &q, first(&q.Agent), render.Card)
	cmd.Example += " --by dns"
	cmd.Flags().StringVar(&q.By, "by", api.ByOperator, "`WHO` vouches: operator, dns or file")
	return cmd
}

func humanEnrol() *cobra.Command {
	var q api.EnrolHuman
	return asks(aboutPrincipal(performatives.KindHuman, "enrol", "make a code to enrol a human's browser",
		`Prints a code that the human types at /inbox on the broker's HTTP address. The
browser then generates a key that never leaves it, and signs decisions with it.
The code works once, within 15 minutes. The human is notified by mail, if serve
--notify has an address, and in every enrolled browser. 'parley human show' lists
the devices.`), api.HumanEnrol, &q, first(&q.Agent), render.Enrolment)
}

func humanUnenrol() *cobra.Command {
	var q api.DeviceRef
	cmd := asks(aboutPrincipal(performatives.KindHuman, "unenrol", "revoke a browser's key",
		"What the key signs is refused at once. An operator revokes any key, and a human their\nown, with --as."),
		api.HumanUnenrol, &q, second(own(&q.Agent, "a human revokes only their own keys: omit --as to revoke them as the operator"), &q.Key), render.Card)
	cmd.Use, cmd.Args = "unenrol URI KEY", args(cobra.ExactArgs(2))
	cmd.Example += " UDXU…"
	return cmd
}

// own fills in the first argument, a human, who is the principal of --as if there is one; else it says why not.
func own(into *performatives.Agent, why string) filler {
	return func(_ context.Context, c connection, args []string) error {
		*into = performatives.Agent(args[0])
		if c.principal != nil && *into != c.principal.Agent() {
			return usage(errors.New(why))
		}
		return nil
	}
}

const ownAbsence = "a human says this only of themselves: omit --as to say it as the operator"

func humanAway() *cobra.Command {
	var q api.SetAway
	var from, until string
	cmd := asks(aboutPrincipal(performatives.KindHuman, "away", "say who stands in for a human",
		`Until the end, new escalations that ask the human, and those that are handed to them,
are assigned to the stand-in, who is notified. The stand-in is a colleague who may
decide, and gains no right by it: what asks only the human stays with them. An operator
sets it for anybody, and a human for themselves, with --as.`), api.HumanAway, &q, own(&q.Agent, ownAbsence), render.Card)
	cmd.Example += " \\\n    --to human://acme.com/bob --until 168h"
	cmd.Flags().StringVar((*string)(&q.To), "to", "", "the stand-in's `URI`, human://…")
	cmd.Flags().StringVar(&from, "from", "", "`TIME` such as 2026-12-24T08:00:00Z, or after a time such as 48h (default: now)")
	cmd.Flags().StringVar(&until, "until", "", "`TIME` such as 2027-01-07T08:00:00Z, or after a time such as 168h")
	cmd.PreRunE = func(*cobra.Command, []string) (err error) {
		if q.To == "" || until == "" {
			return usage(errors.New("--to says who stands in, and --until how long"))
		}
		if q.From, err = timeOf("from", from); err == nil {
			q.Until, err = timeOf("until", until)
		}
		if err != nil {
			return usage(err)
		}
		return nil
	}
	return cmd
}

func humanBack() *cobra.Command {
	var q api.SetAway
	return asks(aboutPrincipal(performatives.KindHuman, "back", "end an absence", ""), api.HumanAway, &q, own(&q.Agent, ownAbsence), render.Card)
}

// timeOf reads a time, or a duration from now. "" is the zero time.
func timeOf(flag, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if after, err := time.ParseDuration(text); err == nil {
		return time.Now().Add(after), nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return at, fmt.Errorf("--%s %s: want a time such as 2026-12-24T08:00:00Z, or a duration such as 48h", flag, text)
	}
	return at, nil
}
