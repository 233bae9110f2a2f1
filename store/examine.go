package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-asp/parley/api"
)

// An Examination is what Examine found. Nothing was changed.
type Examination struct {
	At       time.Time         // the server's clock, when it answered last; zero if it told none
	Used     float64           // of the account's bytes on disk, at most 1; 0 where it has no limit
	Acts     uint64            // in the transcripts' stream
	Archived uint64            // sessions in the archive
	Missing  []string          // streams that the next start makes
	Lost     []string          // streams without which none goes on
	Wrong    map[string]string // by stream: which settings are others than a broker makes, or that it has no leader
	Keys     KeyRecord
	Shards   int            // 0 if there is no store yet
	Replicas map[string]int // of each stream
	Servers  map[string]Servers
}

// Examine looks at JetStream and the streams of a broker. It returns an error if JetStream does not answer.
func Examine(ctx context.Context, nc *nats.Conn) (e Examination, err error) {
	js, err := jetstream.New(nc)
	if err != nil {
		return e, err
	}
	account, err := js.AccountInfo(ctx)
	if err != nil {
		return e, err
	}
	if most := account.Limits.MaxStore; most > 0 {
		e.Used = float64(account.Store) / float64(most)
	}
	e.Wrong, e.Replicas, e.Servers = map[string]string{}, map[string]int{}, map[string]Servers{}
	retention := jetstream.LimitsPolicy
	if known, err := js.Stream(ctx, api.SessionsStream); err == nil {
		retention = known.CachedInfo().Config.Retention
	}
	if e.Shards, err = shardsOf(ctx, js); err != nil {
		return e, err
	}
	if e.Lost, _, err = lost(ctx, js); err != nil {
		return e, err
	}
	if e.Keys, err = ReadKeyRecord(ctx, js); err != nil {
		e.Wrong[api.StreamOf(api.LedgerBucket)] = err.Error()
	}
	if _, err := js.Stream(ctx, api.RestoringStream); err == nil {
		e.Wrong[api.RestoringStream] = ErrRestoring.Error()
	}
	for _, want := range fixedStreams(retention, 0, max(1, e.Shards)) { // how long inboxes are kept is the operator's to choose
		known, err := js.Stream(ctx, want.Name)
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			if !slices.Contains(e.Lost, want.Name) {
				e.Missing = append(e.Missing, want.Name)
			}
			continue
		}
		if err != nil {
			return e, fmt.Errorf("%s: %w", want.Name, err)
		}
		info := known.CachedInfo()
		e.At = info.TimeStamp
		if strings.HasPrefix(want.Name, api.SessionsStream) {
			e.Acts += info.State.Msgs
		}
		if want.Name == api.ArchiveStream {
			e.Archived = info.State.NumSubjects
		}
		e.Replicas[want.Name], e.Servers[want.Name] = info.Config.Replicas, serversOf(info)
		if wrong := differs(info.Config, want); wrong != "" {
			e.Wrong[want.Name] = wrong
		} else if info.Cluster != nil && info.Cluster.Leader == "" {
			e.Wrong[want.Name] = "it has no leader"
		}
	}
	return e, nil
}

// differs names the first setting of a stream that loses data or refuses work, "" for none.
func differs(is, want jetstream.StreamConfig) string {
	perSubject := func(c jetstream.StreamConfig) int64 { return max(0, c.MaxMsgsPerSubject) }
	switch {
	case is.Storage != want.Storage:
		return "storage is " + is.Storage.String()
	case is.Retention != want.Retention:
		return "retention is " + is.Retention.String()
	case !strings.HasPrefix(want.Name, api.InboxStream) && is.MaxAge != want.MaxAge:
		return "max age is " + is.MaxAge.String()
	case is.MaxMsgs > 0, is.MaxBytes > 0:
		return "it has a limit of messages or bytes"
	case is.MaxMsgSize > 0 && want.MaxMsgSize == 0:
		return "it has a limit of a message's size"
	case perSubject(is) != perSubject(want):
		return fmt.Sprintf("it keeps %d messages of a subject, not %d", is.MaxMsgsPerSubject, want.MaxMsgsPerSubject)
	case want.DenyDelete && !is.DenyDelete, want.DenyPurge && !is.DenyPurge:
		return "messages can be deleted"
	case want.AllowDirect && !is.AllowDirect, want.AllowMsgSchedules && !is.AllowMsgSchedules, want.AllowMsgTTL && !is.AllowMsgTTL:
		return "direct gets, message schedules or message TTLs are not allowed"
	case is.Sealed:
		return "it is sealed"
	case !slices.Equal(is.Subjects, want.Subjects):
		return fmt.Sprintf("its subjects are %v", is.Subjects)
	case !sameTransform(is.SubjectTransform, want.SubjectTransform):
		return "it stores on other subjects"
	}
	return ""
}

func sameTransform(is, want *jetstream.SubjectTransformConfig) bool {
	if is == nil || want == nil {
		return is == want
	}
	return *is == *want
}

// A KeyRecord is what a store has of the keys that it is of; nil of an earlier version's.
type KeyRecord struct {
	History []byte // every key that signed receipts
	Secret  []byte // which broker.secret, and not the secret
}

// ReadKeyRecord reads it.
func ReadKeyRecord(ctx context.Context, js jetstream.JetStream) (r KeyRecord, err error) {
	bucket, err := js.KeyValue(ctx, api.LedgerBucket)
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		return r, nil
	}
	if err != nil {
		return r, err
	}
	for key, into := range map[string]*[]byte{api.BrokerKeysKey: &r.History, api.SecretNameKey: &r.Secret} {
		switch e, err := bucket.Get(ctx, key); {
		case err == nil:
			*into = e.Value()
		case !errors.Is(err, jetstream.ErrKeyNotFound):
			return r, err
		}
	}
	return r, nil
}
