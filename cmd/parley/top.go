package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/api/render"
	"github.com/parley-asp/parley/server/activity"
)

func topCommand() *cobra.Command {
	every, count := 2*time.Second, 0
	cmd := &cobra.Command{
		Use: "top MONITOR…", Short: "show what brokers do now", Args: args(cobra.MinimumNArgs(1)),
		Long: `Shows, until you interrupt it, the acts of each second and how long they take, what
waits, and what is open. MONITOR is HOST:PORT of a broker's --monitor; name those of
all brokers. Times are of the acts since the page before, to within a tenth. Elsewhere
than on a terminal pages follow each other, with --json as one line of JSON each.`,
		Example: `  parley top 127.0.0.1:8081
  parley top --count 1 --json broker-1:8081 broker-2:8081`,
		RunE: func(cmd *cobra.Command, monitors []string) error {
			if every < time.Second || every > time.Hour {
				return usage(errors.New("--every is from 1s to 1h"))
			}
			if count < 0 {
				return usage(errors.New("--count is 0 or more"))
			}
			for i, monitor := range monitors {
				monitors[i] = strings.TrimSuffix(strings.TrimRight(strings.TrimPrefix(monitor, "http://"), "/"), "/metrics")
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			err := top(ctx, cmd, monitors, every, count)
			if ctx.Err() != nil {
				return nil
			}
			return err
		},
	}
	cmd.Flags().DurationVar(&every, "every", every, "the time between pages, from 1s to 1h")
	cmd.Flags().IntVar(&count, "count", 0, "how many pages to show; 0 is without an end")
	return cmd
}

// top shows pages.
func top(ctx context.Context, cmd *cobra.Command, monitors []string, every time.Duration, count int) error {
	before := scrapeAll(ctx, monitors)
	if failed := before.failure(); failed != nil {
		return failed
	}
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for shown := 0; count == 0 || shown < count; shown++ {
		if err := pause(ctx, ticker); err != nil {
			return err
		}
		now := scrapeAll(ctx, monitors)
		page := newTopPage(monitors, before, now)
		if err := each(cmd, []topPage{page}, asked(cmd, "json"), func() string { return page.text(style(cmd)) }); err != nil {
			return err
		}
		before = now
	}
	return nil
}

// A topPage is what goes on, of all brokers together.
type topPage struct {
	At      string      `json:"at"`
	Brokers []topBroker `json:"brokers"`
	api.Activity
}

type topBroker struct {
	Monitor string `json:"monitor"`
	Error   string `json:"error,omitzero"`
	api.BrokerUse
}

func newTopPage(monitors []string, before, now scrape) topPage {
	p := topPage{At: api.Timestamp(now.At), Activity: activity.Between(before.Sample, now.Sample)}
	for i, monitor := range monitors {
		if err := now.failed[i]; err != nil {
			p.Brokers = append(p.Brokers, topBroker{Monitor: monitor, Error: err.Error()})
			continue
		}
		p.Brokers = append(p.Brokers, topBroker{Monitor: monitor, BrokerUse: now.Brokers[i].Uses()})
	}
	return p
}

// text draws a page; on a terminal it clears the screen first.
func (p topPage) text(s render.Style) string {
	var out strings.Builder
	if s.Colour {
		out.WriteString("\x1b[H\x1b[2J")
	}
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	line := func(cells ...any) {
		var row []string
		for _, cell := range cells {
			row = append(row, fmt.Sprint(cell))
		}
		io.WriteString(w, strings.Join(row, "\t")+"\n") //nolint:errcheck // into memory
	}
	line(p.At)
	line()
	line("BROKER", "READY", "VERSION", "PARTITIONS", "CACHED", "MEMORY", "DISK FREE")
	for _, b := range p.Brokers {
		if b.Error != "" { // which is below the table: it would widen a column
			line(harmless(b.Monitor), "no", "", "", "", "", "")
			continue
		}
		free := "-" // of a broker that is starting
		if b.DiskFree != nil {
			free = mebibytes(*b.DiskFree)
		}
		line(harmless(b.Monitor), map[bool]string{true: "yes", false: "no"}[b.Ready], harmless(b.Version), b.Partitions, b.Cached, mebibytes(b.Memory), free)
	}
	for _, b := range p.Brokers {
		if b.Error != "" {
			line(harmless(b.Monitor) + ": " + harmless(b.Error))
		}
	}
	line()
	line("ACTS/s", "ACCEPTED", "REPEATED", "REFUSED")
	var sum api.ActRates
	for _, a := range p.Acts {
		sum.Accepted, sum.Repeated, sum.Refused = sum.Accepted+a.Accepted, sum.Repeated+a.Repeated, sum.Refused+a.Refused
		if a.Accepted+a.Repeated+a.Refused > 0 {
			line(harmless(a.Performative), render.Rate(a.Accepted), render.Rate(a.Repeated), render.Rate(a.Refused))
		}
	}
	line("all", render.Rate(sum.Accepted), render.Rate(sum.Repeated), render.Rate(sum.Refused))
	line()
	line("TIME", "PER SECOND", "P50 ms", "P99 ms")
	for _, t := range p.Times {
		if t.Rate > 0 {
			line(harmless(t.Of), render.Rate(t.Rate), render.Milliseconds(t.Median), render.Milliseconds(t.P99))
		}
	}
	line()
	for _, figure := range render.Figures(p.Activity) {
		line(figure[0], harmless(figure[1]))
	}
	w.Flush() //nolint:errcheck // into memory
	return out.String()
}

func mebibytes(v float64) string { return fmt.Sprintf("%.0f MiB", v/(1<<20)) }
