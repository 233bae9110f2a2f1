package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"github.com/parley-asp/parley/session/agreement"
)

// formatNames are the protocols to which an agreement can be mapped.
func formatNames() string {
	var names []string
	for _, f := range agreement.Formats() {
		names = append(names, string(f))
	}
	return strings.Join(names, ", ")
}

// A principalOrFormat is the value of a flag --as that names either, or, given twice, both.
type principalOrFormat struct{ principal, format string }

// replaces makes it the value of the command's connection flag --as.
func (v *principalOrFormat) replaces(cmd *cobra.Command, does string) {
	flag := cmd.PersistentFlags().Lookup("as")
	flag.Value, flag.Usage = v, flag.Usage+"; or "+does+" the agreement as "+formatNames()
}

func (v *principalOrFormat) Set(value string) error {
	if strings.Contains(value, "://") {
		v.principal = value
	} else {
		v.format = value
	}
	return nil
}

func (v *principalOrFormat) String() string { return v.principal }

// Type is shown in the help.
func (v *principalOrFormat) Type() string { return "string" }

func mappingOf(d agreement.Document, as string) (agreement.Mapping, error) {
	m, err := d.As(agreement.Format(as))
	if err != nil {
		return m, usage(fmt.Errorf("--as: %w", err))
	}
	return m, nil
}

func writeMapping(cmd *cobra.Command, m agreement.Mapping, file string) error {
	data, err := json.Marshal(m, json.Deterministic(true), jsontext.WithIndent("  "))
	switch {
	case err != nil:
		return err
	case file == "" || file == "-":
		return say(cmd, forTerminal(cmd, string(data)+"\n"))
	}
	return os.WriteFile(file, append(data, '\n'), 0o600)
}
