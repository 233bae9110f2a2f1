package session

import (
	"cmp"
	"strings"
	"time"

	"github.com/parley-asp/parley/performatives"
)

// A message may ask for an answer within a time (PROTOCOL.md §5). The deadline is shown
// and told. It ends nothing, and a late answer counts like any other.

// asksForAnswer are the acts that somebody answers.
var asksForAnswer = map[performatives.Performative]bool{
	performatives.Propose: true, performatives.Counter: true, performatives.Commit: true,
	performatives.Delegate: true, performatives.Clarify: true, performatives.Query: true,
}

// answerDue is when the message asks to be answered by, on the session's clock; the zero
// time if it does not ask.
func (t *Command) answerDue() time.Time {
	ms := t.Message.Constraints.MaxResponseTimeMs
	if ms == nil || *ms <= 0 || !asksForAnswer[t.Act] {
		return time.Time{}
	}
	return t.Now.Add(time.Duration(min(*ms, float64(LongestDuration.Milliseconds())) * float64(time.Millisecond)))
}

func awaitedKey(due time.Time, id string) string { return expiryTime(due) + "|" + id }

// await notes when the message with this binding asks to be answered by.
func (t *Command) await(id string, b Binding) {
	if !b.due.IsZero() {
		t.awaited = t.awaited.Set(awaitedKey(b.due, id), id)
	}
}

// unawait forgets it: somebody has answered, or nobody can any more.
func (t *Command) unawait(id string) {
	if b, ok := t.bound.Get(id); ok && !b.due.IsZero() {
		t.awaited = t.awaited.Delete(awaitedKey(b.due, id))
	}
}

// mostAwaited is how many of these deadlines are shown.
const mostAwaited = 16

// responses are the deadlines for answers from a time on, the earliest first.
func (s *State) responses(all []Deadline, at time.Time) []Deadline {
	if s.awaited.Len() == 0 {
		return all
	}
	now := s.clock(at)
	it := s.awaited.Iterator()
	it.Seek(expiryTime(now))
	for n := 0; n < mostAwaited; n++ {
		_, id, ok := it.Next()
		if !ok {
			break
		}
		b, _ := s.bound.Get(id)
		if o, offers := s.Offer(id); offers && o.StatusAt(b.due) != Open {
			continue
		}
		ref := cmp.Or(strings.TrimPrefix(id, ofQuery("")), id)
		all = append(all, Deadline{Code: ResponseTimeout, At: s.wall(b.due, at), Ref: ref})
	}
	return all
}
