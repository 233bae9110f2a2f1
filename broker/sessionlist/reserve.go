package sessionlist

import (
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// A Quota bounds what an inviter may have open.
type Quota struct {
	Sessions    int // that it opened and that have not ended
	Invitations int // sessions in which an organisation has not answered its organisation's invitation
}

// Used is what an inviter has open.
type Used struct {
	Sessions    int
	Invitations int                        // to the organisation that has most of them to answer
	To          performatives.Organisation // which that is, "" if there is none
}

// Reserve makes room for a session that is about to be opened, until the list has the session, or
// release is called because it was not opened after all. It refuses if that would be more than the
// quota; used says what there is already.
func (l *List) Reserve(id performatives.SessionID, opening Row, q Quota) (release func(), used Used, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	inviter := opening.Participants[0]
	used.Sessions = l.open.sessions[inviter]
	for _, p := range opening.asks() {
		if n := l.open.invitations[p]; n > used.Invitations || used.To == "" {
			used.Invitations, used.To = n, p.to
		}
	}
	if used.Sessions >= q.Sessions || used.To != "" && used.Invitations >= q.Invitations {
		return nil, used, false
	}
	l.reserved[id] = opening
	l.open.add(opening, 1)
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.release(id)
	}, used, true
}

// release gives up the room that was made for a session, if it was; under mu.
func (l *List) release(id performatives.SessionID) {
	if opening, reserved := l.reserved[id]; reserved {
		delete(l.reserved, id)
		l.open.add(opening, -1)
	}
}

// A tally counts open sessions by their inviter, and those in which an invitation is not
// answered by who asks whom.
type tally struct {
	sessions    map[performatives.Agent]int
	invitations map[pair]int
}

// A pair of organisations: one has invited the other.
type pair struct{ by, to performatives.Organisation }

func newTally() tally { return tally{map[performatives.Agent]int{}, map[pair]int{}} }

func (t tally) add(row Row, n int) {
	if row.State.Over() || len(row.Participants) == 0 {
		return
	}
	add(t.sessions, row.Participants[0], n)
	for _, p := range row.asks() {
		add(t.invitations, p, n)
	}
}

// asks are the organisations of which somebody has not answered the invitation. An
// organisation may invite its own as it likes.
func (r Row) asks() (all []pair) {
	if r.State != session.Invited || len(r.Participants) == 0 {
		return nil
	}
	principals := r.Participants
	if r.Principals > 0 {
		principals = principals[:r.Principals]
	}
	by, answered := principals[0].Organisation(), r.Answered
	asked := map[performatives.Organisation]bool{by: true}
	for _, a := range principals[1:] {
		if len(answered) > 0 && answered[0] == a {
			answered = answered[1:]
		} else if to := a.Organisation(); !asked[to] {
			asked[to] = true
			all = append(all, pair{by, to})
		}
	}
	return all
}

// Busy is how many open sessions a principal takes part in.
func (l *List) Busy(a performatives.Agent) int {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.busy[a]
}

// count counts the open sessions of each inviter, and of each participant.
func (l *List) count(old, now Row) {
	l.countOpen(old, -1)
	l.countOpen(now, 1)
}

func (l *List) countOpen(row Row, n int) {
	if row.State.Over() {
		return
	}
	l.open.add(row, n)
	for _, a := range row.Participants {
		add(l.busy, a, n)
	}
}

func add[K comparable](counts map[K]int, k K, n int) {
	if counts[k] += n; counts[k] == 0 {
		delete(counts, k)
	}
}
