// Package idempotency remembers what an act that a gateway makes was first made of, so
// that whoever sends it again under the same key makes the same envelope again.
//
//	k, err := idempotency.Open(ctx, s)
//	made, repeat, err := k.Reserve(ctx, agent, key, idempotency.Act{Session: id, Message: message, At: now, Content: digest})
//
// The broker answers the same envelope with its first acceptance, so nothing else needs to
// be remembered. Records outlive restarts, and are gone two days after they were written.
package idempotency

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/store"
)

// kept is how long a key is remembered.
const kept = 48 * time.Hour

// An Act is what an envelope is made of besides what its sender says.
type Act struct {
	Session performatives.SessionID `json:"sessionId"`
	Message performatives.MessageID `json:"messageId"`
	At      time.Time               `json:"timestamp"`
	Content performatives.Hash      `json:"content"` // of what the sender says

	revision uint64
}

// Keys is open as long as its store.
type Keys struct{ bucket *store.Bucket }

// Open opens the bucket of keys.
func Open(ctx context.Context, s *store.Store) (*Keys, error) {
	bucket, err := s.Bucket(ctx, api.IdempotencyBucket, "keys of acts that a gateway made", kept)
	return &Keys{bucket}, err
}

// bucketKey does not reveal the key, and has the length of every other.
func bucketKey(a performatives.Agent, key string) string {
	sum := sha256.Sum256([]byte(string(a) + "\n" + key))
	return hex.EncodeToString(sum[:])
}

// Reserve notes an act under an agent's key. If there is one already, it returns that one.
func (k *Keys) Reserve(ctx context.Context, a performatives.Agent, key string, act Act) (first Act, repeat bool, err error) {
	data, err := json.Marshal(act)
	if err != nil {
		return act, false, err
	}
	act.revision, err = k.bucket.Create(ctx, bucketKey(a, key), data)
	if err == nil {
		return act, false, k.bucket.Sync()
	}
	if !errors.Is(err, store.ErrKeyExists) {
		return act, false, err
	}
	found, err := k.bucket.Get(ctx, bucketKey(a, key))
	if err != nil {
		return act, true, err
	}
	first.revision = found.Revision
	return first, true, json.Unmarshal(found.Value, &first)
}

// Get finds what was noted under a key.
func (k *Keys) Get(ctx context.Context, a performatives.Agent, key string) (act Act, found bool, err error) {
	e, err := k.bucket.Get(ctx, bucketKey(a, key))
	if errors.Is(err, store.ErrNoKey) {
		return act, false, nil
	}
	if err != nil {
		return act, false, err
	}
	act.revision = e.Revision
	return act, true, json.Unmarshal(e.Value, &act)
}

// ErrConflict says that somebody else was faster.
var ErrConflict = store.ErrConflict

// Replace notes an act instead of another that was not accepted, or returns ErrConflict.
func (k *Keys) Replace(ctx context.Context, a performatives.Agent, key string, was, act Act) error {
	data, err := json.Marshal(act)
	if err != nil {
		return err
	}
	if _, err := k.bucket.Update(ctx, bucketKey(a, key), data, was.revision); err != nil {
		return err
	}
	return k.bucket.Sync()
}
