package hosted

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/store"
)

// kept is how long a key is remembered.
const kept = 48 * time.Hour

// An Act is what an envelope is made of besides what its sender says. It is recorded before the
// envelope is submitted, so that whoever says the same again makes the same envelope: under a key,
// or by a claim on a turn.
type Act struct {
	Session performatives.SessionID `json:"sessionId,omitzero"`
	Message performatives.MessageID `json:"messageId"`
	At      time.Time               `json:"timestamp"`
	Content performatives.Hash      `json:"content"` // of what the sender says
	Link    *performatives.Link     `json:"link,omitzero"`
}

// recorded is an act at a revision of the bucket.
type recorded struct {
	Act
	revision uint64
}

// bucketKey does not reveal the key, and has the length of every other.
func bucketKey(a performatives.Agent, key string) string {
	sum := sha256.Sum256([]byte(string(a) + "\n" + key))
	return hex.EncodeToString(sum[:])
}

// reserve notes an act under an agent's key. If there is one already, it returns that one.
func (h *Agents) reserve(ctx context.Context, a performatives.Agent, key string, act Act) (first recorded, repeat bool, err error) {
	data, err := json.Marshal(act)
	if err != nil {
		return first, false, err
	}
	revision, err := h.keys.Create(ctx, bucketKey(a, key), data)
	if err == nil {
		return recorded{act, revision}, false, h.keys.Sync()
	}
	if !errors.Is(err, store.ErrKeyExists) {
		return first, false, err
	}
	found, err := h.keys.Get(ctx, bucketKey(a, key))
	if err != nil {
		return first, true, err
	}
	first.revision = found.Revision
	return first, true, json.Unmarshal(found.Value, &first.Act)
}

// get finds what was noted under a key.
func (h *Agents) get(ctx context.Context, a performatives.Agent, key string) (act Act, found bool, err error) {
	e, err := h.keys.Get(ctx, bucketKey(a, key))
	if errors.Is(err, store.ErrNoKey) {
		return act, false, nil
	}
	if err != nil {
		return act, false, err
	}
	return act, true, json.Unmarshal(e.Value, &act)
}

// replace notes an act instead of another that was not accepted, or returns store.ErrConflict.
func (h *Agents) replace(ctx context.Context, a performatives.Agent, key string, was recorded, act Act) error {
	data, err := json.Marshal(act)
	if err != nil {
		return err
	}
	if _, err := h.keys.Update(ctx, bucketKey(a, key), data, was.revision); err != nil {
		return err
	}
	return h.keys.Sync()
}
