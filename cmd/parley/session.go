package main

import (
	"context"
	"os"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/render"
)

func sessionCommand() *cobra.Command {
	return connects(group(&cobra.Command{
		Use: "session", Short: "list, show, follow, verify and export sessions",
		Long: "Sessions as the operator sees them, which is all of them, or with --as those that\na principal takes part in.",
	}, sessionLs(), sessionShow(), sessionTail(), sessionVerify(), sessionExport()))
}

func sessionLs() *cobra.Command {
	var filter api.ListSessions
	cmd := &cobra.Command{
		Use: "ls", Short: "list sessions, newest first", Args: args(cobra.NoArgs),
		Example: `  parley session ls --state CONVERSING
  parley session ls --as agent://acme.com/procurement/alpha --key alpha.nk --awaiting me`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return with(cmd, func(ctx context.Context, c connection) error {
				list, err := all(c.Sessions(ctx, filter))
				if err != nil {
					return err
				}
				return show(cmd, api.Sessions{Sessions: list}, func(s render.Style) string { return render.Sessions(list, s) })
			})
		},
	}
	cmd.Flags().StringVar(&filter.State, "state", "", "only those in this state, such as CONVERSING")
	cmd.Flags().StringVar(&filter.Awaiting, "awaiting", "", "me: only those that wait for an answer of the principal that --as names")
	return cmd
}

func sessionShow() *cobra.Command {
	cmd := &cobra.Command{
		Use: "show ID", Short: "show a session as a conversation", Args: args(cobra.ExactArgs(1)),
		Long: `Shows who said what, the terms of each offer and how they changed from the offer
before: ~ changed, + added, - removed. At the right is the session's state after
each act. What was refused took no place in the session and is not shown.`,
		Example: "  parley session show 019478a3-0001-7def-8a12-000000000001",
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := sessionID(args[0])
			if err != nil {
				return err
			}
			return with(cmd, func(ctx context.Context, c connection) error {
				view, lines, err := c.upTo(ctx, id)
				if err != nil {
					return err
				}
				entries, err := read(lines)
				if err != nil {
					return err
				}
				return show(cmd, conversation{view, lines}, func(s render.Style) string {
					return render.Conversation(entries, view, s)
				})
			})
		},
	}
	cmd.Flags().Bool("full", false, "leave nothing out: every line of long messages, every id")
	return cmd
}

// A conversation is what session show prints as JSON.
type conversation struct {
	Session  api.SessionView  `json:"session"`
	Messages []jsontext.Value `json:"messages"`
}

func sessionExport() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use: "export ID", Short: "write a transcript as JSON Lines", Args: args(cobra.ExactArgs(1)),
		Long:    "Writes the entries as they were delivered, one canonical envelope per line: what\n`parley session verify` checks, with nothing but the broker's public key.",
		Example: "  parley session export 019478a3-0001-7def-8a12-000000000001 -o deal.jsonl",
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := sessionID(args[0])
			if err != nil {
				return err
			}
			return with(cmd, func(ctx context.Context, c connection) error {
				lines, err := c.messages(ctx, id, 0)
				switch {
				case err != nil:
					return err
				case file == "" || file == "-":
					return say(cmd, string(export(lines)))
				}
				return os.WriteFile(file, export(lines), 0o600)
			})
		},
	}
	cmd.Flags().StringVarP(&file, "out", "o", "", "file to write (default: standard output)")
	return cmd
}
