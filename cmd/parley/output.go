package main

import (
	"io"
	"os"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/parley-asp/parley/api/render"
)

// say prints text.
func say(cmd *cobra.Command, text string) error {
	_, err := io.WriteString(cmd.OutOrStdout(), text)
	return err
}

// note prints a message on standard error.
func note(cmd *cobra.Command, text string) {
	io.WriteString(cmd.ErrOrStderr(), harmless(text)+"\n") //nolint:errcheck // nowhere to report it
}

// show prints data, as JSON with --json, else as text.
func show(cmd *cobra.Command, data any, draw func(render.Style) string) error {
	if !asked(cmd, "json") {
		return say(cmd, draw(style(cmd)))
	}
	text, err := json.Marshal(data, json.Deterministic(true), jsontext.WithIndent("  "))
	if err != nil {
		return err
	}
	return say(cmd, render.JSON(string(text))+"\n")
}

// asked reports whether a boolean flag is set. It is false for a command without the flag.
func asked(cmd *cobra.Command, flag string) bool {
	yes, err := cmd.Flags().GetBool(flag)
	return err == nil && yes
}

// text returns a flag's value, or "" for a command without the flag.
func text(cmd *cobra.Command, flag string) string {
	f := cmd.Flags().Lookup(flag)
	if f == nil {
		return ""
	}
	return f.Value.String()
}

// terminal returns the output if it is a terminal, else nil.
func terminal(cmd *cobra.Command) *os.File {
	file, ok := cmd.OutOrStdout().(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return nil
	}
	return file
}

// forTerminal escapes JSON that a program gets byte for byte.
func forTerminal(cmd *cobra.Command, text string) string {
	if terminal(cmd) == nil {
		return text
	}
	return render.JSON(text)
}

// style returns the style of the output: colour only on a terminal, and never with
// NO_COLOR (no-color.org).
func style(cmd *cobra.Command) render.Style {
	s := render.Style{Full: asked(cmd, "full")}
	if columns, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && columns > 0 {
		s.Width = columns
	}
	file := terminal(cmd)
	if file == nil {
		return s
	}
	s.Colour = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	if columns, _, err := term.GetSize(int(file.Fd())); err == nil && columns > 0 {
		s.Width = columns
	}
	return s
}
