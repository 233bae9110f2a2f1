package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"github.com/parley-asp/parley/render"
	"github.com/parley-asp/parley/session"
)

// Exit statuses.
const (
	done   = 0
	failed = 1
	misuse = 2
)

// A misused command line.
type misused struct{ error }

func (m misused) Unwrap() error { return m.error }

func usage(err error) error { return misused{err} }

// args makes what cobra says of arguments a wrong command line.
func args(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return usage(fmt.Errorf("%w: %s", err, cmd.UseLine()))
		}
		return nil
	}
}

func lookup(name string) (string, bool) { return os.LookupEnv(name) }

// report says on standard error why a command did not do what it should, and
// returns the exit status.
func report(cmd *cobra.Command, err error) int {
	if err == nil {
		return done
	}
	out := cmd.ErrOrStderr()
	if wrong, ok := errors.AsType[misused](err); ok {
		fmt.Fprintf(out, "%s: %v\nSee %s --help.\n", cmd.CommandPath(), wrong, cmd.CommandPath()) //nolint:errcheck // nowhere to say so
		return misuse
	}
	if refusal, ok := errors.AsType[*session.Refusal](err); ok {
		fmt.Fprintf(out, "%s: refused: %s: %s\n%s", cmd.CommandPath(), refusal.Code, render.Clean(refusal.Message), details(refusal)) //nolint:errcheck // nowhere to say so
		return failed
	}
	fmt.Fprintf(out, "%s: %s\n", cmd.CommandPath(), harmless(err.Error())) //nolint:errcheck // nowhere to say so
	return failed
}

// harmless is an error's text, whose line feeds are ours and whose other text
// may not be.
func harmless(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = render.Clean(line)
	}
	return strings.Join(lines, "\n")
}

// details are a refusal's, one fault or one value a line.
func details(r *session.Refusal) string {
	raw, ok := r.Details.(jsontext.Value)
	if !ok {
		return ""
	}
	var faults []session.Fault
	if raw.Kind() == '[' && json.Unmarshal(raw, &faults) == nil {
		var b strings.Builder
		for _, f := range faults {
			fmt.Fprintf(&b, "  %s\n", render.Clean(fmt.Sprintf("%s: %s (%s)", f.Path, f.Message, f.Rule)))
		}
		return b.String()
	}
	return "  " + render.Clean(string(raw)) + "\n"
}
