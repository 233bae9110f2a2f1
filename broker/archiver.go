package broker

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/zap"

	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/wire"
)

// The archivers of all brokers share the list of sessions that are over as a
// queue: each session is one's work, and another's when that one is gone.
const (
	archiver     = "archiver"
	archiveBatch = 200              // sessions at a time
	archiveWait  = 15 * time.Second // for one to be done with them
	archiveLook  = time.Second      // between looks at an empty queue
	archivePause = 5 * time.Second  // before a session is tried again
)

// openArchive begins to move sessions that are over.
func (b *Broker) openArchive(ctx context.Context) error {
	if b.Archive.After <= 0 {
		return nil
	}
	queue, err := b.js.CreateOrUpdateConsumer(ctx, wire.IndexStream, jetstream.ConsumerConfig{
		Durable: archiver, FilterSubject: wire.AllOver, AckPolicy: jetstream.AckExplicitPolicy,
		AckWait: archiveWait, MaxAckPending: 4 * archiveBatch,
	})
	if err != nil {
		return err
	}
	b.background(func(ctx context.Context) {
		for ctx.Err() == nil {
			if err := b.archiveSome(ctx, queue); err != nil && ctx.Err() == nil {
				b.Log.Warn("archiving goes on later", zap.Error(err))
				select {
				case <-time.After(archiveLook):
				case <-ctx.Done():
				}
			}
		}
	})
	return nil
}

// archiveSome moves the sessions of one batch that have been over for long enough.
func (b *Broker) archiveSome(ctx context.Context, queue jetstream.Consumer) error {
	batch, err := queue.Fetch(archiveBatch, jetstream.FetchMaxWait(archiveLook))
	if err != nil {
		return err
	}
	var moving []jetstream.Msg
	var left []performatives.SessionID // a line that was written again comes again
	for m := range batch.Messages() {
		meta, err := m.Metadata()
		if err != nil {
			return err
		}
		id, err := performatives.ParseSessionID(strings.TrimPrefix(m.Subject(), wire.IndexOver("")))
		if err != nil {
			continue
		}
		if early := b.Archive.After - time.Since(meta.Timestamp); early > 0 {
			err = m.NakWithDelay(early)
		} else if err = b.archiveOne(ctx, id); err == nil {
			moving, left = append(moving, m), append(left, id)
		} else if ctx.Err() == nil {
			b.Log.Warn("a session is archived later", zap.String("session", string(id)), zap.Error(err))
			err = m.NakWithDelay(archivePause)
		}
		if err != nil {
			return err
		}
	}
	if err := batch.Error(); err != nil && !errors.Is(err, nats.ErrTimeout) {
		return err
	}
	slices.Sort(left)
	if err := b.leave(ctx, slices.Compact(left)); err != nil {
		return err // the queue gives them out again
	}
	for _, m := range moving {
		if err := m.Ack(); err != nil {
			return err
		}
	}
	return nil
}

// archiveOne archives a session when its turn comes.
func (b *Broker) archiveOne(ctx context.Context, id performatives.SessionID) error {
	done := make(chan error, 1)
	if !b.sessions.run(id, func(ctx context.Context, l *live) {
		done <- b.archive(ctx, l)
		if len(l.undelivered) > 0 {
			b.settle(ctx, l) // the next time it may leave
		}
	}) {
		return unavailable()
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// retention is what the transcripts' stream was made with, or is to be made with. What is a
// work queue gives up what is acknowledged, and nothing else; it cannot become one later.
func (b *Broker) retention(ctx context.Context) (jetstream.RetentionPolicy, error) {
	s, err := b.js.Stream(ctx, wire.SessionsStream)
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound) && b.Archive.After > 0:
		return jetstream.WorkQueuePolicy, nil
	case errors.Is(err, jetstream.ErrStreamNotFound):
		return jetstream.LimitsPolicy, nil
	case err != nil:
		return 0, err
	}
	now := s.CachedInfo().Config.Retention
	if now != jetstream.WorkQueuePolicy && b.Archive.After > 0 {
		return now, ErrNoArchive
	}
	return now, nil
}

// ErrNoArchive is for a store whose transcripts cannot leave for an archive.
var ErrNoArchive = errors.New("the store was made without an archive: a backup of it can be restored with one")
