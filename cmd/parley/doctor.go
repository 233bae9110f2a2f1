package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/parley-asp/parley/api/render"
	"github.com/parley-asp/parley/server"
)

// doctorFlags are the flags of serve that the help of doctor shows. It takes all.
var doctorFlags = []string{configFlag, "data", "listen", "http", "nats", "nats-ca", "creds", "nkey", "context", "replicas", "tls-cert", "tls-key", "tls-ca"}

func doctorCommand() *cobra.Command {
	s := &serve{}
	cmd := &cobra.Command{
		Use: "doctor", Short: "say what is wrong with an installation, and what to do", Args: args(cobra.NoArgs),
		Long: `Examines the installation that 'parley serve' would run with the same flags and
configuration file, whether a broker runs or not: the configuration, the data
directory, fsync, disk, clock, keys, certificates, ports, and with --nats the NATS
server, its version, the broker's accounts and the settings of the streams. Those
of an embedded server it examines while the broker runs.

Each line is ok, warn or fail. With a fail, the exit status is 1. It prints no
secrets and changes nothing, apart from a file of 4 KiB in --data that it writes,
fsyncs and removes. All flags of 'parley serve' are taken.`,
		Example: `  parley doctor --config /etc/parley/parley.yaml
  parley doctor --nats nats://nats.example.com --json`,
		RunE: func(cmd *cobra.Command, _ []string) error { return s.doctor(cmd) },
	}
	s.flags(cmd.Flags())
	cmd.Flags().VisitAll(func(f *pflag.Flag) { f.Hidden = !slices.Contains(doctorFlags, f.Name) })
	return cmd
}

func (s *serve) doctor(cmd *cobra.Command) error {
	var findings []server.Finding
	var err error
	if s.config != "" {
		err = readConfig(s.config, cmd.Flags())
	}
	if err == nil {
		err = s.complete(cmd.Flags(), io.Discard)
	}
	switch {
	case err != nil:
		findings = append(findings, server.Finding{
			Status: server.Fail, Check: "configuration", What: strings.ReplaceAll(withoutPasswords(cmd, err.Error()), "\n", "; "), Do: "'parley config check' checks the file, 'parley serve --help' lists the flags.",
		})
	case s.config != "":
		findings = append(findings, server.Finding{Status: server.OK, Check: "configuration", What: s.config + " is valid"})
	}
	findings = append(findings, server.Examine(cmd.Context(), s.Options)...)
	if err := show(cmd, findings, func(render.Style) string { return findingLines(findings) }); err != nil {
		return err
	}
	failed := 0
	for _, f := range findings {
		if f.Status == server.Fail {
			failed++
		}
	}
	if failed == 0 {
		return nil
	}
	return errors.New(render.Count(failed, "check", "checks") + " failed")
}

// findingLines prints each finding on a line.
func findingLines(findings []server.Finding) string {
	var b strings.Builder
	for _, f := range findings {
		line := fmt.Sprintf("%-4s  %-13s  %s", f.Status, f.Check, f.What)
		if f.Do != "" {
			line += ". " + f.Do
		}
		b.WriteString(render.Clean(line) + "\n")
	}
	return b.String()
}
