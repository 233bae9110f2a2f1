package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// A leader sends a heartbeat each second, which followers answer. One that was silent for a few of them
// stores nothing now. The leader itself goes on leading for up to 20 seconds.
const silentAfter = 4 * time.Second

// A failure is why the last append was not stored, and when.
type failure struct {
	why error
	at  time.Time
}

// failedFor is how long another failure says that the next append would fail, too.
const failedFor = time.Minute

// noteAppend notes how an append ended. On several servers an election fails some, and the next may be stored.
func (s *Store) noteAppend(err error) {
	switch {
	case err == nil:
		s.failed.Store(nil)
	case errors.Is(writeError(err), ErrConflict): // says nothing of the next
	case !s.replicated.Load() && !errors.Is(err, errDisconnected):
		s.failed.Store(&failure{err, time.Now()})
	}
}

// AppendFailed returns why the last append failed, nil if it did not, or long ago.
func (s *Store) AppendFailed() error {
	if f := s.failed.Load(); f != nil && time.Since(f.at) < failedFor {
		return fmt.Errorf("the last act could not be stored: %w", f.why)
	}
	return nil
}

// Writable reports whether a stream could store something now, each of its shards, and if not, why: it has a leader,
// and the leader reaches so many others that they are a majority.
func (s *Store) Writable(ctx context.Context, stream string) error {
	var worst Servers
	var failed error
	for n, p := range s.all(stream) {
		are, err := s.writable(ctx, p.name)
		if n == 0 || len(are.Away) > len(worst.Away) {
			worst = are
		}
		if err != nil {
			failed = err
			break
		}
	}
	s.servers.Store(&worst)
	return failed
}

func (s *Store) writable(ctx context.Context, stream string) (Servers, error) {
	known, err := s.stream(ctx, stream)
	if err != nil {
		return s.Servers(), err
	}
	ctx, cancel := context.WithTimeout(ctx, leaderTimeout)
	defer cancel()
	info, err := known.Info(ctx)
	replicas := known.CachedInfo().Config.Replicas
	switch {
	case err == nil:
		return serversOf(info), quorum(info)
	case IsUnavailable(err) && replicas > 1: // nobody leads, and says who is away
		return Servers{Away: make([]string, replicas)}, err
	}
	return s.Servers(), err // who asked waits no more
}

// Servers are those that keep a stream, by whether its leader reaches them.
type Servers struct {
	There int
	Away  []string
}

// Servers are those of the stream that has most of them away, when Writable last looked.
func (s *Store) Servers() Servers {
	if are := s.servers.Load(); are != nil {
		return *are
	}
	return Servers{There: 1}
}

// TooFew reports whether the stream takes nothing, since its servers are not a majority.
func (s Servers) TooFew() bool { return 2*s.There <= s.There+len(s.Away) }

// Missing says how many are there and what follows; "" if none is away.
func (s Servers) Missing() string {
	all := s.There + len(s.Away)
	switch {
	case len(s.Away) == 0:
		return ""
	case s.TooFew():
		return fmt.Sprintf("%d of %d NATS servers are there: too few for any act", s.There, all)
	case 2*(s.There-1) > all:
		return fmt.Sprintf("%d of %d NATS servers are there", s.There, all)
	default:
		return fmt.Sprintf("%d of %d NATS servers are there; the next failure stops all acts", s.There, all)
	}
}

func serversOf(info *jetstream.StreamInfo) Servers {
	are := Servers{There: 1}
	if info.Cluster == nil {
		return are // on one server that is in no cluster
	}
	led := info.Cluster.Leader != ""
	if !led {
		are.There = 0 // whoever answers reaches nobody as a leader, and lists itself
	}
	for _, r := range info.Cluster.Replicas {
		if led && !r.Offline && r.Active > 0 && r.Active < silentAfter { // 0 is one that has not answered yet
			are.There++
		} else {
			are.Away = append(are.Away, r.Name)
		}
	}
	return are
}

func quorum(info *jetstream.StreamInfo) error {
	if info.Cluster == nil {
		return nil // on one server that is in no cluster
	}
	if info.Cluster.Leader == "" {
		return fmt.Errorf("stream %s has no leader", info.Config.Name)
	}
	if are := serversOf(info); are.TooFew() {
		return fmt.Errorf("stream %s has %d of %d servers", info.Config.Name, are.There, are.There+len(are.Away))
	}
	return nil
}
