package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/api/render"
	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/performatives"
)

func sessionErase() *cobra.Command {
	var yes bool
	var who string
	cmd := &cobra.Command{
		Use: "erase [ID | --with URI]", Short: "erase what was said in sessions that have ended",
		Long: `Erases an archived session for everybody, or all of one person. Hashes, receipts
and the public log's proofs are left; 'parley session verify' names what they no
longer prove. It does not reach backups and what participants have exported. Said
again, it goes on where it was interrupted. Only an operator can erase, and only
where brokers have --erasure.

--with erases each session that 'parley session ls --with' lists. It exits with 1 if
some are left, and says why, such as a session that has not ended.`,
		Example: `  parley session erase ` + exampleSession + ` --yes
  parley session erase --with human://acme.com/bob --yes`,
		ValidArgsFunction: completeFirst(completeSessions),
		Args: func(cmd *cobra.Command, given []string) error {
			if err := args(cobra.MaximumNArgs(1))(cmd, given); err != nil {
				return err
			}
			switch {
			case (len(given) == 1) == (who != ""):
				return usage(errors.New("name a session, or whose sessions by --with"))
			case !yes:
				return usage(errors.New("nobody can undo this: confirm it with --yes"))
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&who, "with", "", "all sessions in which this `URI` or domain takes part")
	cmd.Flags().BoolVar(&yes, "yes", false, "confirm that it cannot be undone")
	var one api.EraseSession
	var all []performatives.SessionID
	return runs(cmd, api.SessionErase.Verb, func(ctx context.Context, c connection, given []string) (err error) {
		if who == "" {
			one.Session, err = c.sessionID(ctx, given[0])
			return err
		}
		list, _, err := pages(ctx, c, api.SessionList, api.ListSessions{With: who}, listing{})
		for _, s := range list.Sessions {
			all = append(all, s.Session)
		}
		return err
	}, func(ctx context.Context, cmd *cobra.Command, c connection) error {
		if who != "" {
			return eraseEach(ctx, cmd, c, all)
		}
		reply, err := client.Do(ctx, c, api.SessionErase, one)
		if err != nil {
			return err
		}
		return show(cmd, reply, func(render.Style) string { return erased(reply) })
	})
}

func erased(e api.ErasedSession) string {
	return fmt.Sprintf("erased %s: %d hashes and receipts are left\n", e.Session, e.Entries)
}

// eraseEach erases sessions one after the other, and goes on after one that cannot be.
func eraseEach(ctx context.Context, cmd *cobra.Command, c connection, ids []performatives.SessionID) error {
	left := 0
	for _, id := range ids {
		reply, err := client.Do(ctx, c, api.SessionErase, api.EraseSession{Session: id})
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			left++
			note(cmd, fmt.Sprintf("%s: %v", id, err))
			continue
		}
		if err := each(cmd, []api.ErasedSession{reply}, asked(cmd, "json"), func() string { return erased(reply) }); err != nil {
			return err
		}
	}
	if left > 0 {
		return fmt.Errorf("%d of %d sessions are not erased", left, len(ids))
	}
	return nil
}
