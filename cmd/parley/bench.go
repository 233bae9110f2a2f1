package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"github.com/parley-asp/parley/internal/bench"
	"github.com/parley-asp/parley/render"
)

func benchCommand() *cobra.Command {
	var o bench.Options
	cmd := &cobra.Command{
		Use: "bench", Short: "measure what an act costs, next to the store alone", Args: args(cobra.NoArgs),
		Long: `Starts a broker in a process of its own and drives sessions over TCP as agents do:
every act is signed, judged, chained and stored, and delivered to the counterpart's
durable consumer. Each session is a closed loop: the next act is made when the last
one was both accepted and received.

In turns with it, a NATS server of the same build with the same settings takes the
same signed bytes in the same loop: published into a stream with an acknowledgement,
read by the counterpart's durable consumer, and not checked. The ratios are to that.

The machine should do nothing else meanwhile.`,
		Example: `  parley bench
  parley bench --sync 1m --sessions 128 --seconds 30
  parley bench --brokers 3 --sessions 128 --report bench.json --plot bench.svg`,
		RunE: func(cmd *cobra.Command, _ []string) error { return runBench(cmd, o) },
	}
	flags := cmd.Flags()
	flags.String("sync", "always,1m", "fsync settings, as of serve, one after the other")
	flags.IntSliceVar(&o.Sessions, "sessions", []int{1, 16, 128, 1024}, "how many sessions go on at a time, one after the other")
	flags.Float64Var(&o.Seconds, "seconds", 10, "for each number of sessions, and as much again for the store alone")
	flags.IntVar(&o.Pairs, "pairs", 16, "pairs of agents that share the sessions")
	flags.IntVar(&o.Brokers, "brokers", 0, "so many broker processes on a NATS server of its own, instead of one with its server in it")
	flags.StringVar(&o.URL, "url", "", "measure the broker at this NATS address, where agents are registered, instead of one that is started")
	flags.StringVar(&o.Operator, "operator", "", "with --url: file with the seed of that broker's operator; not needed with --dev there")
	flags.IntSliceVar(&o.PIDs, "pid", nil, "with --url: processes on this machine whose CPU time and memory count")
	flags.StringVar(&o.Dir, "dir", "", "directory for the stores (default: the system's for temporary files)")
	flags.String("report", "", "write the report, as JSON, to this file too")
	flags.String("plot", "", "draw throughput and latency against sessions at a time, as SVG, to this file")
	flags.Int("lengths", 0, "measure instead an act in a session of 10 acts, and in one of so many (alone: 10,000)")
	flags.Lookup("lengths").NoOptDefVal = "10000"
	flags.Int("stored", 0, "measure instead an act where 100 finished sessions are stored, and where so many are; then the start of a broker with them")
	flags.BoolVar(&o.Written, "written", false, "with --stored: write the finished sessions to the store with the broker's key instead of submitting them, and verify a sample")
	flags.BoolVar(&o.Archived, "archived", false, "with --written: write them to the archive, as sessions that ended long ago and have no inbox copies any more")
	flags.BoolVar(&o.Copies, "copies", false, "with --archived: as sessions that ended today, with inbox copies")
	flags.Int("open", 10_000, "with --stored: open sessions besides, at the start")
	cmd.AddCommand(benchServerCommand())
	return cmd
}

// benchServerCommand is what a measurement starts beside the broker.
func benchServerCommand() *cobra.Command {
	return &cobra.Command{
		Use: bench.NATSServerCommand[1] + " FILE", Short: "run the NATS server in this program with a configuration file", Args: args(cobra.ExactArgs(1)), Hidden: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			return bench.NATSServer(cmd.OutOrStdout(), args[0])
		},
	}
}

func runBench(cmd *cobra.Command, o bench.Options) (err error) {
	for _, name := range strings.Split(text(cmd, "sync"), ",") {
		var s fsync
		if err := s.Set(name); err != nil {
			return usage(fmt.Errorf("--sync %s: %w", name, err))
		}
		o.Syncs = append(o.Syncs, time.Duration(s))
	}
	for _, n := range o.Sessions {
		if n < 1 {
			return usage(errors.New("--sessions " + strconv.Itoa(n) + ": at least 1 at a time"))
		}
	}
	if o.URL == "" && (o.Operator != "" || len(o.PIDs) > 0) {
		return usage(errors.New("--operator and --pid are for a broker that is named with --url"))
	}
	if o.Program, err = os.Executable(); err != nil {
		return err
	}
	o.Progress = cmd.ErrOrStderr()
	ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	report, err := measure(ctx, cmd, o)
	if err != nil {
		return err
	}
	return tell(cmd, report)
}

// measure measures what the flags ask for.
func measure(ctx context.Context, cmd *cobra.Command, o bench.Options) (bench.Report, error) {
	stored, err := cmd.Flags().GetInt("stored")
	if err != nil {
		return bench.Report{}, err
	}
	long, err := cmd.Flags().GetInt("lengths")
	if err != nil {
		return bench.Report{}, err
	}
	open, err := cmd.Flags().GetInt("open")
	if err != nil {
		return bench.Report{}, err
	}
	switch {
	case o.Archived && !o.Written || o.Copies && !o.Archived || o.Written && stored == 0:
		return bench.Report{}, usage(errors.New("--written is of the sessions of --stored, --archived of what is --written, and --copies of what is --archived"))
	case stored < 0 || long < 0 || open < 1:
		return bench.Report{}, usage(errors.New("--stored and --open are numbers of sessions, --lengths one of acts"))
	case stored > 0:
		return bench.Stored(ctx, o, stored, open)
	case long > 0:
		return bench.Lengths(ctx, o, long)
	}
	return bench.Run(ctx, o)
}

// tell prints a report, and writes it where that is asked for.
func tell(cmd *cobra.Command, report bench.Report) error {
	if file := text(cmd, "report"); file != "" {
		data, err := json.Marshal(report, json.Deterministic(true), jsontext.WithIndent("  "))
		if err != nil {
			return err
		}
		if err := os.WriteFile(file, append(data, '\n'), 0o600); err != nil {
			return err
		}
	}
	if file := text(cmd, "plot"); file != "" {
		if err := os.WriteFile(file, report.Plot(), 0o600); err != nil {
			return err
		}
	}
	return show(cmd, report, func(render.Style) string { return report.Table() })
}
