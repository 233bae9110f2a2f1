package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.uber.org/zap"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/api/render"
	"github.com/parley-asp/parley/internal/natslogin"
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

// args says how to call a command that check refuses for the number of its arguments.
func args(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if check(cmd, args) != nil {
			return usage(fmt.Errorf("wrong number of arguments (%d); usage: %s", len(args), cmd.UseLine()))
		}
		return nil
	}
}

// flagFault says what a flag or an environment variable, name, wants, if a number or
// a duration cannot be read.
func flagFault(name string, err error) error {
	invalid, ok := errors.AsType[*pflag.InvalidValueError](err)
	if !ok {
		return err
	}
	number, isNumber := errors.AsType[*strconv.NumError](err)
	switch {
	case isNumber && number.Func == "ParseBool":
		return fmt.Errorf("%s: want true or false, not %q", name, invalid.GetValue())
	case isNumber && errors.Is(err, strconv.ErrRange):
		return fmt.Errorf("%s: %s is out of range", name, invalid.GetValue())
	case isNumber:
		return fmt.Errorf("%s: want a number, not %q", name, invalid.GetValue())
	case strings.HasPrefix(invalid.Unwrap().Error(), "time: "):
		return fmt.Errorf("%s: want a duration such as 30s or 2h, not %q", name, invalid.GetValue())
	}
	return fmt.Errorf("%s: %w", name, invalid.Unwrap())
}

// advise adds a sentence, on a line of its own, that says what the user can do.
func advise(err error, format string, args ...any) error {
	return fmt.Errorf("%w\n%s", err, fmt.Sprintf(format, args...))
}

// report prints an error on standard error, and returns the exit status.
func report(cmd *cobra.Command, args []string, err error) int {
	if err == nil {
		return done
	}
	status := failed
	if _, wrong := errors.AsType[misused](err); wrong {
		status = misuse
	}
	if asked(cmd, "log-json") { // serve logs its end, too
		logTo(cmd.ErrOrStderr(), zap.ErrorLevel, true).Error(cmd.CommandPath()+" ends", zap.String("error", withoutPasswords(cmd, err.Error())), zap.Int("status", status))
		return status
	}
	text := plainError(cmd, err, status)
	if wantsJSON(cmd, args) {
		text = jsonError(cmd, err)
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
	text := cmd.CommandPath() + ": " + harmless(withoutPasswords(cmd, err.Error())) + "\n"
	if status == misuse {
		text += "See " + cmd.CommandPath() + " --help.\n"
	}
	return text
}

// jsonError formats an error as the broker formats a refusal. Other errors have
// no code.
func jsonError(cmd *cobra.Command, err error) string {
	message := withoutPasswords(cmd, err.Error())
	var value any = struct {
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}{struct {
		Message string `json:"message"`
	}{message}}
	if refusal, ok := errors.AsType[*session.Refusal](err); ok {
		value = api.Refused(refusal)
	}
	text, fault := json.Marshal(value, json.Deterministic(true), jsontext.WithIndent("  "))
	if fault != nil {
		return harmless(message) + "\n"
	}
	return render.JSON(string(text)) + "\n"
}

// withoutPasswords takes users and passwords out of the URLs in a text, also where a library repeats that of a flag.
func withoutPasswords(cmd *cobra.Command, message string) string {
	for _, flag := range []string{"nats", "url"} {
		message = natslogin.Redact(message, text(cmd, flag))
	}
	return message
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
