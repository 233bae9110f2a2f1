package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/api/render"
	"github.com/parley-asp/parley/client"
)

func insightsCommand() *cobra.Command {
	var q api.GetInsights
	var last time.Duration
	cmd := &cobra.Command{
		Use: "insights", Short: "show how sessions went that ended in a time", Args: args(cobra.NoArgs),
		Long: `Shows how sessions ended, how many turns and how long they took, what was countered,
rejected and asked, and what was decided. A human who may decide, or an auditor,
sees the organisation's sessions, an agent its own, and the operator all. The
archive counts too. While the broker still reads, the command asks again.`,
		Example: `  parley insights
  parley insights --digest --as human://acme.com/alice --key alice.nk
  parley insights --last 720h --mode bilateral/1 --json`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if last <= 0 {
				return usage(errors.New("--last is a duration such as 168h"))
			}
			now := time.Now().UTC()
			q.Since, q.Until = api.Timestamp(now.Add(-last)), api.Timestamp(now)
			return with(cmd, func(ctx context.Context, c connection) error {
				found, err := c.insights(ctx, cmd, q)
				if err != nil {
					return err
				}
				return show(cmd, found, func(render.Style) string { return render.Insights(found, asked(cmd, "digest")) })
			})
		},
	}
	cmd.Flags().Bool("digest", false, "print the sentences only, without modes and turns")
	cmd.Flags().DurationVar(&last, "last", 7*24*time.Hour, "how long ago sessions ended at most")
	cmd.Flags().StringVar(&q.Mode, "mode", "", "only sessions in this `MODE`")
	return connects(cmd)
}

// insights asks until the broker has read all.
func (c connection) insights(ctx context.Context, cmd *cobra.Command, q api.GetInsights) (found api.Insights, err error) {
	for {
		found, err = client.Do(ctx, c, api.InsightsGet, q)
		if err != nil || found.Complete {
			return found, err
		}
		note(cmd, fmt.Sprintf("read %d of %d sessions", found.Read, found.Of))
	}
}
