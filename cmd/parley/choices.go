package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

var urgencies = []string{"low", "medium", "high", "critical"}

// choices are the values of flags that take one of a few, by command and flag.
var choices = map[string][]string{
	"session ls --awaiting":      {"me"},
	"inbox ls --urgency":         urgencies,
	"inbox ls --status":          {"open", "resolved", "all"},
	"inbox ls --sort":            {"due", "newest", "amount"},
	"inbox ls --outcome":         {"approved", "modified", "denied", "guidance", "expired", "closed"},
	"inbox ls --claimed":         {"me", "nobody", "others"},
	"inbox watch --urgency":      urgencies,
	"inbox watch --claimed":      {"me", "nobody", "others"},
	"check ls --status":          {"open", "over", "all"},
	"check escalate --urgency":   urgencies,
	"check escalate --reason":    {"authority-limit", "confidence-low", "policy-ambiguous", "adversarial-detected"},
	"check delegate --authority": {"advisory", "limited", "full"},
	"agent add --kind":           {"system", "personal"},
	"agent ls --kind":            {"system", "personal", "human"},
	"agent verify-domain --by":   {"operator", "dns", "file"},
	"find --rank":                {"best", "cheapest", "queue", "trust"},
	"nats-config --format":       {"conf", "nsc"},
	"serve --log-level":          {"debug", "info", "warn", "error"},
	"demo --mode":                {"asp", "bilateral", "convergent", "binding", "haggle", "tender", "all"},
	"demo --face":                {"nats", "http", "mcp", "a2a", "macp"},
}

// completeChoices has the shell complete the values of a command's flags.
func completeChoices(cmd *cobra.Command) {
	path := strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()+" ")
	for key, values := range choices {
		if of, flag, _ := strings.Cut(key, " --"); of == path {
			//nolint:errcheck // TestChoices knows that the flag exists
			cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(slices.Clone(values), cobra.ShellCompDirectiveNoFileComp))
		}
	}
	for _, c := range cmd.Commands() {
		completeChoices(c)
	}
}
