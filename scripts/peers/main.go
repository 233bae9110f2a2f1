// Peers compares parley with what people would build instead, PostgreSQL behind a small HTTP API with NOTIFY, and with
// the least that does its work over NATS, without durable inboxes and with them. All get the workload of parley bench,
// in turns. docs/PERFORMANCE.md says what is compared; `make bench-peers` runs it.
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
	switch { // a peer's server, a process of its own
	case slices.Equal(os.Args[1:], []string{overPostgres}):
		run = serve
	case slices.Equal(os.Args[1:], []string{overNATS}):
		run = func(ctx context.Context, out io.Writer) error { return serveNATS(ctx, out, false) }
	case slices.Equal(os.Args[1:], []string{overInboxes}):
		run = func(ctx context.Context, out io.Writer) error { return serveNATS(ctx, out, true) }
	}
	err := run(ctx, os.Stdout)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

// The arguments with which this program is an API.
const (
	overPostgres = "postgres-api"
	overNATS     = "nats-api"
	overInboxes  = "nats-inboxes-api"
)

type options struct {
	parley, postgres, dir string
	rounds                int
	seconds               float64
}

// compare runs all sides in turns at each level.
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
	fmt.Fprintf(out, "%8s  %-13s %8s  %19s  %19s  %8s\n", "sessions", "", "acts/s", "accepted p50    p99", "received p50    p99", "CPU/act")
	table := "\nmultiples of PostgreSQL\n\n| sessions | | acts/s | accepted p50 | p99 | received p50 | p99 | CPU/act |\n|---|---|---|---|---|---|---|---|\n"
	for _, level := range strings.Split(*levels, ",") {
		sessions, err := strconv.Atoi(level)
		if err != nil || sessions < 1 {
			return fmt.Errorf("--sessions %s: want numbers from 1", *levels)
		}
		sides, err := o.level(ctx, out, sessions)
		if err != nil {
			return err
		}
		for _, s := range sides[1:] {
			table += fmt.Sprintf("| %d | %s |", sessions, s.name)
			for _, r := range medians(s.ratios(sides[0])) {
				table += fmt.Sprintf(" %.2f |", r)
			}
			table += "\n"
		}
	}
	_, err := io.WriteString(out, table)
	return err
}

// A side is what is compared. measure takes one turn.
type side struct {
	name    string
	measure func(sessions int) (bench.Figures, error)
	rounds  [][]float64
}

// ratios are the figures of each round by those of another side.
func (s *side) ratios(other *side) (ratios [][]float64) {
	for n, round := range s.rounds {
		quotients := slices.Clone(round)
		for i := range quotients {
			quotients[i] /= other.rounds[n][i]
		}
		ratios = append(ratios, quotients)
	}
	return ratios
}

// level measures all sides in turns and prints their figures.
func (o options) level(ctx context.Context, out io.Writer, sessions int) ([]*side, error) {
	var machine [][]float64
	sides := []*side{
		{name: "PostgreSQL", measure: func(sessions int) (bench.Figures, error) {
			return measurePeer(ctx, sessions, o.seconds, func() (*servers, error) { return startServers(ctx, o.postgres, o.dir) })
		}},
		{name: "parley", measure: func(sessions int) (bench.Figures, error) {
			report, err := bench.Run(ctx, bench.Options{Program: o.parley, Dir: o.dir, Syncs: []time.Duration{0}, Sessions: []int{sessions}, Seconds: o.seconds})
			if err != nil {
				return bench.Figures{}, err
			}
			level := report.Levels[0]
			machine = append(machine, []float64{level.Machine.Verify, level.Machine.Fsync})
			return level.Parley, nil
		}},
		{name: "NATS", measure: func(sessions int) (bench.Figures, error) {
			return measurePeer(ctx, sessions, o.seconds, func() (*servers, error) { return startNATS(ctx, o.dir, overNATS) })
		}},
		{name: "NATS, inboxes", measure: func(sessions int) (bench.Figures, error) {
			return measurePeer(ctx, sessions, o.seconds, func() (*servers, error) { return startNATS(ctx, o.dir, overInboxes) })
		}},
	}
	turns := slices.Clone(sides)
	for round := range o.rounds {
		fmt.Fprintf(os.Stderr, "%d at a time, round %d of %d\n", sessions, round+1, o.rounds)
		for _, s := range turns {
			f, err := s.measure(sessions)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", s.name, err)
			}
			s.rounds = append(s.rounds, []float64{f.PerSecond, f.Accepted.P50, f.Accepted.P99, f.Received.P50, f.Received.P99, f.CPU})
		}
		slices.Reverse(turns) // alternate who goes first
	}
	load, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return nil, err
	}
	for _, s := range sides {
		n := medians(s.rounds)
		fmt.Fprintf(out, "%8d  %-13s %8.0f  %11.0f %7.0f  %11.0f %7.0f  %8.0f\n", sessions, s.name, n[0], n[1], n[2], n[3], n[4], n[5])
	}
	m := medians(machine)
	fmt.Fprintf(out, "%8s  meanwhile a signature check took %.1f µs, an fsync %.0f µs; load average then %s\n", "", m[0], m[1], strings.Fields(string(load))[0])
	return sides, nil
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
