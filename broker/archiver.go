package broker

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/internal/background"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/store"
)

// The archivers of all brokers share the list of sessions that are over as a
// queue: each session is one's work, and another's when that one is gone.
const (
	archiver        = "archiver"
	archiveBatch    = 200              // sessions at a time
	archiveTogether = 8                // of them at once
	archiveWait     = 15 * time.Second // for one to be done with them
	archiveLook     = time.Second      // between looks at what is due
	archivePause    = 5 * time.Second  // before a session is tried again
)

// openArchive begins to move sessions that are over.
func (b *Broker) openArchive(ctx context.Context) error {
	if b.Archive.After <= 0 {
		return nil
	}
	queue, err := b.store.Queue(ctx, store.QueueConfig{
		Stream: api.IndexStream, Name: archiver, Subject: api.AllOver, AckWait: archiveWait, MaxAckPending: 4 * archiveBatch,
	})
	if err != nil {
		return err
	}
	b.work.Go(func(ctx context.Context) {
		for background.Await(ctx, b.index.loaded) == nil && ctx.Err() == nil {
			if err := b.archiveDue(ctx, queue); err != nil && ctx.Err() == nil {
				b.Log.Warn("archiving goes on later", zap.Error(err))
				background.Pause(ctx, archiveLook)
			}
		}
	})
	return nil
}

// Sessions move in bursts. The server writes a summary of each stream every two
// minutes, and believes it after a kill if nothing was added since: what is written
// rarely is read from its summary, what is written all the time is read whole.
const (
	longestBetween = time.Hour // bursts
	atOnce         = 100_000   // sessions that are due wait for no burst
	linesOf        = 3         // lines that a session has written until it is over, at least
)

// every is how often what is due moves, together.
func (a Archive) every() time.Duration {
	if a.Every > 0 {
		return a.Every
	}
	return min(a.After/4, longestBetween)
}

// untilBurst is how long it is to the next burst. All brokers' are at the same times
// by their clocks: else several brokers would write all the time.
func (a Archive) untilBurst(now time.Time) time.Duration {
	every := a.every()
	if every < archiveLook {
		return 0
	}
	return now.Truncate(every).Add(every).Sub(now)
}

// archiveDue waits for the next burst, or until very much is due, and moves what is.
func (b *Broker) archiveDue(ctx context.Context, queue *store.Queue) error {
	begin := time.Now().Add(b.Archive.untilBurst(time.Now()))
	for left := time.Until(begin); left > 0 && ctx.Err() == nil; left = time.Until(begin) {
		background.Pause(ctx, min(left, archiveLook))
		if much, err := b.muchIsDue(ctx, queue); err != nil || much {
			if err != nil {
				return err
			}
			break
		}
	}
	for ctx.Err() == nil {
		if moved, err := b.archiveSome(ctx, queue); err != nil || moved == 0 {
			return err
		}
	}
	return nil
}

// muchIsDue tells whether a line is due that was written long after the last that
// was looked at.
func (b *Broker) muchIsDue(ctx context.Context, queue *store.Queue) (bool, error) {
	delivered, err := queue.Delivered(ctx)
	if err != nil {
		return false, err
	}
	far := delivered + linesOf*uint64(cmp.Or(b.Archive.AtOnce, atOnce))
	m, err := b.store.Next(ctx, api.IndexStream, far, api.AllOver)
	return m != nil && time.Since(m.Time) >= b.Archive.After, err
}

// archiveSome moves the sessions of one batch that have been over for long enough,
// and tells how many those are.
func (b *Broker) archiveSome(ctx context.Context, queue *store.Queue) (moved int, err error) {
	batch, err := queue.Fetch(archiveBatch, archiveLook)
	if err != nil {
		return 0, err
	}
	var due []store.Delivery
	for _, m := range batch {
		if early := b.Archive.After - time.Since(m.Time); early <= 0 {
			due = append(due, m)
		} else if err := m.Later(early); err != nil {
			return 0, err
		}
	}
	due, moves, err := b.archiveAll(ctx, due)
	if err != nil {
		return 0, err
	}
	if err := b.leave(ctx, moves); err != nil {
		return 0, err // the queue gives them out again
	}
	if err := b.enterCatalogue(ctx, moves); err != nil {
		return 0, err
	}
	for _, m := range due {
		if err := m.Ack(); err != nil {
			return 0, err
		}
	}
	return len(due), nil
}

// archiveAll archives sessions, several at once, and returns those with which that was
// done. The others come again.
func (b *Broker) archiveAll(ctx context.Context, due []store.Delivery) (done []store.Delivery, moves []Listed, err error) {
	for some := range slices.Chunk(due, archiveTogether) {
		var ends []func() (Listed, error)
		for _, m := range some {
			ends = append(ends, b.archiveOne(ctx, performatives.SessionID(strings.TrimPrefix(m.Subject, api.IndexOver("")))))
		}
		for i, end := range ends {
			l, err := end()
			if err == nil {
				done, moves = append(done, some[i]), append(moves, l)
				continue
			}
			if ctx.Err() != nil {
				return nil, nil, ctx.Err()
			}
			b.Log.Warn("a session is archived later", zap.String("subject", some[i].Subject), zap.Error(err))
			if err := some[i].Later(archivePause); err != nil {
				return nil, nil, err
			}
		}
	}
	slices.SortFunc(moves, func(a, b Listed) int { return strings.Compare(string(a.Session), string(b.Session)) })
	moves = slices.CompactFunc(moves, func(a, b Listed) bool { return a.Session == b.Session }) // its line was written again
	return done, moves, nil
}

// archiveOne has a session archived when its turn comes; end waits for that, and says what
// the list has of it.
func (b *Broker) archiveOne(ctx context.Context, id performatives.SessionID) (end func() (Listed, error)) {
	done, failed := make(chan Listed, 1), make(chan error, 1)
	if _, err := performatives.ParseSessionID(string(id)); err != nil {
		failed <- err
	} else if !b.sessions.run(id, func(ctx context.Context, l *live) {
		if err := b.archive(ctx, l); err != nil {
			failed <- err
		} else {
			done <- Listed{id, l.state.Phase, l.state.Roll(), l.state.Next}
		}
		if len(l.undelivered) > 0 {
			b.settle(ctx, l) // the next time it may leave
		}
	}) {
		failed <- session.Busy()
	}
	return func() (Listed, error) {
		select {
		case l := <-done:
			return l, nil
		case err := <-failed:
			return Listed{}, err
		case <-ctx.Done():
			return Listed{}, ctx.Err()
		}
	}
}
