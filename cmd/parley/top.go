package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/api/render"
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
		page := newTopPage(before, now)
		if err := each(cmd, []topPage{page}, asked(cmd, "json"), func() string { return page.text(style(cmd)) }); err != nil {
			return err
		}
		before = now
	}
	return nil
}

// A topPage is what goes on, of all brokers together. Rates are of one second.
type topPage struct {
	At          string             `json:"at"`
	Brokers     []topBroker        `json:"brokers"`
	Acts        []topActs          `json:"acts"`
	Refusals    map[string]float64 `json:"refusals"`  // rates by code
	LimitsHit   map[string]float64 `json:"limitsHit"` // rates by limit
	Times       []topTime          `json:"times"`     // of acts and their stages
	Sessions    map[string]float64 `json:"sessions"`  // by state
	Escalations map[string]float64 `json:"escalations"`
	Obligations map[string]float64 `json:"obligations"`
	Queues      map[string]float64 `json:"queues"`
	Lag         map[string]float64 `json:"lagSeconds"`
	Stuck       float64            `json:"stuckSessions"`
}

type topBroker struct {
	Monitor    string  `json:"monitor"`
	Error      string  `json:"error,omitzero"`
	Ready      bool    `json:"ready"`
	Version    string  `json:"version,omitzero"`
	Partitions float64 `json:"partitions"`
	Cached     float64 `json:"cachedSessions"`
	DiskFree   float64 `json:"diskFreeBytes"`
	Memory     float64 `json:"memoryBytes"`
}

type topActs struct {
	Performative string  `json:"performative"`
	Accepted     float64 `json:"accepted"`
	Repeated     float64 `json:"repeated"`
	Refused      float64 `json:"refused"`
}

// A topTime is how long something took, in seconds.
type topTime struct {
	Of     string  `json:"of"`
	Rate   float64 `json:"rate"`
	Median float64 `json:"p50"`
	P99    float64 `json:"p99"`
}

func newTopPage(before, now scrape) topPage {
	p := topPage{
		At:       api.Timestamp(now.at),
		Refusals: now.rates(before, "parley_acts_total", "code"), LimitsHit: now.rates(before, "parley_limits_hit_total", "limit"),
		Sessions: now.shared("parley_sessions", "state"), Escalations: now.shared("parley_escalations", "due"),
		Obligations: now.shared("parley_obligations", "status"), Queues: now.summed("parley_queue_length", "queue"),
		Lag: now.shared("parley_lag_seconds", "of"), Stuck: now.summed("parley_stuck_sessions", "")[""],
	}
	delete(p.Refusals, "none")
	for _, b := range now.brokers {
		p.Brokers = append(p.Brokers, newTopBroker(b))
	}
	acts := map[string]*topActs{}
	for labels, rate := range now.rates(before, "parley_acts_total", "performative", "outcome") {
		act, outcome, _ := strings.Cut(labels, " ")
		if acts[act] == nil {
			acts[act] = &topActs{Performative: act}
		}
		*map[string]*float64{"accepted": &acts[act].Accepted, "repeated": &acts[act].Repeated, "refused": &acts[act].Refused}[outcome] += rate
	}
	for _, act := range slices.Sorted(maps.Keys(acts)) {
		p.Acts = append(p.Acts, *acts[act])
	}
	for _, family := range []struct{ name, label string }{{"parley_act_seconds", "outcome"}, {"parley_act_stage_seconds", "stage"}, {"parley_fsync_seconds", ""}} {
		took := now.times(before, family.name, family.label)
		for _, of := range slices.Sorted(maps.Keys(took)) {
			p.Times = append(p.Times, topTime{
				Of: cmp.Or(of, "fsync"), Rate: took[of].count() / now.since(before), Median: took[of].quantile(0.5), P99: took[of].quantile(0.99),
			})
		}
	}
	return p
}

func newTopBroker(b scraped) topBroker {
	row := topBroker{Monitor: b.monitor}
	if b.err != nil {
		row.Error = b.err.Error()
		return row
	}
	one := scrape{brokers: []scraped{b}}
	for version := range one.summed("parley_build_info", "version") {
		row.Version = version
	}
	row.Ready = one.summed("parley_ready", "")[""] == 1
	row.Partitions, row.Cached = one.summed("parley_partitions_owned", "")[""], one.summed("parley_cache_sessions", "")[""]
	row.DiskFree, row.Memory = one.summed("parley_disk_bytes", "state")["free"], one.summed("process_resident_memory_bytes", "")[""]
	return row
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
		if b.Error != "" {
			line(harmless(b.Monitor), "no", harmless(b.Error))
			continue
		}
		line(harmless(b.Monitor), map[bool]string{true: "yes", false: "no"}[b.Ready], harmless(b.Version), b.Partitions, b.Cached, mebibytes(b.Memory), mebibytes(b.DiskFree))
	}
	line()
	line("ACTS/s", "ACCEPTED", "REPEATED", "REFUSED")
	var sum topActs
	for _, a := range p.Acts {
		sum.Accepted, sum.Repeated, sum.Refused = sum.Accepted+a.Accepted, sum.Repeated+a.Repeated, sum.Refused+a.Refused
		if a.Accepted+a.Repeated+a.Refused > 0 {
			line(harmless(a.Performative), rate(a.Accepted), rate(a.Repeated), rate(a.Refused))
		}
	}
	line("all", rate(sum.Accepted), rate(sum.Repeated), rate(sum.Refused))
	line()
	line("TIME", "PER SECOND", "P50 ms", "P99 ms")
	for _, t := range p.Times {
		if t.Rate > 0 {
			line(harmless(t.Of), rate(t.Rate), fmt.Sprintf("%.2f", t.Median*1000), fmt.Sprintf("%.2f", t.P99*1000))
		}
	}
	line()
	for _, row := range []struct {
		title  string
		values map[string]float64
	}{
		{"refusals/s", p.Refusals}, {"limits hit/s", p.LimitsHit}, {"sessions", p.Sessions}, {"escalations", p.Escalations},
		{"obligations", p.Obligations}, {"queues", p.Queues}, {"lag, s", p.Lag}, {"stuck sessions", map[string]float64{"": p.Stuck}},
	} {
		line(row.title, nonzero(row.values))
	}
	w.Flush() //nolint:errcheck // into memory
	return out.String()
}

// nonzero are the values but zeros.
func nonzero(values map[string]float64) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if v := values[name]; v != 0 {
			all = append(all, strings.TrimSpace(harmless(name)+" "+rate(v)))
		}
	}
	return cmp.Or(strings.Join(all, "  "), "none")
}

func rate(v float64) string {
	if v == float64(int64(v)) {
		return fmt.Sprint(int64(v))
	}
	return fmt.Sprintf("%.2f", v)
}

func mebibytes(v float64) string { return fmt.Sprintf("%.0f MiB", v/(1<<20)) }
