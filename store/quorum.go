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
	for _, p := range s.all(stream) {
		if err := s.writable(ctx, p.name); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) writable(ctx context.Context, stream string) error {
	known, err := s.stream(ctx, stream)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, leaderTimeout)
	defer cancel()
	info, err := known.Info(ctx)
	if err != nil {
		return err
	}
	return quorum(info)
}

func quorum(info *jetstream.StreamInfo) error {
	if info.Cluster == nil {
		return nil // on one server that is in no cluster
	}
	if info.Cluster.Leader == "" {
		return fmt.Errorf("stream %s has no leader", info.Config.Name)
	}
	there, all := 1, len(info.Cluster.Replicas)+1
	for _, r := range info.Cluster.Replicas {
		if !r.Offline && r.Active > 0 && r.Active < silentAfter { // 0 is one that has not answered yet
			there++
		}
	}
	if 2*there <= all {
		return fmt.Errorf("stream %s has %d of %d servers", info.Config.Name, there, all)
	}
	return nil
}
