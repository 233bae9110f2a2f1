package turns

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/store"
)

// A waiting turn may be claimed.
type waiting struct {
	state session.State
	at    time.Time
	turn  session.Turn
	id    string // of the claim
}

// Pickup answers turn.pickup.
func (t *Turns) Pickup(ctx context.Context, c api.Caller, q api.PickUpTurn) (api.Turn, error) {
	worker, err := workerName(c.Agent, q.Worker)
	switch {
	case err != nil:
		return api.Turn{}, err
	case c.Operator:
		return api.Turn{}, session.Refuse(session.Unauthorized, "an operator has no turns")
	case q.Lease < 0:
		return api.Turn{}, session.Refuse(session.MalformedEnvelope, "/leaseMs: is at least 1").With(map[string]string{"path": "/leaseMs"})
	}
	lease := t.o.Timeout
	if q.Lease > 0 && q.Lease < lease.Milliseconds() {
		lease = max(shortestLease, time.Duration(q.Lease)*time.Millisecond)
	}
	all, err := t.waiting(ctx, c.Agent, q)
	if err != nil {
		return api.Turn{}, err
	}
	now := t.o.Now()
	for _, w := range all { // a worker that asks again gets what it has
		if has, ok := t.known(w.id); ok && has.Worker == worker && has.held(now) {
			return t.show(ctx, c.Agent, w, has.claim)
		}
	}
	for _, w := range all {
		has, own, err := t.take(ctx, w, worker, lease)
		if err != nil {
			return api.Turn{}, err
		}
		if own {
			return t.show(ctx, c.Agent, w, has)
		}
	}
	return api.Turn{}, nil
}

// waiting are the turns that wait for an agent, the one that has waited longest first.
func (t *Turns) waiting(ctx context.Context, a performatives.Agent, q api.PickUpTurn) ([]waiting, error) {
	var all []waiting
	sessions := []performatives.SessionID{q.Session}
	if q.Session == "" {
		var err error
		if sessions, err = t.o.Sessions.Open(ctx, a); err != nil {
			return nil, err
		}
	}
	for _, id := range sessions {
		state, at, err := t.o.Sessions.Look(ctx, a, id)
		if errors.Is(err, &session.Refusal{Code: session.UnknownSession}) && q.Session == "" {
			continue // it is over, or was listed for a part that the agent has no more
		}
		if err != nil {
			return nil, err
		}
		turn, waits := state.TurnOf(a, at)
		if waits && (len(q.Modes) == 0 || slices.Contains(q.Modes, state.Mode.Name)) && (!q.Joined || state.MayRead(a, at)) {
			all = append(all, waiting{state, at, turn, claimID(id, turn)})
		}
	}
	slices.SortFunc(all, func(a, b waiting) int {
		return cmp.Or(a.state.Wall(a.turn.Since, a.at).Compare(b.state.Wall(b.turn.Since, b.at)), strings.Compare(string(a.state.ID), string(b.state.ID)))
	})
	return all, nil
}

// take claims a turn for a worker, unless another has it. It is its own too if the worker has
// had it before.
func (t *Turns) take(ctx context.Context, w waiting, worker string, lease time.Duration) (has claim, own bool, err error) {
	found, _ := t.known(w.id)
	for {
		now := t.o.Now()
		if found.held(now) {
			return found.claim, found.Worker == worker, nil
		}
		until := now.Add(lease)
		found.claim = claim{
			Session: w.state.ID, Side: w.turn.Side, Reference: w.turn.Reference, Sequence: w.turn.Sequence,
			Worker: worker, Until: until, Deadline: api.Timestamp(deadline(w, until)),
		}
		err := t.write(ctx, w.id, &found)
		if err == nil {
			return found.claim, true, nil
		}
		if !errors.Is(err, store.ErrConflict) {
			return has, false, err
		}
		if found, _, err = t.find(ctx, w.id); err != nil {
			return has, false, err
		}
	}
}

// deadline is when a turn must be answered: before the claim ends, and before what the turn
// is about, or the session, does.
func deadline(w waiting, until time.Time) time.Time {
	for _, d := range w.state.Deadlines(w.at) {
		about := d.Code == session.ProposalExpired && d.Ref == w.turn.Reference
		if (d.Ends || about) && d.At.Before(until) {
			until = d.At
		}
	}
	return until
}

// Release answers turn.release.
func (t *Turns) Release(ctx context.Context, c api.Caller, q api.ReleaseTurn) (api.ReleasedTurn, error) {
	worker, err := workerName(c.Agent, q.Worker)
	if err != nil {
		return api.ReleasedTurn{}, err
	}
	for {
		id, found, _, err := t.claimed(ctx, c.Agent, q.ID)
		if err == nil {
			err = t.holds(found.claim, worker)
		}
		if err != nil {
			return api.ReleasedTurn{}, err
		}
		found.Worker, found.Until = "", time.Time{}
		if err := t.write(ctx, id, &found); !errors.Is(err, store.ErrConflict) {
			return api.ReleasedTurn{Session: found.Session, Claim: id, Released: err == nil}, err
		}
	}
}

// claimed finds the claim that a worker names, and looks at its session. The id may be the
// session's: then it is the claim on the caller's turn there.
func (t *Turns) claimed(ctx context.Context, a performatives.Agent, name string) (id string, found stored, w waiting, err error) {
	id = name
	found, ok, err := t.find(ctx, id)
	if err != nil {
		return id, found, w, err
	}
	at := found.Session
	if !ok {
		at = performatives.SessionID(name)
	}
	if w.state, w.at, err = t.o.Sessions.Look(ctx, a, at); err != nil {
		return id, found, w, err
	}
	var waits bool
	if w.turn, waits = w.state.TurnOf(a, w.at); !ok {
		if !waits {
			return id, found, w, about(session.WrongTurn, api.TurnGone, "no turn waits for you in this session")
		}
		id = claimID(at, w.turn)
		if found, ok, err = t.find(ctx, id); err != nil {
			return id, found, w, err
		}
		if !ok {
			return id, found, w, about(session.WrongTurn, api.TurnUnclaimed, "nobody has claimed the turn: pick it up first")
		}
	}
	if side := w.state.SideOf(a, w.at); found.Side != side && found.Side != a {
		return id, found, w, about(session.Unauthorized, api.TurnAnothers, "the turn is not yours, and you do not act for whose it is")
	}
	return id, found, w, nil
}

// holds refuses a worker that does not hold a claim.
func (t *Turns) holds(c claim, worker string) error {
	switch {
	case !c.held(t.o.Now()):
		return about(session.WrongTurn, api.TurnUnclaimed, "the claim has ended: pick the turn up again")
	case c.Worker != worker:
		return session.Refuse(session.WrongTurn, "another worker has claimed the turn until %s", api.Timestamp(c.Until)).
			With(api.TurnDetails{Turn: api.TurnClaimed, Until: api.Timestamp(c.Until)})
	}
	return nil
}

// about refuses for the sake of the claim, and not of the act.
func about(code session.Code, turn, why string) error {
	return session.Refuse(code, "%s", why).With(api.TurnDetails{Turn: turn})
}
