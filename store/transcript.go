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
	if err := s.Sync(api.SessionsStream, sequence); err != nil {
		return 0, fmt.Errorf("%w: %w", ErrIndeterminate, err)
	}
	return sequence, nil
}

func (s *Store) tryAppend(id performatives.SessionID, entry []byte, beside Header, last uint64) (uint64, error) {
	header := Header{api.FormatHeader: formatHeader}
	maps.Copy(header, beside)
	sent, err := s.publisher.send(api.SessionsStream, Message{Subject: api.Session(id), Data: entry, Header: header}, last)
	if err != nil {
		return 0, err
	}
	o := <-sent.done
	return o.sequence, o.err
}

// LastEntry is the sequence of a session's last entry, 0 for none: the newest that
// was acknowledged before this was called.
func (s *Store) LastEntry(ctx context.Context, id performatives.SessionID) (uint64, error) {
	return s.newestEntry(ctx, api.Session(id))
}

// EverySubject is every message of a stream.
const EverySubject = ">"

// NewestEntry is the sequence of the last entry of all sessions.
func (s *Store) NewestEntry(ctx context.Context) (uint64, error) {
	return s.newestEntry(ctx, EverySubject)
}

func (s *Store) newestEntry(ctx context.Context, subject string) (uint64, error) {
	for {
		asked := time.Now()
		m, err := s.Last(ctx, api.SessionsStream, subject)
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
