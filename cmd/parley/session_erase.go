package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/api/render"
	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

func sessionErase() *cobra.Command {
	var yes bool
	var who string
	cmd := &cobra.Command{
		Use: "erase [ID | --with URI]", Short: "erase what was said in sessions that have ended",
		Long: `Erases an archived session for everybody. Hashes, receipts and the public log's
proofs are left; 'parley session verify' names what they no longer prove. It does
not reach backups and what participants have exported. Said again, it goes on
where it was interrupted. Only an operator can erase, and only where brokers have
--erasure.

--with erases each session that 'parley session ls --with' lists, and exits with 1 if
some are left, such as one that has not ended. Of a human it also finds the open items
of the inbox, and the last 10,000 that ended, that the human has looked at, claimed,
commented or was assigned.
--timeout applies to each session.`,
		Example: `  parley session erase ` + exampleSession + ` --yes
  parley session erase --with human://acme.com/bob --yes`,
		ValidArgsFunction: completeFirst(completeSessions),
		Args: func(cmd *cobra.Command, given []string) error {
			if err := args(cobra.MaximumNArgs(1))(cmd, given); err != nil {
				return err
			}
			_, wrong := performatives.ParseAgent(who)
			switch {
			case (len(given) == 1) == cmd.Flags().Changed("with"):
				return usage(errors.New("name a session, or whose sessions by --with"))
			case len(given) == 0 && wrong != nil:
				return usage(fmt.Errorf("--with: %w", wrong))
			case !yes:
				return usage(errors.New("nobody can undo this: confirm it with --yes"))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, given []string) error {
			if err := operatorOnly(cmd); err != nil {
				return err
			}
			return manyTimes(cmd, func(ctx context.Context, c connection) error {
				if len(given) == 0 {
					return eraseAll(ctx, cmd, c, who)
				}
				id, err := c.sessionID(ctx, given[0])
				if err != nil {
					return err
				}
				reply, err := client.Do(ctx, c, api.SessionErase, api.EraseSession{Session: id})
				if err != nil {
					return err
				}
				return show(cmd, reply, func(render.Style) string { return erased(reply) })
			})
		},
	}
	cmd.Flags().StringVar(&who, "with", "", "all sessions in which this `URI` takes part")
	cmd.Flags().BoolVar(&yes, "yes", false, "confirm that it cannot be undone")
	return cmd
}

func erased(e api.ErasedSession) string {
	return fmt.Sprintf("erased %s: %d hashes and receipts are left\n", e.Session, e.Entries)
}

// eraseAll erases the sessions of somebody one after the other, and goes on after one that cannot be.
func eraseAll(ctx context.Context, cmd *cobra.Command, c connection, who string) error {
	list, _, err := pages(ctx, c, api.SessionList, api.ListSessions{With: who}, listing{})
	if err != nil {
		return err
	}
	var ids []performatives.SessionID
	for _, s := range list.Sessions {
		ids = append(ids, s.Session)
	}
	if ids, err = withItems(ctx, c, ids, performatives.Agent(who)); err != nil {
		return err
	}
	if len(ids) == 0 {
		note(cmd, who+" takes part in no session: nothing is erased")
	}
	left := 0
	for _, id := range ids {
		reply, err := client.Do(ctx, c, api.SessionErase, api.EraseSession{Session: id})
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if _, refused := errors.AsType[*session.Refusal](err); err != nil && !refused { // nobody answers
			return fmt.Errorf("%s: %w; run the command again for what is left", id, err)
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

// withItems adds the sessions of the items of the inbox that a human is in the case log of. Who only
// commented there is in no transcript.
func withItems(ctx context.Context, c connection, ids []performatives.SessionID, who performatives.Agent) ([]performatives.SessionID, error) {
	if !who.IsHuman() {
		return ids, nil
	}
	for item, err := range c.Escalations(ctx, api.ListEscalations{Status: "all", Organisation: who.Organisation(), Limit: api.MaxPage}) {
		if err != nil {
			return nil, err
		}
		for q := (api.ReadCaseLog{Escalation: string(item.ID)}); !slices.Contains(ids, item.Session); {
			page, err := client.Do(ctx, c, api.EscalationHistory, q)
			if err != nil {
				return nil, err
			}
			if slices.ContainsFunc(page.Actions, func(a api.CaseAction) bool { return a.By == who || a.To == who || a.Absent == who }) {
				ids = append(ids, item.Session)
			}
			if page.Next == nil {
				break
			}
			q.Cursor = *page.Next
		}
	}
	return ids, nil
}
