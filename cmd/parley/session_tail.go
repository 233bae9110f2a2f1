package main

import (
	"context"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"github.com/parley-asp/parley/api/render"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// pollEvery is how often tail polls for new entries. Principals receive no events,
// and a poll costs the broker one small read.
const pollEvery = 300 * time.Millisecond

func sessionTail() *cobra.Command {
	t := &tail{}
	cmd := &cobra.Command{
		Use: "tail ID", Short: "follow a session until it is over", Args: args(cobra.ExactArgs(1)),
		Long: `Shows the session as 'parley session show' does, and then each new act until the
session is over or you interrupt it. With --json it prints one envelope a line.`,
		Example:           "  parley session tail " + exampleSession,
		ValidArgsFunction: completeFirst(completeSessions),
		RunE: func(cmd *cobra.Command, args []string) error {
			t.chat = render.NewChat(style(cmd))
			return follows(cmd, func(ctx context.Context, c connection) error {
				id, err := c.sessionID(ctx, args[0])
				if err != nil {
					return err
				}
				return t.follow(ctx, cmd, c, id)
			})
		},
	}
	cmd.Flags().IntVar(&t.last, "last", -1, "begin with the last `N` acts; -1 begins with the first")
	fullFlag(cmd)
	return cmd
}

type tail struct {
	last int
	chat *render.Chat
	next uint64
}

func (t *tail) follow(ctx context.Context, cmd *cobra.Command, c connection, id performatives.SessionID) error {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		over, err := t.more(ctx, cmd, c, id)
		if err != nil || over {
			return err
		}
		if err := pause(ctx, tick); err != nil {
			return err
		}
	}
}

// more prints the new entries, and reports whether the session is over.
func (t *tail) more(ctx context.Context, cmd *cobra.Command, c connection, id performatives.SessionID) (over bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	lines, err := c.messages(ctx, id, t.next)
	if err != nil {
		return false, err
	}
	entries, err := c.opened(ctx, lines)
	if err != nil {
		return false, err
	}
	for i, e := range entries {
		drawn := t.chat.Add(e)
		early := t.next == 0 && t.last >= 0 && i < len(entries)-t.last
		if !early {
			if err := t.print(cmd, lines[i], drawn); err != nil {
				return false, err
			}
		}
		phase, _ := session.ParsePhase(e.Stamp.Receipt.State)
		over = over || phase.Over()
	}
	t.next += uint64(len(entries))
	return over, nil
}

func (t *tail) print(cmd *cobra.Command, line jsontext.Value, drawn string) error {
	if asked(cmd, "json") {
		return say(cmd, render.JSON(string(line))+"\n")
	}
	return say(cmd, drawn)
}
