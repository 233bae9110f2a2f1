// Peers compares parley with what people would build instead: PostgreSQL behind a small
// HTTP API with NOTIFY. Both get the workload of parley bench, in turns. docs/PERFORMANCE.md
// says what is compared; `make bench-peers` runs it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/parley-asp/parley/cmd/parley/bench"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	run := compare
	if slices.Equal(os.Args[1:], []string{"api"}) {
		run = serve // the peer's server, a process of its own
	}
	err := run(ctx, os.Stdout)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

type options struct {
	parley, postgres, dir string
	rounds                int
	seconds               float64
}

// compare runs both sides in turns at each level.
func compare(ctx context.Context, out io.Writer) error {
	var o options
	flag.StringVar(&o.parley, "parley", "dist/parley", "the parley `program`")
	flag.StringVar(&o.postgres, "postgres", newestPostgres(), "`directory` of initdb and pg_ctl")
	flag.StringVar(&o.dir, "dir", os.TempDir(), "`directory` for the stores")
	levels := flag.String("sessions", "1,16,128", "numbers of concurrent sessions, one level each")
	flag.IntVar(&o.rounds, "rounds", 5, "turns of each side at each level")
	flag.Float64Var(&o.seconds, "seconds", 10, "duration of a turn")
	flag.Parse()
	if o.rounds < 1 || o.seconds <= 0 || flag.NArg() > 0 {
		return errors.New("--rounds and --seconds are positive, and there are no arguments")
	}
	fmt.Fprintf(out, "sessions of %d acts, bodies of %d bytes, %d pairs; medians of %d rounds of %g s; times in µs, CPU per act of the servers\n\n",
		bench.DefaultActs, bench.DefaultBody, bench.DefaultPairs, o.rounds, o.seconds)
	fmt.Fprintf(out, "%8s  %-10s %8s  %19s  %19s  %8s\n", "sessions", "", "acts/s", "accepted p50    p99", "received p50    p99", "CPU/act")
	table := "\nparley as multiples of PostgreSQL\n\n| sessions | acts/s | accepted p50 | p99 | received p50 | p99 | CPU/act |\n|---|---|---|---|---|---|---|\n"
	for _, level := range strings.Split(*levels, ",") {
		sessions, err := strconv.Atoi(level)
		if err != nil || sessions < 1 {
			return fmt.Errorf("--sessions %s: want numbers from 1", *levels)
		}
		ratios, err := o.level(ctx, out, sessions)
		if err != nil {
			return err
		}
		table += fmt.Sprintf("| %d |", sessions)
		for _, r := range ratios {
			table += fmt.Sprintf(" %.2f |", r)
		}
		table += "\n"
	}
	_, err := io.WriteString(out, table)
	return err
}

// level measures both sides in turns and prints their figures. It returns the ratios: medians of those of each round.
func (o options) level(ctx context.Context, out io.Writer, sessions int) ([]float64, error) {
	var parley, peer, ratio, machine [][]float64
	measureParley := func() error {
		report, err := bench.Run(ctx, bench.Options{Program: o.parley, Dir: o.dir, Syncs: []time.Duration{0}, Sessions: []int{sessions}, Seconds: o.seconds})
		if err != nil {
			return err
		}
		level := report.Levels[0]
		parley, machine = append(parley, numbers(level.Parley)), append(machine, []float64{level.Machine.Verify, level.Machine.Fsync})
		return nil
	}
	measurePeer := func() error {
		f, err := o.measurePeer(ctx, sessions)
		peer = append(peer, numbers(f))
		return err
	}
	for round := range o.rounds {
		fmt.Fprintf(os.Stderr, "%d at a time, round %d of %d\n", sessions, round+1, o.rounds)
		turns := []func() error{measureParley, measurePeer}
		if round%2 == 1 { // alternate who goes first
			slices.Reverse(turns)
		}
		for _, turn := range turns {
			if err := turn(); err != nil {
				return nil, err
			}
		}
		quotients := slices.Clone(parley[round])
		for i := range quotients {
			quotients[i] /= peer[round][i]
		}
		ratio = append(ratio, quotients)
	}
	load, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return nil, err
	}
	for i, name := range []string{"parley", "PostgreSQL"} {
		n := medians([][][]float64{parley, peer}[i])
		fmt.Fprintf(out, "%8d  %-10s %8.0f  %11.0f %7.0f  %11.0f %7.0f  %8.0f\n", sessions, name, n[0], n[1], n[2], n[3], n[4], n[5])
	}
	m := medians(machine)
	fmt.Fprintf(out, "%8s  meanwhile a signature check took %.1f µs, an fsync %.0f µs; load average then %s\n", "", m[0], m[1], strings.Fields(string(load))[0])
	return medians(ratio), nil
}

func numbers(f bench.Figures) []float64 {
	return []float64{f.PerSecond, f.Accepted.P50, f.Accepted.P99, f.Received.P50, f.Received.P99, f.CPU}
}

// medians are those of each column.
func medians(rows [][]float64) []float64 {
	middle := slices.Clone(rows[0])
	for i := range middle {
		var column []float64
		for _, row := range rows {
			column = append(column, row[i])
		}
		slices.Sort(column)
		middle[i] = (column[len(column)/2] + column[(len(column)-1)/2]) / 2
	}
	return middle
}
