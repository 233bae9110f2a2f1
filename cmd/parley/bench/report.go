package bench

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// A Report holds the results. Times are in microseconds, memory in MiB.
type Report struct {
	At      time.Time `json:"at"`
	Go      string    `json:"go"`
	CPUs    int       `json:"cpus"`
	Brokers int       `json:"brokers"`          // processes on one NATS server; 0 is one broker with an embedded server
	Running bool      `json:"running,omitzero"` // what runs at --url instead, by its own --sync
	Seconds float64   `json:"seconds"`          // per level and target
	Pairs   int       `json:"pairs"`            // of agents that share the sessions
	Acts    int       `json:"acts"`             // of a session
	Body    int       `json:"body"`             // bytes of a body, about
	Levels  []Level   `json:"levels,omitzero"`

	Faces []FaceLevel `json:"faces,omitzero"`
}

// A Level is one fsync interval with a number of concurrent sessions.
type Level struct {
	Sync     string  `json:"sync"`
	Sessions int     `json:"sessions"`
	Machine  Machine `json:"machine"`
	Bytes    int     `json:"bytes"` // mean size of an envelope
	Parley   Figures `json:"parley"`
	Raw      Figures `json:"raw"`
	Ratio    Ratio   `json:"ratio"`

	Verifications float64 `json:"verificationsWorth,omitzero"` // Parley's CPU per act in signature checks of this machine
}

// Figures are the results of one target.
type Figures struct {
	Acts      int     `json:"acts"`
	Seconds   float64 `json:"seconds"`
	PerSecond float64 `json:"actsPerSecond"`
	Accepted  Spread  `json:"acceptedMicros"`           // submit → accepted
	Received  Spread  `json:"receivedMicros"`           // submit → received by the counterparty's durable consumer
	CPU       float64 `json:"cpuMicrosPerAct,omitzero"` // 0 of processes that nobody named
	LoadCPU   float64 `json:"loadCpuMicrosPerAct"`      // of the load generator
	RSS       float64 `json:"rssMiB,omitzero"`          // as CPU
}

// A Spread is a median and a 99th percentile.
type Spread struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
}

func (s Spread) over(o Spread) Spread { return Spread{over(s.P50, o.P50), over(s.P99, o.P99)} }

// A Ratio is one target's figures divided by the other's.
type Ratio struct {
	PerSecond float64 `json:"actsPerSecond"`
	Accepted  Spread  `json:"accepted"`
	Received  Spread  `json:"received"`
	CPU       float64 `json:"cpu,omitzero"`
}

func (f Figures) over(o Figures) Ratio {
	return Ratio{over(f.PerSecond, o.PerSecond), f.Accepted.over(o.Accepted), f.Received.over(o.Received), over(f.CPU, o.CPU)}
}

func over(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

func newReport(o Options) Report {
	return Report{At: time.Now().UTC().Truncate(time.Second), Go: runtime.Version(), CPUs: runtime.NumCPU(), Brokers: o.Brokers, Running: o.URL != "", Seconds: o.Seconds, Pairs: o.Pairs, Acts: o.Acts, Body: o.Body}
}

// line is the progress line of a level.
func (l Level) line() string {
	return fmt.Sprintf("  %.0f acts/s, raw %.0f: %.2f× of raw; p50 accepted %.2f×, p99 %.2f×; CPU per act %s verifications' worth",
		l.Parley.PerSecond, l.Raw.PerSecond, l.Ratio.PerSecond, l.Ratio.Accepted.P50, l.Ratio.Accepted.P99, measured(1, l.Verifications))
}

// measured is a number with so many decimals, and - for what was not measured: a broker at --url without --pid.
func measured(decimals int, n float64) string {
	if n == 0 {
		return "-"
	}
	return strconv.FormatFloat(n, 'f', decimals, 64)
}

// Table formats the report as text.
func (r Report) Table() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	if len(r.Levels) > 0 {
		where := "one broker with an embedded NATS server"
		switch {
		case r.Running:
			where = "the broker at --url, by its own --sync"
		case r.Brokers > 0:
			where = fmt.Sprintf("%d broker processes on one NATS server process", r.Brokers)
		}
		line("%s; sessions of %d acts; %d CPUs, %s; %.0f s per row; times in µs, CPU per act without the load generator", where, r.Acts, r.CPUs, r.Go, r.Seconds)
	}
	sync := ""
	for _, l := range r.Levels {
		if l.Sync != sync {
			sync = l.Sync
			line("\n--sync %s, envelopes of %d bytes", l.Sync, l.Bytes)
			line("%8s  %-6s %9s  %19s  %19s  %8s  %8s", "sessions", "", "acts/s", "accepted p50    p99", "received p50    p99", "CPU/act", "RSS MiB")
		}
		row := func(at, name string, f Figures) {
			line("%8s  %-6s %9.0f  %11.0f %7.0f  %11.0f %7.0f  %8s  %8s", at, name,
				f.PerSecond, f.Accepted.P50, f.Accepted.P99, f.Received.P50, f.Received.P99, measured(1, f.CPU), measured(0, f.RSS))
		}
		row(fmt.Sprint(l.Sessions), "parley", l.Parley)
		row("", "raw", l.Raw)
		line("%8s  %-6s %9.2f  %11.2f %7.2f  %11.2f %7.2f  %8s", "", "ratio",
			l.Ratio.PerSecond, l.Ratio.Accepted.P50, l.Ratio.Accepted.P99, l.Ratio.Received.P50, l.Ratio.Received.P99, measured(2, l.Ratio.CPU))
		line("%8s  CPU/act is %s verifications' worth; meanwhile one takes %.1f µs, an fsync %.0f µs", "", measured(1, l.Verifications), l.Machine.Verify, l.Machine.Fsync)
	}
	for _, l := range r.Faces {
		line("\n--sync %s, %d at a time; each face has a broker of its own", l.Sync, l.Sessions)
		line("  %-6s %9s  %19s  %19s  %8s  %s", "", "acts/s", "accepted p50    p99", "received p50    p99", "CPU/act", "of nats: p50, CPU")
		for _, f := range l.Faces {
			line("  %-6s %9.0f  %11.0f %7.0f  %11.0f %7.0f  %8.1f  %+.0f µs, %.2f×", f.Name, f.Is.PerSecond, f.Is.Accepted.P50, f.Is.Accepted.P99,
				f.Is.Received.P50, f.Is.Received.P99, f.Is.CPU, f.Is.Accepted.P50-l.Faces[0].Is.Accepted.P50, f.Ratio.CPU)
		}
		line("  an event is seen %.0f µs after its act was accepted (p50; p99 %.0f); hosted costs %.1f signature checks of %.1f µs more than events",
			l.Seen.P50, l.Seen.P99, l.Signed, l.Machine.Verify)
	}
	return b.String()
}
