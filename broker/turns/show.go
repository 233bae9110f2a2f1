package turns

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/api/fit"
	"github.com/parley-asp/parley/delegation"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/store"
)

// Bounds of the history of a turn.
const (
	maxHistory      = 100 // entries
	maxHistoryBytes = 256 << 10
)

// noAct is what the first turn answers.
const noAct = "none"

// show is a claimed turn with all that its worker needs to answer it.
func (t *Turns) show(ctx context.Context, a performatives.Agent, w waiting, c claim) (api.Turn, error) {
	shown := api.Turn{
		Session: w.state.ID, Mode: w.state.Mode.Name, Reference: w.turn.Reference,
		Claim: &api.TurnClaim{ID: w.id, Until: api.Timestamp(c.Until)},
		Turn:  &api.TurnNumber{Number: w.turn.Number, Cap: w.turn.Cap, Deadline: c.Deadline},
	}
	if w.turn.Side != a {
		shown.OnBehalfOf = w.turn.Side
	}
	if !w.state.MayRead(a, w.at) { // a delegation that is offered: who joins may read
		shown.CounterpartyAct = performatives.Delegate.String()
		return shown, nil
	}
	unsealed, err := t.o.Unsealed(ctx, &w.state, a)
	if err != nil {
		return shown, err
	}
	view, err := api.ViewPage(&w.state, w.at, api.GetSession{Session: w.state.ID}, api.Caller{Agent: a}.Opens, unsealed)
	if err != nil {
		return shown, err
	}
	shown.View = &view
	shown.Terms, shown.SeedAssessment = invited(w.state.Invitation())
	if shown.Private, err = t.Private(ctx, &w.state, a, w.at); err != nil {
		return shown, err
	}
	if err := t.history(ctx, a, w, &shown); err != nil {
		return shown, err
	}
	fit.To(&shown, api.MaxPageBytes)
	return shown, nil
}

// invited are the terms of an invitation, and their seed assessment.
func invited(o *session.Offer) (terms, seed jsontext.Value) {
	var members struct {
		Seed    jsontext.Value `json:"seedAssessment"`
		Context struct {
			Seed jsontext.Value `json:"seedAssessment"`
		} `json:"context"`
	}
	if o == nil || json.Unmarshal(o.Terms, &members) != nil {
		return nil, nil
	}
	if members.Seed == nil {
		members.Seed = members.Context.Seed
	}
	return o.Terms, members.Seed
}

// history adds the newest entries, and which act the turn answers.
func (t *Turns) history(ctx context.Context, a performatives.Agent, w waiting, shown *api.Turn) error {
	since := w.state.Next - min(w.state.Next, maxHistory)
	for next := &since; next != nil; {
		page, err := t.o.Messages(ctx, a, api.ListMessages{Session: w.state.ID, Since: *next, Limit: maxHistory})
		if err != nil {
			return err
		}
		next = page.Next
		entries, err := page.Entries()
		if err != nil {
			return err
		}
		for _, entry := range entries {
			if entry.Sequence < w.state.Next { // the session may have gone on
				shown.History = append(shown.History, entry.TurnEntry)
			}
		}
	}
	shown.CounterpartyAct = noAct
	if _, delegated := w.state.Grant(delegation.ID(w.turn.Reference)); delegated {
		shown.CounterpartyAct = performatives.Delegate.String()
	} else if act, err := t.answers(ctx, a, w, shown.History); err != nil {
		return err
	} else if act != "" && w.turn.Reference != "" {
		shown.CounterpartyAct = act
	}
	size := 0
	for i, entry := range slices.Backward(shown.History) {
		if size += fit.Size(entry); size > maxHistoryBytes && i+1 < len(shown.History) {
			shown.History = shown.History[i+1:]
			break
		}
	}
	shown.Truncated = len(shown.History) < int(w.state.Next) //nolint:gosec // far below 2^63
	return nil
}

// answers is the performative of the entry since which the turn waits.
func (t *Turns) answers(ctx context.Context, a performatives.Agent, w waiting, history []api.TurnEntry) (string, error) {
	for _, entry := range history {
		if entry.Sequence == w.turn.Sequence {
			return entry.Performative, nil
		}
	}
	page, err := t.o.Messages(ctx, a, api.ListMessages{Session: w.state.ID, Since: w.turn.Sequence, Limit: 1})
	if err != nil || len(page.Messages) == 0 {
		return "", err
	}
	entry, err := api.ReadEntry(page.Messages[0], nil)
	return entry.Performative, err
}

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

// KeepPrivate holds aside what a principal says for its own side of a session; nil takes it
// away.
func (t *Turns) KeepPrivate(ctx context.Context, a performatives.Agent, id performatives.SessionID, private jsontext.Value) error {
	if len(private) > MaxPrivate {
		return session.Refuse(session.TooLarge, "terms.private has at most %d bytes", MaxPrivate).With(map[string]int{"maxBytes": MaxPrivate})
	}
	if private == nil {
		return t.private.Delete(ctx, privateKey(id, a))
	}
	if _, err := t.private.Put(ctx, privateKey(id, a), private); err != nil {
		return err
	}
	return t.private.Sync()
}

// Private is what an agent may know of a session for the inviter, whose side alone may: nil for nothing.
func (t *Turns) Private(ctx context.Context, s *session.State, a performatives.Agent, at time.Time) (jsontext.Value, error) {
	turn, waits := s.TurnOf(a, at)
	side := s.Inviter()
	if a != side && (!waits || turn.Side != side) {
		return nil, nil
	}
	e, err := t.private.Get(ctx, privateKey(s.ID, side))
	if errors.Is(err, store.ErrNoKey) {
		return nil, nil
	}
	return e.Value, err
}
