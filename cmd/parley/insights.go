package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
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
				return show(cmd, found, func(render.Style) string { return insightsText(found, asked(cmd, "digest")) })
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

func insightsText(f api.Insights, digest bool) string {
	var b strings.Builder
	day := func(text string) string { return text[:min(len(text), len("2006-01-02"))] }
	ended := "sessions"
	if f.Sessions == 1 {
		ended = "session"
	}
	fmt.Fprintf(&b, "%s to %s: %d %s ended; open now: %d.\n", day(f.Since), day(f.Until), f.Sessions, ended, f.Open)
	if f.Sessions == 0 {
		return b.String()
	}
	fmt.Fprintf(&b, "%d agreed, %d rejected, %d stalled, %d failed.\n", f.Ends.Agreed, f.Ends.Rejected, f.Ends.Stalled, f.Ends.Failed)
	if digest {
		f.Modes, f.Turns = nil, nil
	}
	for _, m := range f.Modes {
		fmt.Fprintf(&b, "  %-14s %d agreed, %d rejected, %d stalled, %d failed\n", render.Clean(m.Mode), m.Agreed, m.Rejected, m.Stalled, m.Failed)
	}
	for _, t := range f.Types {
		fmt.Fprintf(&b, "Of %s: %d accepted, %d rejected, %d stalled.\n", render.Clean(t.Type), t.Agreed, t.Rejected, t.Stalled)
	}
	for _, s := range f.Scenarios {
		fmt.Fprintf(&b, "Between %s: %d accepted, %d rejected, %d stalled.\n", render.Clean(s.Scenario), s.Agreed, s.Rejected, s.Stalled)
	}
	if f.Agreed.Count > 0 {
		fmt.Fprintf(&b, "Agreement took %s in the median, and at most %s in nine of ten.\n", took(f.Agreed.Median), took(f.Agreed.P90))
	}
	if !digest {
		b.WriteString("Turns taken:\n")
	}
	for _, t := range f.Turns {
		fmt.Fprintf(&b, "  %3d %s %d\n", t.Turns, strings.Repeat("▇", max(1, 40*t.Sessions/f.Sessions)), t.Sessions)
	}
	for _, list := range []struct {
		title string
		names []api.Frequency
	}{{"Most countered", f.Terms}, {"Rejected for", f.Rejects}, {"Asked about", f.Asked}, {"Common objections", f.Objections}} {
		if len(list.names) == 0 {
			continue
		}
		fmt.Fprintf(&b, "%s:", list.title)
		for i, n := range list.names[:min(len(list.names), 8)] {
			if i > 0 {
				b.WriteString(",")
			}
			fmt.Fprintf(&b, " %s (%d)", render.Clean(n.Name), n.Count)
		}
		b.WriteString("\n")
	}
	if e := f.Escalated; e.Time.Count+e.Expired > 0 {
		fmt.Fprintf(&b, "Escalations: %d approved, %d denied, %d modified, %d with guidance, %d undecided.\n", e.Approved, e.Denied, e.Modified, e.Guidance, e.Expired)
		if e.Time.Count > 0 {
			fmt.Fprintf(&b, "Decisions took %s in the median.\n", took(e.Time.Median))
		}
	}
	return b.String()
}

func took(ms int64) string { return (time.Duration(ms) * time.Millisecond).Round(time.Second).String() }
