package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/parley-asp/parley/api"
)

// defaultLimit is how many items a list prints unless --limit says otherwise.
const defaultLimit = 100

// A listing is what every ls command is told by --limit and --cursor.
type listing struct {
	limit  int
	cursor string
}

func (l *listing) flags(cmd *cobra.Command) {
	cmd.Flags().IntVar(&l.limit, "limit", defaultLimit, "print at most `N` items; 0 prints all")
	cmd.Flags().Bool("full", false, "do not shorten ids or truncate columns")
	cmd.Flags().StringVar(&l.cursor, "cursor", "", "continue after the page that ended with this `CURSOR`")
}

// pages collects items up to --limit, and returns the cursor of the next page.
func pages[E any](ctx context.Context, l listing, fetch func(ctx context.Context, limit int, cursor string) (items []E, next string, err error)) (all []E, next string, err error) {
	if l.limit < 0 {
		return nil, "", usage(errors.New("--limit is 0 or more"))
	}
	all, next = []E{}, l.cursor
	for {
		limit := api.MaxPage
		if l.limit > 0 {
			limit = min(l.limit-len(all), api.MaxPage)
		}
		var items []E
		items, next, err = fetch(ctx, limit, next)
		if err != nil {
			return nil, "", err
		}
		all = append(all, items...)
		if next == "" || l.limit > 0 && len(all) >= l.limit {
			return all, next, nil
		}
	}
}

// more tells a person how to continue a list.
func more(cmd *cobra.Command, next string) {
	if next != "" && !asked(cmd, "json") {
		note(cmd, "There are more: --cursor "+next+" continues the list.")
	}
}
