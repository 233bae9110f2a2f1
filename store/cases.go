package store

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-asp/parley/api"
)

// Up to the end of 2026 the case logs were in a stream of another name, on subjects of
// another name. Nothing of it is derived, so opening a store that has it moves it.
const (
	oldCaseLogs = "ASP_DESK"
	oldCaseLog  = "asp.desk."
	oldCase     = "desk" // member of a message
)

// sealCaseLogs finds the stream of before, nil for none. Nobody writes to it from then on,
// and its subjects are free for the new one.
func (s *Store) sealCaseLogs(ctx context.Context) (jetstream.Stream, error) {
	old, err := s.js.Stream(ctx, oldCaseLogs)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, nil //nolint:nilnil // there is none
	}
	if err != nil || old.CachedInfo().Config.Sealed {
		return old, err
	}
	c := old.CachedInfo().Config
	c.Subjects, c.Sealed = []string{oldCaseLog + "*.*"}, true
	return s.js.UpdateStream(ctx, c)
}

// moveCaseLogs copies the stream of before, message by message, and deletes it once all of
// it is on disk. A message keeps its sequence, so brokers that do this at once, or again
// after a crash, copy nothing twice. No broker adds to the new stream before it is done.
func (s *Store) moveCaseLogs(ctx context.Context, old, to jetstream.Stream) error {
	last := old.CachedInfo().State.LastSeq
	for {
		info, err := to.Info(ctx)
		if err != nil {
			return err
		}
		if info.State.LastSeq >= last {
			break
		}
		err = s.moveCaseLog(ctx, old, info.State.LastSeq+1)
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			return nil // another broker was faster
		}
		if err = writeError(err); err != nil && !errors.Is(err, ErrConflict) {
			return err
		}
	}
	if err := s.moveConsumers(ctx, old); err != nil {
		return err
	}
	if err := s.Sync(api.CaseLogStream, last); err != nil {
		return err
	}
	if err := s.js.DeleteStream(ctx, oldCaseLogs); err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
		return err
	}
	return nil
}

func (s *Store) moveCaseLog(ctx context.Context, old jetstream.Stream, sequence uint64) error {
	m, err := old.GetMsg(ctx, sequence)
	if err != nil {
		return err
	}
	subject, data := m.Subject, m.Data
	if rest, is := strings.CutPrefix(subject, oldCaseLog); is {
		subject = api.CaseLogs + rest
		if data, err = renamed(data); err != nil {
			return fmt.Errorf("%s: %w", m.Subject, err)
		}
	}
	_, err = s.js.PublishMsg(ctx, &nats.Msg{Subject: subject, Data: data}, jetstream.WithExpectLastSequence(sequence-1))
	return err
}

// renamed is a message with the case under its present name.
func renamed(data []byte) ([]byte, error) {
	var entry map[string]jsontext.Value
	if err := json.Unmarshal(data, &entry); err != nil {
		return nil, err
	}
	entry["case"] = entry[oldCase]
	delete(entry, oldCase)
	return json.Marshal(entry, json.Deterministic(true))
}

// moveConsumers makes consumers that go on where those of the stream of before are.
func (s *Store) moveConsumers(ctx context.Context, old jetstream.Stream) error {
	all := old.ListConsumers(ctx)
	for known := range all.Info() {
		c := known.Config
		for i, subject := range c.FilterSubjects {
			c.FilterSubjects[i] = strings.Replace(subject, oldCaseLog, api.CaseLogs, 1)
		}
		c.DeliverPolicy, c.OptStartSeq = jetstream.DeliverByStartSequencePolicy, known.AckFloor.Stream+1
		if c.Durable == "" {
			continue
		}
		if _, err := s.js.CreateOrUpdateConsumer(ctx, api.CaseLogStream, c); err != nil {
			return err
		}
	}
	return all.Err()
}
