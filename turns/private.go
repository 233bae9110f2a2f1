package turns

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/store"
)

// What an inviter says for its own side alone (terms.private) is held aside: it enters no
// transcript, and comes with the turns of that side only.

// privateKept is longer than any session lasts, its pauses included.
const privateKept = session.LongestDuration + 14*24*time.Hour

// MaxPrivate is how many bytes it has at most.
const MaxPrivate = 64 << 10

func privateKey(id performatives.SessionID, side performatives.Agent) string {
	sum := sha256.Sum256([]byte(string(id) + "\n" + string(side)))
	return hex.EncodeToString(sum[:])
}

// KeepPrivate holds aside what a principal says for its own side of a session.
func (t *Turns) KeepPrivate(ctx context.Context, a performatives.Agent, id performatives.SessionID, private jsontext.Value) error {
	if len(private) > MaxPrivate {
		return session.Refuse(session.TooLarge, "terms.private has at most %d bytes", MaxPrivate).With(map[string]int{"maxBytes": MaxPrivate})
	}
	if _, err := t.private.Put(ctx, privateKey(id, a), private); err != nil {
		return err
	}
	return t.private.Sync()
}

// privateOf is what the side of a turn alone may know, nil for nothing.
func (t *Turns) privateOf(ctx context.Context, w waiting) (jsontext.Value, error) {
	if w.state.Inviter() != w.turn.Side {
		return nil, nil
	}
	e, err := t.private.Get(ctx, privateKey(w.state.ID, w.turn.Side))
	if errors.Is(err, store.ErrNoKey) {
		return nil, nil
	}
	return e.Value, err
}
