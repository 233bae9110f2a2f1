package turns

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/delegation"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/store"
)

// A waiting turn may be claimed.
type waiting struct {
	state  session.State
	at     time.Time
	turn   session.Turn
	id     string // of the claim
	joined bool   // words answer it: see api.PickUpTurn
}

// since is when the turn began to wait.
func (w *waiting) since() time.Time { return w.state.Wall(w.turn.Since, w.at) }

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
	if w, has, ok, err := t.again(ctx, c.Agent, worker, q); err != nil || ok {
		if err != nil {
			return api.Turn{}, err
		}
		return t.show(ctx, c.Agent, w, has)
	}
	free := func(id string) bool {
		has, known := t.known(id)
		return !known || has.Worker == worker || !has.held(t.o.Now())
	}
	for {
		w, waits, err := t.longest(ctx, c.Agent, q, free)
		if err != nil || !waits {
			return api.Turn{}, err
		}
		has, own, err := t.take(ctx, w, worker, lease)
		switch {
		case err != nil:
			return api.Turn{}, err
		case own:
			t.served(c.Agent, w.state.ID)
			return t.show(ctx, c.Agent, w, has)
		case q.Session != "":
			return api.Turn{}, nil
		}
	}
}

// again finds what a worker has claimed already: one that asks again gets that.
func (t *Turns) again(ctx context.Context, a performatives.Agent, worker string, q api.PickUpTurn) (w waiting, has claim, ok bool, err error) {
	for _, id := range t.heldBy(worker, t.o.Now()) {
		c, _ := t.known(id)
		if q.Session != "" && q.Session != c.Session {
			continue
		}
		w, waits, err := t.turnIn(ctx, a, c.Session)
		if err != nil && !errors.Is(err, &session.Refusal{Code: session.UnknownSession}) {
			return w, has, false, err
		}
		switch {
		case !waits || w.id != id:
			t.mu.Lock()
			t.letGo(worker, id) // if the turn comes back, it is found as another's is
			t.mu.Unlock()
		case wanted(q)(w.state.Mode.Name, w.joined):
			return w, c.claim, true, nil
		}
	}
	return w, has, false, nil
}

// wanted reports whether a turn is one of those that are asked for.
func wanted(q api.PickUpTurn) func(mode string, joined bool) bool {
	return func(mode string, joined bool) bool {
		return (len(q.Modes) == 0 || slices.Contains(q.Modes, mode)) && (joined || !q.Joined)
	}
}

// longest finds, among the turns whose claims are free, the one that waits longest for an agent:
// of the session that is asked for, else of the organisation whose turn it is.
func (t *Turns) longest(ctx context.Context, a performatives.Agent, q api.PickUpTurn, free func(claim string) bool) (w waiting, waits bool, err error) {
	if q.Session != "" {
		w, waits, err = t.turnIn(ctx, a, q.Session)
		return w, waits && wanted(q)(w.state.Mode.Name, w.joined) && free(w.id), err
	}
	of, err := t.queueOf(ctx, a)
	if err != nil {
		return w, false, err
	}
	defer of.leave()
	return t.next(ctx, &search{queue: of, agent: a, wants: wanted(q), free: free, tried: map[*place]bool{}})
}

// served notes that an agent has taken a turn.
func (t *Turns) served(a performatives.Agent, id performatives.SessionID) {
	t.queueing.RLock()
	of := t.queues[a]
	t.queueing.RUnlock()
	if of != nil {
		of.served(id)
	}
}

// turnIn is the turn that waits for an agent in a session.
func (t *Turns) turnIn(ctx context.Context, a performatives.Agent, id performatives.SessionID) (w waiting, waits bool, err error) {
	if w.state, w.at, err = t.o.Look(ctx, a, id); err != nil {
		return w, false, err
	}
	if w.turn, waits = w.state.TurnOf(a, w.at); waits {
		_, delegated := w.state.Grant(delegation.ID(w.turn.Reference))
		w.id, w.joined = claimID(id, w.turn), !delegated && !w.state.Executing() && !beyondWords(&w.state, w.turn.Reference)
	}
	return w, waits, nil
}

// beyondWords reports whether an answer to what waits may agree to more than words.
func beyondWords(s *session.State, reference string) bool {
	var invitation, offer jsontext.Value
	if o := s.Invitation(); o != nil {
		invitation = o.Terms
	}
	if o, found := s.Offer(reference); found {
		offer = o.Terms
	}
	return api.BeyondWords(invitation, offer)
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
	if w.state, w.at, err = t.o.Look(ctx, a, at); err != nil {
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
