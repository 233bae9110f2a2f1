package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/spf13/cobra"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/api/render"
	"github.com/parley-asp/parley/performatives"
)

const exampleSession = "019478a3-0001"

func sessionCommand() *cobra.Command {
	return connects(group(&cobra.Command{
		Use: "session", Short: "list, show, follow, verify, export and erase sessions",
		Long: "Sessions as the operator sees them, which is all of them, or with --as those of a\nprincipal.",
	}, sessionLs(), sessionShow(), sessionTail(), sessionVerify(), sessionAudit(), sessionExport(), sessionErase()))
}

func sessionLs() *cobra.Command {
	var q api.ListSessions
	cmd := lists(&cobra.Command{
		Use: "ls", Short: "list sessions, newest first", Args: args(cobra.NoArgs),
		Example: `  parley session ls --state CONVERSING
  parley session ls --awaiting me --as agent://acme.com/alpha --key alpha.nk`,
	}, api.SessionList, &q, nil, func(p api.Sessions, s render.Style) string { return render.Sessions(p.Sessions, s) })
	cmd.Flags().StringVar(&q.State, "state", "", "only sessions in this `STATE`, such as CONVERSING")
	cmd.Flags().StringVar(&q.With, "with", "", "only sessions in which this `URI` or domain takes part")
	before(cmd, func() error {
		_, neither := performatives.ParseAgent(q.With)
		if neither != nil && !strings.Contains(q.With, "/") {
			_, neither = performatives.ParseAgent("agent://" + q.With + "/of")
		}
		if q.With != "" && neither != nil {
			return usage(fmt.Errorf("--with %q is neither a URI such as agent://acme.com/alpha nor a domain such as acme.com", q.With))
		}
		return nil
	})
	cmd.Flags().StringVar(&q.Awaiting, "awaiting", "", "only sessions that wait for an answer of --as; the only `WHOM` is me")
	return cmd
}

func fullFlag(cmd *cobra.Command) {
	cmd.Flags().Bool("full", false, "omit nothing: every line of long messages, every id")
}

func sessionExport() *cobra.Command {
	var file, sealed string
	cmd := &cobra.Command{
		Use: "export ID", Short: "write a transcript as JSON Lines", Args: args(cobra.ExactArgs(1)),
		Long: `Writes the entries as the broker delivered them, one canonical envelope a line.
'parley session verify' checks the file offline, with the broker's public key.

The file is the same for everybody who takes part. What your own organisation has
sealed in it goes to a file of its own, by --sealed.`,
		Example:           "  parley session export " + exampleSession + " -o deal.jsonl",
		ValidArgsFunction: completeFirst(completeSessions),
		RunE: func(cmd *cobra.Command, args []string) error {
			return with(cmd, func(ctx context.Context, c connection) error {
				id, err := c.sessionID(ctx, args[0])
				if err != nil {
					return err
				}
				if sealed != "" {
					if err := exportSealed(ctx, c, id, sealed); err != nil {
						return err
					}
				}
				lines, err := c.messages(ctx, id, 0)
				switch {
				case err != nil:
					return err
				case file == "" || file == "-":
					return say(cmd, forTerminal(cmd, string(export(lines))))
				}
				return os.WriteFile(file, export(lines), 0o600)
			})
		},
	}
	cmd.Flags().StringVarP(&file, "out", "o", "", "`FILE` to write (default: standard output)")
	cmd.Flags().StringVar(&sealed, "sealed", "", "`FILE` to write what your organisation has sealed, for 'session verify --sealed'")
	return cmd
}

// exportSealed writes the parts of a session that are the caller's own organisation's.
func exportSealed(ctx context.Context, c connection, id performatives.SessionID, file string) error {
	parts, err := c.Sealed(ctx, id, 0)
	if err != nil {
		return err
	}
	data, err := json.Marshal(parts, json.Deterministic(true))
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(data, '\n'), 0o600)
}
