package bench

import (
	"context"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/parley-asp/parley/internal/background"
)

// A measurement drives one target's workers in turns with another, and sums up the results.
type measurement struct {
	target  *target
	workers []*worker

	roundTrips []roundTrip
	elapsed    time.Duration
	cpu        time.Duration // of the target's processes
	own        time.Duration // of this process, the load generator
	memory     float64       // MiB, maximum
}

const (
	turns   = 2 * time.Second // how long one target's turn lasts
	follows = 3 * time.Second // in which a broker does what it has put off
)

// alternate runs the measurements in turns until each has had its time. The first, short
// turns warm up and are discarded. A target's processor time is counted from its first turn
// until some time after the last: what an act leaves to be done counts whenever it is done.
func (o *Options) alternate(ctx context.Context, measurements ...*measurement) error {
	each := time.Duration(o.Seconds * float64(time.Second))
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
		}
		if n > 0 {
			continue
		}
		for _, s := range measurements {
			used, err := cpuOfAll(s.target.pids)
			if err != nil {
				return err
			}
			*s = measurement{target: s.target, workers: s.workers, cpu: -used}
		}
	}
	if err := background.Pause(ctx, follows); err != nil {
		return err
	}
	for _, s := range measurements {
		used, err := cpuOfAll(s.target.pids)
		if err != nil {
			return err
		}
		s.cpu += used
		for _, k := range s.workers {
			k.leave()
		}
	}
	return nil
}

// turn drives all workers until the time is up.
func (s *measurement) turn(ctx context.Context, d time.Duration) error {
	own := ownCPU()
	ctx, cancel := context.WithTimeout(ctx, d+deadline)
	defer cancel()
	start := time.Now()
	end := start.Add(d)
	found := make([][]roundTrip, len(s.workers))
	g, ctx := errgroup.WithContext(ctx)
	for i, k := range s.workers {
		g.Go(func() error {
			for time.Now().Before(end) {
				t, err := k.next(ctx)
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
	memory, err := memoryOfAll(s.target.pids)
	s.memory = max(s.memory, memory)
	return err
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
