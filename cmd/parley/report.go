package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/render"
	"github.com/parley-asp/parley/session"
)

// Exit statuses (PROTOCOL.md §10).
const (
	done   = 0
	failed = 1
	misuse = 2
)

// misused is a wrong command line.
type misused struct{ error }

func (m misused) Unwrap() error { return m.error }

func usage(err error) error { return misused{err} }

// args turns cobra's argument errors into usage errors.
func args(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return usage(fmt.Errorf("%w: %s", err, cmd.UseLine()))
		}
		return nil
	}
}

// advise adds a sentence, on a line of its own, that says what the user can do.
func advise(err error, format string, args ...any) error {
	return fmt.Errorf("%w\n%s", err, fmt.Sprintf(format, args...))
}

func lookup(name string) (string, bool) { return os.LookupEnv(name) }

// report prints an error on standard error, and returns the exit status.
func report(cmd *cobra.Command, args []string, err error) int {
	if err == nil {
		return done
	}
	status := failed
	if _, wrong := errors.AsType[misused](err); wrong {
		status = misuse
	}
	text := plainError(cmd, err, status)
	if wantsJSON(cmd, args) {
		text = jsonError(err)
	}
	io.WriteString(cmd.ErrOrStderr(), text) //nolint:errcheck // nowhere to report it
	return status
}

// wantsJSON reports whether --json is set, even if the flags could not be parsed.
func wantsJSON(cmd *cobra.Command, args []string) bool {
	env, _ := lookup("PARLEY_JSON")
	return asked(cmd, "json") || !cmd.Flags().Changed("json") && (env == "true" || slices.Contains(args, "--json"))
}

func plainError(cmd *cobra.Command, err error, status int) string {
	if refusal, ok := errors.AsType[*session.Refusal](err); ok {
		return fmt.Sprintf("%s: refused: %s (%s)\n%s", cmd.CommandPath(), render.Clean(refusal.Message), refusal.Code, faults(refusal))
	}
	text := cmd.CommandPath() + ": " + harmless(err.Error()) + "\n"
	if status == misuse {
		text += "See " + cmd.CommandPath() + " --help.\n"
	}
	return text
}

// jsonError formats an error as the broker formats a refusal. Other errors have
// no code.
func jsonError(err error) string {
	var value any = struct {
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}{struct {
		Message string `json:"message"`
	}{err.Error()}}
	if refusal, ok := errors.AsType[*session.Refusal](err); ok {
		value = api.Refused(refusal)
	}
	text, fault := json.Marshal(value, json.Deterministic(true), jsontext.WithIndent("  "))
	if fault != nil {
		return harmless(err.Error()) + "\n"
	}
	return render.JSON(string(text)) + "\n"
}

// harmless escapes an error's text. Only its line feeds are ours.
func harmless(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = render.Clean(line)
	}
	return strings.Join(lines, "\n")
}

// faults lists the schema faults of a refusal, one a line.
func faults(r *session.Refusal) string {
	raw, ok := r.Details.(jsontext.Value)
	var list []session.Fault
	if !ok || raw.Kind() != '[' || json.Unmarshal(raw, &list) != nil {
		return ""
	}
	var b strings.Builder
	for _, f := range list {
		fmt.Fprintf(&b, "  %s\n", render.Clean(fmt.Sprintf("%s: %s (%s)", f.Path, f.Message, f.Rule)))
	}
	return b.String()
}
