package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/internal/background"
	"github.com/parley-asp/parley/performatives"
)

var formatHeader = []string{strconv.Itoa(performatives.Format)}

// appendTries is how often an append that found no leader is sent again.
const appendTries = 2

// Append adds an entry to a session's transcript if its last entry still has the
// sequence last, 0 for none; beside is what is stored with it
// and no part of it. It returns once the entry is as safe as it is to be.
func (s *Store) Append(ctx context.Context, id performatives.SessionID, entry []byte, beside Header, last uint64) (sequence uint64, err error) {
	sequence, err = s.tryAppend(id, entry, beside, last)
	for again := 0; errors.Is(err, jetstream.ErrNoStreamResponse) && again < appendTries; again++ {
		if err = background.Pause(ctx, jetstream.DefaultPubRetryWait); err == nil { // the stream elects a leader
			sequence, err = s.tryAppend(id, entry, beside, last)
		}
	}
	if err != nil {
		return 0, writeError(err)
	}
	p := s.at(api.SessionsStream, sequence)
	if err := s.Sync(p.name, p.from(sequence)); err != nil {
		return 0, fmt.Errorf("%w: %w", ErrIndeterminate, err)
	}
	return sequence, nil
}

func (s *Store) tryAppend(id performatives.SessionID, entry []byte, beside Header, last uint64) (uint64, error) {
	header := Header{api.FormatHeader: formatHeader}
	maps.Copy(header, beside)
	sent, err := s.Send(api.SessionsStream, Message{Subject: api.Session(id), Data: entry, Header: header}, last)
	if err != nil {
		return 0, err
	}
	o := <-sent.done
	s.noteAppend(o.err)
	return o.sequence, o.err
}

// LastEntry is the position of a session's last entry, 0 for none: the newest that
// was acknowledged before this was called.
func (s *Store) LastEntry(ctx context.Context, id performatives.SessionID) (uint64, error) {
	return s.newestEntry(ctx, s.one(api.SessionsStream, api.Session(id)), api.Session(id))
}

// NewestEntries are the positions of the last entries of all sessions, likewise.
func (s *Store) NewestEntries(ctx context.Context) (Marks, error) {
	shards := s.all(api.SessionsStream)
	newest := make(Marks, len(shards))
	for n, p := range shards {
		var err error
		if newest[n], err = s.newestEntry(ctx, p, everySubject); err != nil {
			return nil, err
		}
	}
	return newest, nil
}

const everySubject = ">"

func (s *Store) newestEntry(ctx context.Context, p shard, subject string) (uint64, error) {
	for {
		asked := time.Now()
		m, err := s.last(ctx, p, subject)
		switch {
		case err != nil:
			return 0, err
		case s.replicated.Load() && !s.lease.holds(asked):
			if err := s.lease.ensure(ctx); err != nil {
				return 0, err
			}
		case m == nil:
			return 0, nil
		default:
			return m.Sequence, nil
		}
	}
}
