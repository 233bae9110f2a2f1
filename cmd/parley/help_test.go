package main

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// TestHelp: the help of every command fits 80 columns, quotes nothing with
// backquotes, states each default once, and has examples.
func TestHelp(t *testing.T) {
	t.Parallel()
	twice := regexp.MustCompile(`\(default[^()]*\)[^()]*\(default`)
	root := rootCommand()
	everyCommand(root, func(cmd *cobra.Command) {
		var out bytes.Buffer
		cmd.SetOut(&out)
		if err := cmd.Help(); err != nil {
			t.Fatal(err)
		}
		help := out.String()
		for line := range strings.SplitSeq(help, "\n") {
			if n := utf8.RuneCountInString(line); n > helpWidth {
				t.Errorf("%s --help: %d columns: %s", cmd.CommandPath(), n, line)
			}
			if strings.Contains(line, "`") {
				t.Errorf("%s --help: a backquote: %s", cmd.CommandPath(), line)
			}
		}
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			name, text := pflag.UnquoteUsage(f)
			switch {
			case strings.HasPrefix(text, "the same"):
				t.Errorf("%s --%s: refers to another flag's text: %s", cmd.CommandPath(), f.Name, text)
			case strings.Contains(name, " ") && strings.ToUpper(name) != name:
				t.Errorf("%s --%s: its value is called %q", cmd.CommandPath(), f.Name, name)
			}
			one := pflag.NewFlagSet("", pflag.ContinueOnError)
			one.AddFlag(f)
			if usage := one.FlagUsages(); twice.MatchString(usage) {
				t.Errorf("%s --%s: two defaults: %s", cmd.CommandPath(), f.Name, usage)
			}
		})
		if cmd.Runnable() && !cmd.HasSubCommands() && cmd.Example == "" && cmd.Name() != "help" && cmd.Parent().Name() != "completion" {
			t.Errorf("%s has no example", cmd.CommandPath())
		}
	})
}

// TestServeHelp: the flags of serve are in groups.
func TestServeHelp(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	root := rootCommand()
	root.SetOut(&out)
	root.SetArgs([]string{"serve", "--help"})
	if err := root.Execute(); err != nil {
		t.Fatal(err)
	}
	rest := out.String()
	for _, text := range []string{"Listeners:", "--listen", "Store:", "--data", "--sync", "Retention:", "External NATS server:", "Escalations and deadlines:", "Limits:", "Log:", "Global flags:"} {
		_, after, found := strings.Cut(rest, text)
		if !found {
			t.Fatalf("%q is missing or out of order:\n%s", text, out.String())
		}
		rest = after
	}
}
