package archive

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker/sessionlist"
	"github.com/parley-asp/parley/internal/background"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/store"
)

// Options say what is archived, and when.
type Options struct {
	Store  *store.Store
	List   *sessionlist.List
	Policy Policy
	Log    *zap.Logger // nil is silent

	// Ended is a session's row once it has ended and all its side effects are applied;
	// until then it is an error, and the session is asked for again.
	Ended func(context.Context, performatives.SessionID) (sessionlist.Row, error)

	// Erase takes away what is kept of a session beside its transcript, and may be called again.
	Erase func(context.Context, *session.State) error
	Modes session.Modes // by which it is replayed for that

	// Failpoint, if there is one, is called at each of Failpoints.
	Failpoint func(name string)
}

// The archivers of all brokers share the ended sessions as a queue: each session is
// one's work, and another's if that one stops.
const (
	queueName    = "archiver"
	batchSize    = 200         // sessions
	concurrency  = 8           // of them at once
	pollInterval = time.Second // between looks at what is due
)

// An Archiver moves ended sessions to the archive until it is closed.
type Archiver struct {
	o      Options
	reader *Reader
	queues []*store.Queue // one for each shard of the session list
	work   *background.Group

	erasing sync.Mutex // one session at a time
}

// Open starts an archiver; with the zero Policy, one that does nothing.
func Open(ctx context.Context, o Options) (*Archiver, error) {
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	if o.Failpoint == nil {
		o.Failpoint = func(string) {}
	}
	a := &Archiver{o: o, reader: NewReader(o.Store, o.Log), work: background.New()}
	if o.Policy.After <= 0 {
		return a, nil
	}
	var err error
	if a.queues, err = o.Store.Queues(ctx, store.QueueConfig{
		Stream: api.IndexStream, Name: queueName, Subject: api.AllOver, AckWait: cmp.Or(o.Policy.Takeover, takeover), MaxAckPending: 4 * batchSize,
	}); err != nil {
		a.Close()
		return nil, err
	}
	a.work.Go(a.run)
	return a, nil
}

// Close ends the archiver's goroutines.
func (a *Archiver) Close() { a.work.Close() }

// patience is how long archiving may fail before that is worth a warning: an election takes as long.
const patience = time.Minute

// run moves sessions, burst by burst.
func (a *Archiver) run(ctx context.Context) {
	var since time.Time // that it fails
	for background.Await(ctx, a.o.List.Loaded()) == nil && ctx.Err() == nil {
		err := a.burst(ctx)
		if err == nil || ctx.Err() != nil {
			since = time.Time{}
			continue
		}
		if since.IsZero() {
			since = time.Now()
		}
		level := zap.DebugLevel
		if time.Since(since) > patience {
			level = zap.WarnLevel
		}
		a.o.Log.Log(level, "archiving continues later", zap.Error(err))
		background.Pause(ctx, pollInterval) //nolint:errcheck // the loop looks at ctx
	}
}

// burst waits for the next burst, or until very many sessions are due, and moves those that are.
func (a *Archiver) burst(ctx context.Context) error {
	begin := time.Now().Add(a.o.Policy.untilBurst(time.Now()))
	for left := time.Until(begin); left > 0; left = time.Until(begin) {
		if err := background.Pause(ctx, min(left, pollInterval)); err != nil {
			return err
		}
		if many, err := a.manyAreDue(ctx); err != nil {
			return err
		} else if many {
			break
		}
	}
	for ctx.Err() == nil {
		if moved, err := a.moveBatches(ctx); err != nil || moved == 0 {
			return err
		}
	}
	return nil
}

// manyAreDue reports whether very many rows wait in a queue, its share of those that are moved at once,
// and one is due that was written so many messages after the last one that the queue gave out.
func (a *Archiver) manyAreDue(ctx context.Context) (bool, error) {
	many := a.o.Policy.sessionsAtOnce() / uint64(len(a.queues))
	for _, q := range a.queues {
		waiting, delivered, err := q.Waiting(ctx)
		if err != nil {
			return false, err
		}
		if waiting < many {
			continue
		}
		m, err := q.Next(ctx, delivered+many)
		if err != nil || m != nil && time.Since(m.Time) >= a.o.Policy.After {
			return err == nil, err
		}
	}
	return false, nil
}

// moveBatches moves the due sessions of one batch of each queue, and tells how many rows that were.
func (a *Archiver) moveBatches(ctx context.Context) (moved int, err error) {
	for _, q := range a.queues {
		some, err := a.moveBatch(ctx, q)
		if moved += some; err != nil {
			return moved, err
		}
	}
	return moved, nil
}

// moveBatch moves those of one batch.
func (a *Archiver) moveBatch(ctx context.Context, q *store.Queue) (moved int, err error) {
	batch, err := q.Fetch(batchSize, pollInterval/time.Duration(len(a.queues)))
	if err != nil {
		return 0, err
	}
	due := map[performatives.SessionID][]store.Delivery{} // more than one if the row was written again
	for _, m := range batch {
		if early := a.o.Policy.After - time.Since(m.Time); early > 0 {
			if err := m.Later(early); err != nil {
				return 0, err
			}
			continue
		}
		id := performatives.SessionID(strings.TrimPrefix(m.Subject, api.IndexOver("")))
		due[id] = append(due[id], m)
	}
	archived, err := a.archiveAll(ctx, due)
	if err != nil {
		return 0, err
	}
	if err := a.release(ctx, archived); err != nil {
		return 0, err // the queue gives them out again
	}
	if err := a.list(ctx, archived); err != nil {
		return 0, err
	}
	for _, s := range archived {
		for _, m := range due[s.Session] {
			if err := m.Ack(); err != nil {
				return 0, err
			}
			moved++
		}
	}
	return moved, nil
}

// archiveAll archives sessions, several at once, and returns those that the archive
// has now, sorted. The queue gives the others out again.
func (a *Archiver) archiveAll(ctx context.Context, due map[performatives.SessionID][]store.Delivery) (archived []sessionlist.Listed, err error) {
	type outcome struct {
		listed sessionlist.Listed
		err    error
	}
	ids := make([]performatives.SessionID, 0, len(due))
	for id := range due {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for some := range slices.Chunk(ids, concurrency) {
		outcomes := make([]chan outcome, len(some))
		for i, id := range some {
			outcomes[i] = make(chan outcome, 1)
			a.work.Go(func(ctx context.Context) {
				row, err := a.archiveOne(ctx, id)
				outcomes[i] <- outcome{sessionlist.Listed{Session: id, Row: row}, err}
			})
		}
		for i, id := range some {
			var got outcome
			select {
			case got = <-outcomes[i]:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
			if got.err == nil {
				archived = append(archived, got.listed)
				continue
			}
			a.o.Log.Warn("a session is archived later", zap.String("session", string(id)), zap.Error(got.err))
			for _, m := range due[id] {
				if err := m.Later(cmp.Or(a.o.Policy.Retry, retry)); err != nil {
					return nil, err
				}
			}
		}
	}
	return archived, nil
}
