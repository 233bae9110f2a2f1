package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/api/render"
	"github.com/parley-asp/parley/session/transcript"
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
	page, next, err := pages(ctx, c, api.EscalationGet, api.GetEscalation{Escalation: id, Part: api.PartTranscript}, p.listing)
	if err != nil {
		return err
	}
	item.Transcript, item.Opens, item.Next = page.Transcript, page.Opens, page.Next
	defer more(cmd, next)
	return drawItem(cmd, item)
}

func drawItem(cmd *cobra.Command, item api.EscalationItem) error {
	talk, err := readItem(item)
	if err != nil {
		return err
	}
	return show(cmd, item, func(s render.Style) string { return chat(talk, s) + "\n" + render.Item(item, s) })
}

// readItem reads the conversation of an item.
func readItem(item api.EscalationItem) ([]transcript.Entry, error) {
	talk := make([]transcript.Entry, len(item.Transcript))
	for i, data := range item.Transcript {
		var err error
		if talk[i], err = transcript.ReadOpened(data, item.Opens); err != nil {
			return nil, err
		}
	}
	return talk, nil
}

func chat(talk []transcript.Entry, s render.Style) string {
	var out strings.Builder
	c := render.NewChat(s)
	for _, e := range talk {
		out.WriteString(c.Add(e))
	}
	return out.String()
}

func showItemPart(ctx context.Context, cmd *cobra.Command, c connection, id string, p partial) error {
	item, next, err := pages(ctx, c, api.EscalationGet, api.GetEscalation{Escalation: id, Part: p.part}, p.listing)
	if err != nil {
		return err
	}
	talk, err := readItem(item)
	if err != nil {
		return err
	}
	defer more(cmd, next)
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
