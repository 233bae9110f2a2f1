package session

import (
	"errors"
	"fmt"
	"time"

	"github.com/parley-asp/parley/performatives"
)

// Replay folds one entry of a transcript into the state, and insists that the
// entry says what a broker that keeps the rules would have written: the act is
// accepted, by whom it was done, and the state after it. Whoever has the entry's sealed
// parts opens the message before: what they bound is then replayed, too.
func Replay(s State, m *performatives.Message, stamp performatives.Stamp) (State, error) {
	at, err := stamp.AcceptedAt()
	if err != nil {
		return s, fmt.Errorf("entry %d: acceptedAt: %w", stamp.Sequence, err)
	}
	if m.Body == nil {
		if err := m.DecodeBody(); err != nil {
			return s, fmt.Errorf("entry %d: %w", stamp.Sequence, err)
		}
	}
	e := Event{Message: m, At: at, Replayed: true}
	for _, member := range stamp.Joined {
		if member.Kind == performatives.KindBroker {
			e.Broker = member.Key
			if member.Policy != nil {
				e.Policy = *member.Policy
			}
			if r := member.Route; r != nil && r.Organisation != "" && m.Performative == performatives.Accept {
				e.ConfirmedBy(r)
			} else if r != nil {
				e.Route = r
			}
			continue
		}
		e.Known.Add(member)
	}
	if err := e.unsealed(stamp.Routes); err != nil {
		return s, fmt.Errorf("entry %d: %w", stamp.Sequence, err)
	}
	next, err := Step(s, e)
	if err != nil {
		return s, fmt.Errorf("entry %d: %s of %s would have been refused: %w", stamp.Sequence, m.Performative, m.Sender, err)
	}
	if got := next.Phase.String(); got != stamp.Receipt.State {
		return s, fmt.Errorf("entry %d: the session is %s after it; the receipt says %s", stamp.Sequence, got, stamp.Receipt.State)
	}
	if next.Last.OnBehalfOf != stamp.OnBehalfOf {
		return s, fmt.Errorf("entry %d: done on behalf of %q; the entry says %q", stamp.Sequence, next.Last.OnBehalfOf, stamp.OnBehalfOf)
	}
	return next.Sealed(m.ID, stamp.Hash), nil
}

// unsealed puts routes with their names in the place of those that the entry has sealed.
func (e *Event) unsealed(routes []*performatives.Route) error {
	for _, r := range routes {
		if pinned := e.Confirm[r.Organisation]; pinned != nil {
			e.ConfirmedBy(r)
		} else if e.Route != nil {
			e.Route = r
		} else {
			return errors.New("it has the names of a route that it does not pin")
		}
	}
	return nil
}

// SideOf is the principal for whom somebody acts in the end.
func (s *State) SideOf(sender performatives.Agent, at time.Time) performatives.Agent {
	p, _ := s.parties.Get(sender)
	switch p.Role {
	case Standby:
		return p.StandsFor
	case Delegate:
		return s.GrantsOf(p, at)[0].Principal
	default:
		return sender
	}
}
