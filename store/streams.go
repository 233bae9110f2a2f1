package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/zap"
	"golang.org/x/mod/semver"

	"github.com/parley-asp/parley/api"
)

// MinServer is the oldest NATS server that has what the broker relies on:
// message schedules, which came with 2.12.
const MinServer = "2.12.0"

// ErrServerTooOld is for a NATS server older than MinServer.
var ErrServerTooOld = errors.New("parley needs NATS server " + MinServer + " or newer, for message schedules")

// CheckServer refuses a server older than MinServer, and one whose version is not semantic.
func CheckServer(version string) error {
	// "-0" precedes every pre-release, and those of MinServer have schedules too.
	if semver.Compare("v"+version, "v"+MinServer+"-0") < 0 {
		return fmt.Errorf("%w; this one is %s", ErrServerTooOld, version)
	}
	return nil
}

// rowsKept is more rows than most sessions write. A row that was dropped because there
// are more is back when a server that was killed reads the whole stream; a purged one is not.
const rowsKept = 64

// maxConsumers of the inbox stream: one for each principal. Unset means 1,000.
const maxConsumers = 1 << 20

// openStreams makes the fixed set of streams, never one per session.
func (s *Store) openStreams(ctx context.Context) error {
	streams := map[string]jetstream.Stream{}
	if err := s.admissible(ctx); err != nil {
		return err
	}
	if err := s.refuseLost(ctx); err != nil {
		return err
	}
	if err := s.countShards(ctx); err != nil {
		return err
	}
	retention, err := s.retention(ctx)
	if err != nil {
		return fmt.Errorf("%s: %w", api.SessionsStream, err)
	}
	if s.o.InboxAge, err = s.inboxAge(ctx); err != nil {
		return fmt.Errorf("%s: %w", api.InboxStream, err)
	}
	old, err := s.sealCaseLogs(ctx)
	if err != nil {
		return fmt.Errorf("%s: %w", oldCaseLogs, err)
	}
	for _, c := range fixedStreams(retention, s.o.InboxAge, s.shards) {
		if c.Name == api.SessionsStream {
			c.Metadata = map[string]string{}
		}
		if known, err := s.js.Stream(ctx, c.Name); err == nil {
			is := known.CachedInfo().Config
			if names := is.Metadata[keepsKey]; names != "" {
				c.Metadata[keepsKey] = names
			}
			c.DenyDelete = c.DenyDelete || is.DenyDelete // a stream cannot give that up
			if s.o.Replicas > 0 && is.Replicas != s.o.Replicas && c.Name == api.SessionsStream {
				s.o.Log.Warn("--replicas changes the number of replicas of the store", zap.Int("from", is.Replicas), zap.Int("to", s.o.Replicas))
			}
		}
		if c.Name == api.SessionsStream && !s.o.Dev {
			c.Metadata[LoginsKey] = "required"
		}
		if c.Replicas, err = s.replicas(ctx, c.Name); err == nil {
			streams[c.Name], err = create(ctx, func(ctx context.Context) (jetstream.Stream, error) { return s.js.CreateOrUpdateStream(ctx, c) })
		}
		if err != nil {
			return fmt.Errorf("%s: %w", c.Name, err)
		}
	}
	s.streams = streams
	if old != nil {
		if err := s.moveCaseLogs(ctx, old, streams[api.CaseLogStream]); err != nil {
			return fmt.Errorf("%s: %w", oldCaseLogs, err)
		}
	}
	if err := s.admissible(ctx); err != nil { // a restore may have begun meanwhile
		return err
	}
	s.scaled(streams[api.SessionsStream].CachedInfo())
	for _, p := range s.all(api.SessionsStream) {
		if err := s.Sync(p.name, 0); err != nil {
			return err
		}
	}
	return nil
}

// ErrRestoring is for a store of which only a part has been restored.
var ErrRestoring = errors.New("a restore to this server did not end: run it again, and it begins anew")

// ErrNotDev is for --dev on a store whose acts are signed.
var ErrNotDev = errors.New("the store was started without --dev: with it, everybody could act in its sessions as anybody")

// LoginsKey is the metadata of api.SessionsStream that says that --dev may not open the store.
const LoginsKey = "parley-logins"

// admissible refuses to open a store that may not be opened so, before anything in it is changed.
func (s *Store) admissible(ctx context.Context) error {
	_, err := s.js.Stream(ctx, api.RestoringStream)
	switch {
	case err == nil && !s.o.Restoring:
		return ErrRestoring
	case err != nil && !errors.Is(err, jetstream.ErrStreamNotFound):
		return err
	case !s.o.Dev:
		return nil
	}
	transcripts, err := s.js.Stream(ctx, api.SessionsStream)
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound):
		return nil
	case err == nil && transcripts.CachedInfo().Config.Metadata[LoginsKey] != "":
		return ErrNotDev
	}
	return err
}

// fixedStreams are the streams of a store, but for their replicas.
func fixedStreams(retention jetstream.RetentionPolicy, inboxAge time.Duration, shards int) (all []jetstream.StreamConfig) {
	configs := []jetstream.StreamConfig{
		{ // the truth: nothing in it is ever deleted, purged or rolled up
			Name: api.SessionsStream, Subjects: []string{api.AllSessions}, Description: "transcripts: the source of truth",
			DenyDelete: true, DenyPurge: true, AllowDirect: true, Retention: retention,
		},
		{
			Name: api.InboxStream, Subjects: []string{api.AllInboxes}, Description: "what each principal receives",
			MaxAge: inboxAge, MaxConsumers: maxConsumers, AllowDirect: true,
		},
		{
			Name: api.EscalationsStream, Subjects: []string{api.AllEscalations}, Description: "the escalation inbox",
			MaxMsgsPerSubject: 64, AllowDirect: true,
		},
		{ // the case logs: they are nowhere else, so deleted only with a session that is erased
			Name: api.CaseLogStream, Subjects: []string{api.AllCaseLogs, api.AllPeople}, Description: "who claimed, said and was told what about escalations",
			DenyPurge: true, AllowDirect: true,
		},
		{ // work queue: a due timer is gone once a broker has looked at it
			Name: api.TimersStream, Subjects: []string{"asp.timer.>"}, Description: "durable timers",
			Retention: jetstream.WorkQueuePolicy, MaxMsgsPerSubject: 1, AllowMsgSchedules: true,
		},
		{
			Name: api.IndexStream, Subjects: []string{api.AllIndex, api.AllOver}, Description: "list of sessions; derived",
			MaxMsgsPerSubject: rowsKept, AllowDirect: true, AllowMsgTTL: true, AllowRollup: true,
		},
		{ // the public log: a leaf's index is its sequence, so nothing in it is ever deleted
			Name: api.LogStream, Subjects: []string{api.AllLeaves}, Description: "leaves of the public log, in order",
			DenyDelete: true, DenyPurge: true, AllowDirect: true,
		},
	}
	if retention == jetstream.WorkQueuePolicy { // single messages are deleted where a session is erased
		configs = append(configs, jetstream.StreamConfig{
			Name: api.ArchiveStream, Subjects: []string{api.AllArchive}, Description: "transcripts of sessions that are over",
			DenyPurge: true, AllowDirect: true, AllowMsgTTL: true,
		}, jetstream.StreamConfig{
			Name: api.ArchiveIndexStream, Subjects: []string{api.ArchiveIndexPage}, Description: "list of the sessions in the archive",
			DenyPurge: true, AllowDirect: true, AllowMsgTTL: true,
		})
	}
	if shards > 1 { // first, so that a store that is not complete yet says so
		configs = slices.Insert(configs, 0, shardsStream(shards))
	}
	for _, c := range configs {
		c.Storage = jetstream.FileStorage
		all = append(all, split(c, shards)...)
	}
	return all
}

// replicas is how many copies a stream gets: as many as the options say, else as
// many as it has, so that a broker that was started without saying takes none away.
func (s *Store) replicas(ctx context.Context, stream string) (int, error) {
	if s.o.Replicas > 0 {
		return s.o.Replicas, nil
	}
	known, err := s.js.Stream(ctx, stream)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return 1, nil
	}
	if err != nil {
		return 0, err
	}
	return known.CachedInfo().Config.Replicas, nil
}

// DefaultInboxAge is how long inbox copies are kept where nobody has said (PROTOCOL.md §2):
// what is older is read from the transcript.
const DefaultInboxAge = 7 * 24 * time.Hour

// inboxAge is how long inbox copies are kept: as the options say, else as it is.
func (s *Store) inboxAge(ctx context.Context) (time.Duration, error) {
	if s.o.InboxAge > 0 {
		return s.o.InboxAge, nil
	}
	known, err := s.js.Stream(ctx, api.InboxStream)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return DefaultInboxAge, nil
	}
	if err != nil {
		return 0, err
	}
	return known.CachedInfo().Config.MaxAge, nil
}

// retention is what the transcript stream was created with, or is to be created
// with. A work queue gives up what is acknowledged, and nothing else; a stream
// cannot become one later.
func (s *Store) retention(ctx context.Context) (jetstream.RetentionPolicy, error) {
	known, err := s.js.Stream(ctx, api.SessionsStream)
	archived := s.o.Archive
	if errors.Is(err, jetstream.ErrStreamNotFound) && slices.Contains(s.o.Lost, api.SessionsStream) {
		_, none := s.js.Stream(ctx, api.ArchiveStream)
		archived = archived || none == nil
	}
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound) && archived:
		return jetstream.WorkQueuePolicy, nil
	case errors.Is(err, jetstream.ErrStreamNotFound):
		return jetstream.LimitsPolicy, nil
	case err != nil:
		return 0, err
	}
	now := known.CachedInfo().Config.Retention
	if now != jetstream.WorkQueuePolicy && s.o.Archive && !s.o.ArchiveIfThere {
		return now, ErrNoArchive
	}
	return now, nil
}

// ErrNoArchive is for a store whose transcripts cannot leave for an archive.
var ErrNoArchive = errors.New("the store was made without an archive: a backup of it can be restored with one")
