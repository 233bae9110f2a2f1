package session

import (
	"github.com/parley-asp/parley/performatives"
)

var _ = does(performatives.Query, deed{happens: queried})

// An openQuery waits for an INFORM that names it.
type openQuery struct {
	by, to performatives.Agent // sides; to is "" for every other one
	turn   Turn
}

// mostQueries is how many open queries make turns.
const mostQueries = 64

// queried notes a query. One of the same id takes the place of the one before.
func queried(t *Command) {
	id := t.Message.Body.ID(t.Message.ID)
	if _, again := t.queries.Get(id); t.Before(2) || !again && t.queries.Len() >= mostQueries {
		return
	}
	q := &openQuery{by: t.Side, turn: Turn{Reference: id, Sequence: t.Next, Since: t.Now}}
	if to := t.Message.Recipient; to != "" {
		q.to = t.SideOf(to, t.At)
	}
	t.queries = t.queries.With(id, q)
}

// waitsFor reports whether a side may answer.
func (q *openQuery) waitsFor(side performatives.Agent) bool {
	return side != q.by && (q.to == "" || q.to == side)
}

// answersQuery closes the query that an INFORM answers.
func (t *Command) answersQuery() {
	inform, ok := t.Message.Body.(*performatives.InformBody)
	if !ok || t.queries.Len() == 0 {
		return
	}
	id := inform.Query()
	if q, open := t.queries.Get(id); open && q.waitsFor(t.Side) {
		t.queries = t.queries.Without(id)
	}
}

// Queried is the query that has waited longest for a side.
func (s *State) Queried(side performatives.Agent) (turn Turn, waits bool) {
	for _, q := range s.queries.All() {
		if q.waitsFor(side) && (!waits || q.turn.Sequence < turn.Sequence) {
			turn, waits = q.turn, true
		}
	}
	turn.Side, turn.Number = side, s.Next
	return turn, waits
}
