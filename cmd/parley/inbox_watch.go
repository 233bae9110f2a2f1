package main

import (
	"context"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/spf13/cobra"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/api/render"
	"github.com/parley-asp/parley/client"
)

func inboxWatch() *cobra.Command {
	var filter api.ListEscalations
	cmd := &cobra.Command{
		Use: "watch", Short: "follow the queue", Args: args(cobra.NoArgs),
		Long: `Shows the queue until you interrupt it. On a terminal it is redrawn when something
changes, and regularly for the time left. Elsewhere each changed item is printed,
with --json as one line of JSON.`,
		Example: "  parley inbox watch" + asAlice,
		RunE:    func(cmd *cobra.Command, _ []string) error { return watch(cmd, filter) },
	}
	queueFlags(cmd, &filter)
	return cmd
}

// redrawEvery is how often a terminal updates the time left.
const redrawEvery = 15 * time.Second

// watch follows the inbox until it is interrupted.
func watch(cmd *cobra.Command, filter api.ListEscalations) error {
	return follows(cmd, func(ctx context.Context, c connection) error { return follow(ctx, cmd, c, filter) })
}

// queue is all that the filter selects, with the counts of all.
func queue(ctx context.Context, c connection, filter api.ListEscalations) (api.Escalations, error) {
	list, _, err := pages(ctx, c, api.EscalationList, filter, listing{})
	return list, err
}

func follow(ctx context.Context, cmd *cobra.Command, c connection, filter api.ListEscalations) error {
	asJSON, screen := asked(cmd, "json"), style(cmd)
	changes := api.WatchEscalations{Urgency: filter.Urgency, Claimed: filter.Claimed, Search: filter.Search}
	seen, err := client.Do(ctx, c, api.EscalationWatch, changes)
	if err != nil {
		return err
	}
	list, err := queue(ctx, c, filter)
	if err != nil {
		return err
	}
	if err := each(cmd, list.Escalations, asJSON, func() string { return draw(list, screen) }); err != nil {
		return err
	}
	for {
		changes.Since, changes.Wait = seen.Cursor, redrawEvery.Milliseconds()
		now, err := client.Do(ctx, c, api.EscalationWatch, changes)
		if err != nil {
			return err
		}
		seen = now
		if screen.Width > 0 && !asJSON || seen.Reset {
			if list, err = queue(ctx, c, filter); err != nil {
				return err
			}
			if err := each(cmd, list.Escalations, asJSON, func() string { return draw(list, screen) }); err != nil {
				return err
			}
			continue
		}
		if len(seen.Changed) == 0 {
			continue
		}
		if err := each(cmd, seen.Changed, asJSON, func() string {
			return render.Escalations(api.Escalations{Escalations: seen.Changed, Now: list.Now}, screen)
		}); err != nil {
			return err
		}
	}
}

// each prints items as JSON lines, else as text.
func each[T any](cmd *cobra.Command, items []T, asJSON bool, drawn func() string) error {
	if !asJSON {
		return say(cmd, drawn())
	}
	for _, item := range items {
		line, err := json.Marshal(item, json.Deterministic(true))
		if err != nil {
			return err
		}
		if err := say(cmd, render.JSON(string(line))+"\n"); err != nil {
			return err
		}
	}
	return nil
}

// draw formats the queue. On a terminal it clears the screen first.
func draw(list api.Escalations, s render.Style) string {
	if !s.Colour {
		return render.Escalations(list, s)
	}
	return "\x1b[H\x1b[2J" + render.Escalations(list, s)
}
