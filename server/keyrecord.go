package server

import (
	"bytes"
	"context"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"
	"go.uber.org/zap"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/broker/ledger"
	"github.com/parley-asp/parley/internal/background"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/store"
)

// recordKeys notes in the store which keys sign, and insists that this broker has the newest of them. Its files may
// be a copy of before a rotation, or of another installation: what it signed would fail its verification.
func (b *Broker) recordKeys(ctx context.Context) error {
	own := b.Options.Keys
	if own == nil {
		own = performatives.KeyHistory{{Key: b.Command.Key()}}
	}
	text, err := json.Marshal(own, json.Deterministic(true))
	if err != nil {
		return err
	}
	bucket, err := b.Parts.Store.Bucket(ctx, api.LedgerBucket, ledger.About, 0)
	if err != nil {
		return err
	}
	for {
		err := b.recordIn(ctx, bucket, own, text)
		if errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrKeyExists) {
			continue
		}
		if err != nil {
			return err
		}
		if b.Options.Archive.Deletes() {
			if _, err := bucket.Create(ctx, api.ExpiryKey, []byte("1")); err != nil && !errors.Is(err, store.ErrKeyExists) {
				return err
			}
		}
		watching := background.New()
		b.closes(watching.Close)
		return bucket.Watch(ctx, watching, func(e store.Entry) {
			b.watchKeys(e, own)
			if e.Key == api.ExpiryKey {
				b.Command.Expires()
			}
		})
	}
}

// watchKeys ends a broker whose key was replaced while it ran: what it signed would fail its verification.
func (b *Broker) watchKeys(e store.Entry, own performatives.KeyHistory) {
	if e.Key != api.BrokerKeysKey || e.Deleted {
		return
	}
	known, err := readRecord(e.Value)
	if err == nil {
		err = newest(known, own)
	}
	if err == nil {
		return
	}
	b.Options.Log.Error("this broker stops", zap.Error(err))
	if b.Options.Failed != nil {
		b.Options.Failed(err)
	}
}

// newest insists that the newest key of a broker is that of the store, or came after it.
func newest(known, own performatives.KeyHistory) error {
	switch {
	case follows(own, known):
		return nil
	case own.Newest() == known.Newest():
		return fmt.Errorf("%w: the data directory lacks %s, with the keys before %s", ErrKeyLost, BrokerKeysFile, own.Newest())
	}
	if n := slices.IndexFunc(known, func(r performatives.KeyRecord) bool { return r.Key == own.Newest() }); n >= 0 {
		next := known[n+1]
		return fmt.Errorf("%w: %s has the seed of %s, which %s replaced at %s", ErrKeyReplaced, BrokerSeed, own.Newest(), next.Key, next.Since)
	}
	return fmt.Errorf("%w: the store's newest key is %s, and %s has the seed of %s", ErrKeyLost, known.Newest(), BrokerSeed, own.Newest())
}

// CheckKeys insists that the broker's key in a data directory is the newest of a store's record, and its secret the
// store's, as a start does.
func CheckKeys(dir string, record store.KeyRecord) error {
	key, err := readBrokerKey(dir)
	if err != nil {
		return err
	}
	defer key.pair.Wipe()
	if record.History != nil {
		known, err := readRecord(record.History)
		if err != nil {
			return err
		}
		own, err := key.keys()
		if err == nil {
			err = newest(known, own)
		}
		if err != nil {
			return err
		}
	}
	return sameSecret(record.Secret, key.secret)
}

// sameSecret insists that a secret is that of the store, by its name there; nil is a store of an earlier version.
func sameSecret(name, secret []byte) error {
	if own, err := secretName(secret); err != nil || name == nil || bytes.Equal(name, own) {
		return err
	}
	return errOtherSecret
}

var errOtherSecret = fmt.Errorf("%w: the store's hosted keys and public log are of another %s", ErrKeyLost, BrokerSecret)

// secretName tells secrets apart, and nothing of them.
func secretName(secret []byte) ([]byte, error) {
	name, err := hkdf.Expand(sha256.New, secret, "parley secret name v1", 16)
	return hex.AppendEncode(nil, name), err
}

// checkSecret insists that the broker's secret is that of the store: with another one it opens no hosted key, and signs
// checkpoints that nobody expects. named reports whether the store has its name. Where it has not, the checkpoint that
// was published last is asked.
func (b *Broker) checkSecret(ctx context.Context, bucket *store.Bucket) (named bool, err error) {
	secret := b.Options.Secret
	if len(secret) == 0 {
		return true, nil
	}
	e, err := bucket.Get(ctx, api.SecretNameKey)
	if err == nil {
		return true, sameSecret(e.Value, secret)
	}
	if !errors.Is(err, store.ErrNoKey) {
		return false, err
	}
	if b.Options.Published != nil {
		checkpoint, err := b.Options.Published.Load()
		if err == nil && checkpoint != "" && ledger.Foreign(checkpoint, secret) {
			err = errOtherSecret
		}
		return false, err
	}
	return false, nil
}

// recordSecret notes which secret the store is of.
func recordSecret(ctx context.Context, bucket *store.Bucket, secret []byte) error {
	name, err := secretName(secret)
	if err == nil {
		_, err = bucket.Create(ctx, api.SecretNameKey, name)
	}
	return err
}

func readRecord(text []byte) (performatives.KeyHistory, error) {
	known, err := performatives.ReadKeyHistory(text)
	if err != nil {
		return nil, fmt.Errorf("the store's record of the broker's keys: %w", err)
	}
	return known, nil
}

// recordIn notes the broker's keys, unless the store has newer ones, and which secret it is of. Nothing is written unless
// all of that is right.
func (b *Broker) recordIn(ctx context.Context, bucket *store.Bucket, own performatives.KeyHistory, text []byte) error {
	var known performatives.KeyHistory
	e, err := bucket.Get(ctx, api.BrokerKeysKey)
	noted := err == nil
	if noted {
		known, err = readRecord(e.Value)
		if err == nil {
			err = newest(known, own)
		}
	}
	if err != nil && !errors.Is(err, store.ErrNoKey) {
		return err
	}
	named, err := b.checkSecret(ctx, bucket)
	switch {
	case err != nil:
		return err
	case !noted:
		_, err = bucket.Create(ctx, api.BrokerKeysKey, text)
	case len(own) > len(known):
		_, err = bucket.Update(ctx, api.BrokerKeysKey, text, e.Revision)
	}
	if err == nil && !named {
		err = recordSecret(ctx, bucket, b.Options.Secret)
	}
	return err
}

// follows reports whether a history begins with another one.
func follows(longer, shorter performatives.KeyHistory) bool {
	return len(longer) >= len(shorter) && slices.EqualFunc(longer[:len(shorter)], shorter, func(a, b performatives.KeyRecord) bool { return a.Key == b.Key })
}
