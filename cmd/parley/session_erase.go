package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/api/render"
)

func sessionErase() *cobra.Command {
	var q api.EraseSession
	var yes bool
	cmd := asks(&cobra.Command{
		Use: "erase ID", Short: "erase what was said in a session that has ended",
		Long: `Erases an archived session for everybody. Hashes, receipts and the public log's
proofs are left; 'parley session verify' names what they no longer prove. It does
not reach backups and what participants have exported. Said again, it goes on
where it was interrupted. Only an operator can erase, and only where brokers have
--erasure.`,
		Example:           "  parley session erase " + exampleSession + " --yes",
		ValidArgsFunction: completeFirst(completeSessions),
		Args: func(cmd *cobra.Command, given []string) error {
			if err := args(cobra.ExactArgs(1))(cmd, given); err != nil {
				return err
			}
			if !yes {
				return usage(errors.New("nobody can undo this: confirm it with --yes"))
			}
			return nil
		},
	}, api.SessionErase, &q, func(ctx context.Context, c connection, given []string) (err error) {
		q.Session, err = c.sessionID(ctx, given[0])
		return err
	}, func(e api.ErasedSession, _ render.Style) string {
		return fmt.Sprintf("erased %s: %d hashes and receipts are left\n", e.Session, e.Entries)
	})
	cmd.Flags().BoolVar(&yes, "yes", false, "confirm that it cannot be undone")
	return cmd
}
