package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/render"
	"github.com/parley-asp/parley/transcript"
)

func inboxShow() *cobra.Command {
	var p partial
	cmd := &cobra.Command{
		Use: "show ID", Short: "show an escalation and the conversation behind it", Args: args(cobra.ExactArgs(1)),
		Long: `Shows the conversation, the question, the offer at stake and who decides. What is
too long is cut, and it says so. --part shows a list in full page by page instead.`,
		Example: "  parley inbox show " + exampleEscalation + `
  parley inbox show ` + exampleEscalation + " --part changes",
		ValidArgsFunction: completeFirst(completeEscalations),
		RunE: func(cmd *cobra.Command, args []string) error {
			return with(cmd, func(ctx context.Context, c connection) error {
				id, err := c.escalationID(ctx, args[0])
				if err != nil {
					return err
				}
				if p.part != "" {
					return showItemPart(ctx, cmd, c, id, p)
				}
				return showItem(ctx, cmd, c, id, p)
			})
		},
	}
	p.flags(cmd, api.ItemParts())
	return cmd
}

// showItem shows an item, and as much of the conversation as --limit says.
func showItem(ctx context.Context, cmd *cobra.Command, c connection, id string, p partial) error {
	item, err := c.Escalation(ctx, id)
	if err != nil {
		return err
	}
	if p.cursor == "" && item.Next == nil && (p.limit == 0 || len(item.Transcript) <= p.limit) {
		return drawItem(cmd, item)
	}
	page, err := c.itemPart(ctx, id, partial{p.listing, api.PartTranscript})
	if err != nil {
		return err
	}
	item.Transcript, item.Next = page.Transcript, page.Next
	defer moreOf(cmd, page.Next)
	return drawItem(cmd, item)
}

func drawItem(cmd *cobra.Command, item api.EscalationItem) error {
	talk, err := read(item.Transcript)
	if err != nil {
		return err
	}
	return show(cmd, item, func(s render.Style) string { return chat(talk, s) + "\n" + render.Item(item, s) })
}

func chat(talk []transcript.Entry, s render.Style) string {
	var out strings.Builder
	c := render.NewChat(s)
	for _, e := range talk {
		out.WriteString(c.Add(e))
	}
	return out.String()
}

// itemPart reads up to --limit items of a part, from --cursor on.
func (c connection) itemPart(ctx context.Context, id string, p partial) (all api.EscalationItem, err error) {
	if _, err = p.number(); err != nil {
		return all, err
	}
	_, _, err = pages(ctx, p.listing, func(ctx context.Context, limit int, cursor string) (items []struct{}, next string, err error) {
		var from uint64
		if cursor != "" {
			if from, err = strconv.ParseUint(cursor, 10, 64); err != nil {
				return nil, "", err
			}
		}
		page, err := c.EscalationPart(ctx, api.GetEscalation{Escalation: id, Part: p.part, Limit: limit, Cursor: from})
		if err != nil {
			return nil, "", err
		}
		if page.Next != nil {
			next = fmt.Sprint(*page.Next)
		}
		items = make([]struct{}, len(page.Changes)+len(page.Comments)+len(page.Transcript))
		page.Changes, page.Comments = slices.Concat(all.Changes, page.Changes), slices.Concat(all.Comments, page.Comments)
		page.Transcript = slices.Concat(all.Transcript, page.Transcript)
		all = page
		return items, next, nil
	})
	return all, err
}

func showItemPart(ctx context.Context, cmd *cobra.Command, c connection, id string, p partial) error {
	item, err := c.itemPart(ctx, id, p)
	if err != nil {
		return err
	}
	talk, err := read(item.Transcript)
	if err != nil {
		return err
	}
	defer moreOf(cmd, item.Next)
	return show(cmd, item, func(s render.Style) string {
		switch p.part {
		case api.PartChanges:
			return render.Changes(item.Changes, s)
		case api.PartComments:
			return render.Comments(item.Comments, s)
		}
		return chat(talk, s)
	})
}

// moreOf tells a person how to continue an item's part.
func moreOf(cmd *cobra.Command, next *uint64) {
	if next != nil {
		more(cmd, fmt.Sprint(*next))
	}
}
