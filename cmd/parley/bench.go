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

	"github.com/parley-asp/parley/api/render"
	"github.com/parley-asp/parley/cmd/parley/bench"
)

func benchCommand() *cobra.Command {
	var o bench.Options
	cmd := &cobra.Command{
		Use: "bench", Short: "measure the cost of an act, compared with the store alone", Args: args(cobra.NoArgs),
		Long: `Starts a broker in its own process and drives sessions over TCP as agents do:
every act is signed, validated, chained, stored, and delivered to the
counterparty's durable consumer. A session is a whole negotiation, from the
invitation to the CLOSE, in a closed loop: the next act is submitted once the
last one was accepted and received.

The baseline is a NATS server of the same build and settings. The same loop
publishes the same signed bytes to a stream and reads them from a durable
consumer, without validation. Broker and baseline take turns.

Run nothing else on the machine meanwhile.`,
		Example: `  parley bench
  parley bench --sync 1m --sessions 128 --seconds 30
  parley bench --acts 200 --sessions 128
  parley bench --face http --sync 1m --sessions 1,128
  parley bench --brokers 3 --sessions 128 --report bench.json`,
		RunE: func(cmd *cobra.Command, _ []string) error { return runBench(cmd, o) },
	}
	flags := cmd.Flags()
	flags.String("sync", "always,1m", "fsync intervals, `LIST` of values of serve --sync")
	flags.IntSliceVar(&o.Sessions, "sessions", []int{1, 16, 128, 1024}, "numbers of concurrent sessions, one level each")
	flags.Float64Var(&o.Seconds, "seconds", 10, "duration of each level for the broker, and again for the baseline")
	flags.IntVar(&o.Pairs, "pairs", bench.DefaultPairs, "pairs of agents that share the sessions")
	flags.IntVar(&o.Acts, "acts", bench.DefaultActs, "acts of each session: invitation, acceptance, offer, counter-offers, acceptance, CLOSE; at least 5")
	flags.IntVar(&o.Body, "body", bench.DefaultBody, "size of each act's body, in bytes")
	flags.IntVar(&o.Brokers, "brokers", 0, "start `N` broker processes on one external NATS server, instead of one broker with an embedded server")
	flags.IntVar(&o.Shards, "shards", 1, "`N` shards of the broker's store, as for serve")
	flags.StringVar(&o.URL, "url", "", "measure the broker at this NATS `URL` instead of starting one; it registers agents there")
	flags.StringVar(&o.Operator, "operator", "", "with --url: `FILE` with the seed of the broker's operator; not needed under --dev")
	flags.IntSliceVar(&o.PIDs, "pid", nil, "with --url: local process `IDS` whose CPU time and memory to measure")
	flags.StringVar(&o.Dir, "dir", "", "`DIR` for the stores (default: the system's temporary directory)")
	flags.String("face", "", "instead compare acts over `FACE` http with the same over NATS: signed, received as events, and hosted")
	flags.String("report", "", "also write the report as JSON to `FILE`")
	cmd.AddCommand(benchServerCommand())
	return cmd
}

// benchServerCommand runs the NATS server of the baseline.
func benchServerCommand() *cobra.Command {
	return &cobra.Command{
		Use: bench.NATSServerCommand[1] + " FILE", Short: "run the built-in NATS server with a configuration file", Args: args(cobra.ExactArgs(1)), Hidden: true,
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
	if o.URL != "" && !cmd.Flags().Changed("sync") {
		o.Syncs = o.Syncs[:1] // only raw has it
	}
	for _, n := range o.Sessions {
		if n < 1 {
			return usage(errors.New("--sessions " + strconv.Itoa(n) + ": at least 1 session"))
		}
	}
	if o.URL == "" && (o.Operator != "" || len(o.PIDs) > 0) {
		return usage(errors.New("--operator and --pid need --url"))
	}
	if o.Program, err = os.Executable(); err != nil {
		return err
	}
	o.Progress = cmd.ErrOrStderr()
	ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE) // the servers that it started end with it
	defer stop()
	report, err := measure(ctx, cmd, o)
	if err != nil {
		return err
	}
	return tell(cmd, report)
}

// measure runs the measurement that the flags select.
func measure(ctx context.Context, cmd *cobra.Command, o bench.Options) (bench.Report, error) {
	face := text(cmd, "face")
	switch {
	case face != "" && face != "http":
		return bench.Report{}, usage(errors.New("--face is http"))
	case face != "" && (o.URL != "" || o.Brokers > 0):
		return bench.Report{}, usage(errors.New("--face goes without --url and --brokers"))
	case o.Pairs < 1 || o.Acts < bench.MinActs || o.Body < 1:
		return bench.Report{}, usage(fmt.Errorf("--acts is %d or more, --pairs and --body 1 or more", bench.MinActs))
	case face != "":
		return bench.HTTP(ctx, o)
	}
	return bench.Run(ctx, o)
}

// tell prints a report, and writes it to the file of --report.
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
	return show(cmd, report, func(render.Style) string { return report.Table() })
}
