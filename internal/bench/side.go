package bench

import (
	"context"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
)

// A side is one of those that take turns, and what was measured of it.
type side struct {
	road  *road
	lanes []*lane
	most  int                                        // acts in one turn, where time does not end it; 0 is any number
	ready func(context.Context) error                // before each turn, not measured; may be nil
	next  func(*lane, context.Context) (trip, error) // nil is (*lane).next

	trips   []trip
	elapsed time.Duration
	cpu     time.Duration // of the processes of the road
	own     time.Duration // of this process, which makes the load
	memory  float64       // MiB, the most seen
}

// alternate lets the sides take turns until each had so much time. What the
// first, short turns measure is thrown away.
func alternate(ctx context.Context, sides []*side, each time.Duration) error {
	rounds := max(1, int((each+turns-1)/turns))
	turn := each / time.Duration(rounds)
	for n := range rounds + 1 {
		for i := range sides {
			s := sides[(i+n)%len(sides)] // nobody always comes first
			d := turn
			if n == 0 {
				d = min(turn, turns/4)
			}
			if err := s.turn(ctx, d); err != nil {
				return err
			}
			if n == 0 {
				*s = side{road: s.road, lanes: s.lanes, most: s.most, ready: s.ready, next: s.next}
			}
		}
	}
	return nil
}

// turn drives all lanes for a while.
func (s *side) turn(ctx context.Context, d time.Duration) error {
	if s.ready != nil {
		if err := s.ready(ctx); err != nil {
			return err
		}
	}
	next := s.next
	if next == nil {
		next = (*lane).next
	}
	before, err := cpuOfAll(s.road.pids)
	if err != nil {
		return err
	}
	own := ownCPU()
	ctx, cancel := context.WithTimeout(ctx, d+patience)
	defer cancel()
	start := time.Now()
	end := start.Add(d)
	var said atomic.Int64
	found := make([][]trip, len(s.lanes))
	g, ctx := errgroup.WithContext(ctx)
	for i, l := range s.lanes {
		g.Go(func() error {
			for s.most > 0 || time.Now().Before(end) {
				if n := said.Add(1); s.most > 0 && n > int64(s.most) {
					return nil
				}
				t, err := next(l, ctx)
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
	s.trips = append(s.trips, slices.Concat(found...)...)
	s.own += ownCPU() - own
	after, err := cpuOfAll(s.road.pids)
	if err != nil {
		return err
	}
	s.cpu += after - before
	memory, err := memoryOfAll(s.road.pids)
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

// figures sum a side up.
func (s *side) figures() Figures {
	f := Figures{Acts: len(s.trips), Seconds: s.elapsed.Seconds(), RSS: s.memory}
	if f.Acts == 0 {
		return f
	}
	accepted, received := make([]time.Duration, f.Acts), make([]time.Duration, f.Acts)
	for i, t := range s.trips {
		accepted[i], received[i] = t.accepted, t.received
	}
	f.PerSecond = float64(f.Acts) / f.Seconds
	f.Accepted, f.Received = spread(accepted), spread(received)
	f.CPU = micros(s.cpu) / float64(f.Acts)
	f.LoadCPU = micros(s.own) / float64(f.Acts)
	return f
}

func (s *side) meanBytes() int {
	sum := 0
	for _, t := range s.trips {
		sum += t.bytes
	}
	return sum / max(1, len(s.trips))
}

func spread(all []time.Duration) Spread {
	slices.Sort(all)
	at := func(q float64) float64 { return micros(all[int(q*float64(len(all)-1))]) }
	return Spread{P50: at(.5), P99: at(.99)}
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }
