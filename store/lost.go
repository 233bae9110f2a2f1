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

// lost are the streams that a store lacks: those of which nothing else holds what was in them, and those that are
// derived from transcripts. A start derives only what is about sessions that somebody acts in.
func lost(ctx context.Context, js jetstream.JetStream) (kept, derived []string, err error) {
	there, err := streamNames(ctx, js)
	if err != nil {
		return nil, nil, err
	}
	shards, err := shardsOf(ctx, js)
	if err != nil {
		return nil, nil, err
	}
	first := api.ShardName(api.SessionsStream, 0)
	missing := map[string]bool{}
	if there[first] {
		known, err := js.Stream(ctx, first)
		if err != nil {
			return nil, nil, err
		}
		complete := known.CachedInfo().Config.Metadata[keepsKey]
		for name := range strings.FieldsSeq(complete) {
			missing[name] = keeps(name) && !there[name]
		}
		if complete != "" {
			derived = derivedBy(shards)
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
	derived = slices.DeleteFunc(derived, func(name string) bool { return there[name] })
	return slices.Sorted(maps.Keys(missing)), derived, nil
}

// derivedBy are the streams that a store of as many shards derives from its transcripts.
func derivedBy(shards int) []string {
	all := []string{api.TimersStream, api.EscalationsStream}
	for n := range max(1, shards) {
		all = append(all, api.ShardName(api.IndexStream, n), api.ShardName(api.InboxStream, n))
	}
	return all
}

// refuseLost returns ErrLost unless all that the store keeps is there, or is known to be lost.
func (s *Store) refuseLost(ctx context.Context) error {
	if s.o.Restoring {
		return nil
	}
	names, derived, err := lost(ctx, s.js)
	if err != nil {
		return err
	}
	if len(s.o.Lost) > 0 && len(names) == 0 {
		s.o.Log.Warn("the store has lost nothing: leave --accept-lost out, or the next loss is accepted too")
	}
	for _, name := range derived {
		s.o.Log.Error("the store has lost a stream, and an empty one is made: restore a backup. 'parley session audit' says what is missing", zap.String("stream", name))
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
