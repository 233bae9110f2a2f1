package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/zap"

	"github.com/parley-asp/parley/api"
)

// ErrLost is for a store that lacks a stream that it had.
var ErrLost = errors.New("the store has lost what nothing else holds")

// keepsKey is the metadata of the first stream of transcripts that names the streams of the store which hold what nothing
// else does. A broker that finds one of them missing would otherwise make an empty one.
const keepsKey = "parley-keeps"

// keeps are such streams. The others are derived from them, or are about what brokers do now.
func keeps(name string) bool {
	return isTranscripts(name) || slices.Contains([]string{
		api.ShardsStream, api.CaseLogStream, api.LogStream, api.ArchiveStream, api.ArchiveIndexStream, api.StreamOf(api.AgentsBucket), api.StreamOf(api.SchemasBucket),
		api.StreamOf(api.KeysBucket), api.StreamOf(api.LedgerBucket), api.StreamOf(api.PrivateBucket), api.StreamOf(api.MACPBucket), api.StreamOf(api.A2ABucket),
		api.StreamOf(api.WakeupsBucket),
	}, name)
}

func isTranscripts(name string) bool { return api.Unsharded(name) == api.SessionsStream }

// lost are the streams that a store lacks, of those that it keeps.
func lost(ctx context.Context, js jetstream.JetStream) ([]string, error) {
	there, err := streamNames(ctx, js)
	if err != nil {
		return nil, err
	}
	shards, err := shardsOf(ctx, js)
	if err != nil {
		return nil, err
	}
	first := api.ShardName(api.SessionsStream, 0)
	missing := map[string]bool{}
	if there[first] {
		known, err := js.Stream(ctx, first)
		if err != nil {
			return nil, err
		}
		for name := range strings.FieldsSeq(known.CachedInfo().Config.Metadata[keepsKey]) {
			missing[name] = keeps(name) && !there[name]
		}
	}
	for name := range there {
		switch {
		case isTranscripts(name) && name != first: // made after the stream that says how many there are
			missing[api.ShardsStream] = !there[api.ShardsStream]
		case name == api.InboxStream, keeps(name) && name != first && name != api.ShardsStream: // made after all transcripts'
			for n := range max(1, shards) {
				name := api.ShardName(api.SessionsStream, n)
				missing[name] = !there[name]
			}
		}
	}
	maps.DeleteFunc(missing, func(_ string, is bool) bool { return !is })
	return slices.Sorted(maps.Keys(missing)), nil
}

// refuseLost returns ErrLost unless all that the store keeps is there, or is known to be lost.
func (s *Store) refuseLost(ctx context.Context) error {
	if s.o.Restoring {
		return nil
	}
	names, err := lost(ctx, s.js)
	if err != nil {
		return err
	}
	if len(s.o.Lost) > 0 && len(names) == 0 {
		s.o.Log.Warn("the store has lost nothing: leave --accept-lost out, or the next loss is accepted too")
	}
	if err := s.warnDerived(ctx); err != nil {
		return err
	}
	names = slices.DeleteFunc(names, func(name string) bool { return slices.Contains(s.o.Lost, name) })
	if len(names) > 0 {
		return fmt.Errorf("%w: %s", ErrLost, strings.Join(names, ", "))
	}
	return nil
}

// Complete notes which streams the store has.
func (s *Store) Complete(ctx context.Context) error {
	there, err := streamNames(ctx, s.js)
	if err != nil {
		return err
	}
	names := strings.Join(slices.DeleteFunc(slices.Sorted(maps.Keys(there)), func(name string) bool { return !keeps(name) }), " ")
	known, err := s.js.Stream(ctx, api.ShardName(api.SessionsStream, 0))
	if err != nil {
		return err
	}
	config := known.CachedInfo().Config
	if config.Metadata[keepsKey] == names {
		return nil
	}
	if config.Metadata == nil {
		config.Metadata = map[string]string{}
	}
	config.Metadata[keepsKey] = names
	_, err = create(ctx, func(ctx context.Context) (jetstream.Stream, error) { return s.js.UpdateStream(ctx, config) })
	return err
}

func streamNames(ctx context.Context, js jetstream.JetStream) (map[string]bool, error) {
	list, there := js.StreamNames(ctx), map[string]bool{}
	for name := range list.Name() {
		there[name] = true
	}
	return there, list.Err()
}

// warnDerived warns of streams that are derived from transcripts, and are gone: a start derives only what is about sessions
// that somebody acts in.
func (s *Store) warnDerived(ctx context.Context) error {
	there, err := streamNames(ctx, s.js)
	if err != nil || !there[api.SessionsStream] {
		return err
	}
	known, err := s.js.Stream(ctx, api.SessionsStream)
	if err != nil || known.CachedInfo().Config.Metadata[keepsKey] == "" { // it was not complete yet
		return err
	}
	for _, name := range []string{api.IndexStream, api.TimersStream, api.EscalationsStream} {
		if !there[name] {
			s.o.Log.Error("the store has lost a stream, and an empty one is made: restore a backup. 'parley session audit' says what is missing", zap.String("stream", name))
		}
	}
	return nil
}
