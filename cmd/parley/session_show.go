package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/api/render"
	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/performatives"
)

func sessionShow() *cobra.Command {
	var p partial
	cmd := &cobra.Command{
		Use: "show ID", Short: "show a session as a conversation", Args: args(cobra.ExactArgs(1)),
		Long: `Shows what is on the table and what may be done now, then who said what, the terms
of each offer and how they differ from the previous offer: ~ changed, + added,
- removed. The right column is the session's state after each act. Refused acts are
not part of a session.

Of a long session it shows the first message and the newest, and says how many are
left out. --part shows a list of the session's state page by page instead.`,
		Example: "  parley session show " + exampleSession + `
  parley session show ` + exampleSession + " --part proposals --limit 20",
		ValidArgsFunction: completeFirst(completeSessions),
		RunE: func(cmd *cobra.Command, args []string) error {
			return with(cmd, func(ctx context.Context, c connection) error {
				id, err := c.sessionID(ctx, args[0])
				if err != nil {
					return err
				}
				if p.part != "" {
					return showPart(ctx, cmd, c, id, p)
				}
				return showConversation(ctx, cmd, c, id, p)
			})
		},
	}
	p.flags(cmd, api.PartNames())
	return cmd
}

// A partial says how much of something long a show command prints.
type partial struct {
	listing
	part string
}

func (p *partial) flags(cmd *cobra.Command, parts []string) {
	fullFlag(cmd)
	cmd.Flags().StringVar(&p.part, "part", "", "print this `PART` in full, a page of it: "+strings.Join(parts, ", "))
	cmd.Flags().IntVar(&p.limit, "limit", defaultLimit, "print at most `N` messages, or items of the part; 0 prints all")
	cmd.Flags().StringVar(&p.cursor, "cursor", "", "begin at this `CURSOR`: a message's number, or of a part that of the next page")
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		switch {
		case p.part != "" && !slices.Contains(parts, p.part):
			return usage(fmt.Errorf("--part is one of %s", strings.Join(parts, ", ")))
		case asked(cmd, "full") && !cmd.Flags().Changed("limit"):
			p.limit = 0
		}
		return p.check()
	}
}

// number is --cursor as a number.
func (p *partial) number() (uint64, error) {
	if p.cursor == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(p.cursor, 10, 64)
	if err != nil {
		return 0, usage(fmt.Errorf("--cursor %q is not a number", p.cursor))
	}
	return n, nil
}

// A conversation is what session show prints as JSON.
type conversation struct {
	Snapshot api.Snapshot     `json:"snapshot"`
	Session  api.SessionView  `json:"session"`
	Messages []jsontext.Value `json:"messages"`
	Earlier  uint64           `json:"earlier,omitzero"` // messages that are left out before these
	Next     *uint64          `json:"next,omitzero"`    // the first message that is left out after them
}

func showConversation(ctx context.Context, cmd *cobra.Command, c connection, id performatives.SessionID, p partial) error {
	from, err := p.number()
	if err != nil {
		return err
	}
	view, err := c.View(ctx, id)
	if err != nil {
		return err
	}
	deal, err := client.Do(ctx, c, api.SessionSnapshot, api.GetSnapshot{Session: id})
	if err != nil {
		return err
	}
	found := conversation{Snapshot: deal, Session: view, Messages: []jsontext.Value{}}
	total := uint64(0)
	if last := view.Head.Sequence; last != nil {
		total = *last + 1
	}
	to, most := total, uint64(p.limit) //nolint:gosec // flags checks it
	if p.limit > 0 && total > most {
		if p.cursor == "" {
			from = total - most
		}
		to = min(total, from+most)
	}
	found.Earlier = min(from, total)
	if found.Messages, err = c.between(ctx, id, from, to); err != nil {
		return err
	}
	if to < total {
		found.Next = &to
	}
	lines := found.Messages
	if from > 0 && !asked(cmd, "json") { // the first has the heading
		first, err := c.between(ctx, id, 0, 1)
		if err != nil {
			return err
		}
		lines = slices.Concat(first, lines)
	}
	entries, err := c.opened(ctx, lines)
	if err != nil {
		return err
	}
	return show(cmd, found, func(s render.Style) string {
		return render.Deal(deal, s) + "\n" + render.Conversation(entries, view, s)
	})
}

// between returns the messages of a session from a sequence number to another.
func (c connection) between(ctx context.Context, id performatives.SessionID, from, to uint64) ([]jsontext.Value, error) {
	found := []jsontext.Value{}
	if from >= to {
		return found, nil
	}
	for raw, err := range c.Envelopes(ctx, id, from) {
		if err != nil {
			return nil, err
		}
		if found = append(found, raw); uint64(len(found)) == to-from {
			break
		}
	}
	return found, nil
}

func showPart(ctx context.Context, cmd *cobra.Command, c connection, id performatives.SessionID, p partial) error {
	view, next, err := pages(ctx, c, api.SessionGet, api.GetSession{Session: id, Part: p.part}, p.listing)
	if err != nil {
		return err
	}
	defer more(cmd, next)
	return show(cmd, view, func(s render.Style) string { return render.Part(view, p.part, s) })
}
