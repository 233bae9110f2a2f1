package bench

import (
	"context"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
)

// A measurement drives one target's workers in turns with another, and sums up the results.
type measurement struct {
	target  *target
	workers []*worker
	most    int                                               // acts in one turn; 0: time ends the turn
	ready   func(context.Context) error                       // runs before each turn, not measured; may be nil
	next    func(*worker, context.Context) (roundTrip, error) // nil: (*worker).next

	roundTrips []roundTrip
	elapsed    time.Duration
	cpu        time.Duration // of the target's processes
	own        time.Duration // of this process, the load generator
	memory     float64       // MiB, maximum
}

// alternate runs the measurements in turns until each has had its time. The
// first, short turns warm up and are discarded.
func alternate(ctx context.Context, measurements []*measurement, each time.Duration) error {
	rounds := max(1, int((each+turns-1)/turns))
	turn := each / time.Duration(rounds)
	for n := range rounds + 1 {
		for i := range measurements {
			s := measurements[(i+n)%len(measurements)] // alternate who goes first
			d := turn
			if n == 0 {
				d = min(turn, turns/4)
			}
			if err := s.turn(ctx, d); err != nil {
				return err
			}
			if n == 0 {
				*s = measurement{target: s.target, workers: s.workers, most: s.most, ready: s.ready, next: s.next}
			}
		}
	}
	return nil
}

// turn drives all workers until the time or the number of acts is up.
func (s *measurement) turn(ctx context.Context, d time.Duration) error {
	if s.ready != nil {
		if err := s.ready(ctx); err != nil {
			return err
		}
	}
	next := s.next
	if next == nil {
		next = (*worker).next
	}
	before, err := cpuOfAll(s.target.pids)
	if err != nil {
		return err
	}
	own := ownCPU()
	ctx, cancel := context.WithTimeout(ctx, d+deadline)
	defer cancel()
	start := time.Now()
	end := start.Add(d)
	var submitted atomic.Int64
	found := make([][]roundTrip, len(s.workers))
	g, ctx := errgroup.WithContext(ctx)
	for i, k := range s.workers {
		g.Go(func() error {
			for s.most > 0 || time.Now().Before(end) {
				if n := submitted.Add(1); s.most > 0 && n > int64(s.most) {
					return nil
				}
				t, err := next(k, ctx)
				if err != nil {
					return err
				}
				found[i] = append(found[i], t)
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	s.elapsed += time.Since(start)
	s.roundTrips = append(s.roundTrips, slices.Concat(found...)...)
	s.own += ownCPU() - own
	after, err := cpuOfAll(s.target.pids)
	if err != nil {
		return err
	}
	s.cpu += after - before
	memory, err := memoryOfAll(s.target.pids)
	s.memory = max(s.memory, memory)
	return err
}

// ownCPU is the processor time of this process.
func ownCPU() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// figures sums up a measurement.
func (s *measurement) figures() Figures {
	f := Figures{Acts: len(s.roundTrips), Seconds: s.elapsed.Seconds(), RSS: s.memory}
	if f.Acts == 0 {
		return f
	}
	accepted, received := make([]time.Duration, f.Acts), make([]time.Duration, f.Acts)
	for i, t := range s.roundTrips {
		accepted[i], received[i] = t.accepted, t.received
	}
	f.PerSecond = float64(f.Acts) / f.Seconds
	f.Accepted, f.Received = spread(accepted), spread(received)
	f.CPU = micros(s.cpu) / float64(f.Acts)
	f.LoadCPU = micros(s.own) / float64(f.Acts)
	return f
}

func (s *measurement) meanBytes() int {
	sum := 0
	for _, t := range s.roundTrips {
		sum += t.bytes
	}
	return sum / max(1, len(s.roundTrips))
}

func spread(all []time.Duration) Spread {
	slices.Sort(all)
	at := func(q float64) float64 { return micros(all[int(q*float64(len(all)-1))]) }
	return Spread{P50: at(.5), P99: at(.99)}
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }
