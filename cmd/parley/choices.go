package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

var urgencies = []string{"low", "medium", "high", "critical"}

// rankFlag takes more than its choices: a choice with a least score, or weights.
const rankFlag = "find --rank"

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
	"commitments reject --code":  {"late", "incomplete", "mismatch", "evidence_missing", "unspecified"},
	"dispute open --ground":      {"non-delivery", "late", "mismatch", "unauthorized-change", "escrow", "other"},
	"agent add --kind":           {"system", "personal"},
	"agent ls --kind":            {"system", "personal", "human", everyKind},
	"agent verify-domain --by":   {"operator", "dns", "file"},
	rankFlag:                     {"best", "cheapest", "queue", "trust"},
	"nats-config --format":       {"conf", "nsc"},
	"serve --log-level":          {"debug", "info", "warn", "error"},
	"demo --mode":                {"asp", "bilateral", "convergent", "binding", "haggle", "tender", "delivery", "all"},
	"mcp --tools":                {"all"},
	"demo --face":                {"nats", "http", "mcp", "a2a", "macp"},
}

// offerChoices has the shell complete the values of a command's flags, and refuses all others.
func offerChoices(cmd *cobra.Command) {
	path := strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()+" ")
	for key, values := range choices {
		if of, flag, _ := strings.Cut(key, " --"); of == path {
			//nolint:errcheck // TestChoices knows that the flag exists
			cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(slices.Clone(values), cobra.ShellCompDirectiveNoFileComp))
			if key != rankFlag {
				before(cmd, func() error { return oneOf(cmd, flag, values) })
			}
		}
	}
	for _, c := range cmd.Commands() {
		offerChoices(c)
	}
}

// oneOf refuses a value of a flag that is none of these.
func oneOf(cmd *cobra.Command, flag string, values []string) error {
	f, given := cmd.Flags().Lookup(flag), text(cmd, flag)
	if given == f.DefValue || f.Value.Type() != "string" || slices.Contains(values, given) {
		return nil
	}
	return usage(fmt.Errorf("--%s %s: want %s", flag, given, anyOf(values)))
}

// anyOf is a list such as "a, b or c".
func anyOf(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}
