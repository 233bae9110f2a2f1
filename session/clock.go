package session

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
)

// Reasons that a deadline gives in the broker's CLOSE, and the kinds of
// deadlines that end nothing.
const (
	SessionTimeout    = "session_timeout"
	InvitationTimeout = "invitation_timeout"
	EscalationExpired = "escalation_expired"
	ProposalExpired   = "proposal_expired"
	ResponseTimeout   = "response_timeout"
	ExecutionComplete = "execution_complete" // nothing has been due or disputed for the dispute window
)

// A Deadline is a time at which something ends by itself.
type Deadline struct {
	Code string
	At   time.Time
	Ends bool   // the session
	Ref  string // the id of what ends
	To   Phase  // where it takes the session; FAILED unless a mode says otherwise
	// Enters is what the broker enters, as an INFORM event, of a time that does not end the session;
	// nil is nothing.
	Enters *performatives.EventData
}

// clock is the session's own time: the broker's less what was spent paused, so
// that no deadline of the negotiation runs while a human is deciding. A
// session banks at most its policy's maxPaused.
func (s *State) clock(at time.Time) time.Time { return at.Add(-s.bankedAt(at)) }

func (s *State) bankedAt(at time.Time) time.Duration {
	banked := s.banked
	if s.Phase == Escalated && at.After(s.pausedAt) {
		banked += at.Sub(s.pausedAt)
	}
	return min(banked, s.mostPaused())
}

// mostPaused is the longest that all pauses together can bank.
func (s *State) mostPaused() time.Duration {
	return time.Duration(s.Policy.MaxPaused) * time.Millisecond
}

// wall turns a time on the session's clock into the broker's, given what is
// banked at a time. A paused session's deadlines move on as it waits.
func (s *State) wall(onClock, at time.Time) time.Time {
	moved := onClock.Add(s.bankedAt(at))
	if moved.After(latest) {
		return latest
	}
	return moved
}

// latest is the last millisecond that RFC 3339 can write.
var latest = time.Date(9999, 12, 31, 23, 59, 59, 999_000_000, time.UTC)

// Deadlines are those in force at a time, the earliest first.
func (s *State) Deadlines(at time.Time) []Deadline { return s.deadlines(nil, at) }

// room is for the deadlines of most sessions, where they are only looked at.
type room [6]Deadline

func (s *State) deadlines(all []Deadline, at time.Time) []Deadline {
	if s.Phase == Idle || s.Phase.Over() {
		return nil
	}
	if o := s.firstExpiring(s.clock(at)); o != nil && o.Kind == aProposal {
		all = append(all, Deadline{Code: ProposalExpired, At: s.wall(o.Expires, at), Ref: o.ID})
	}
	return s.others(s.responses(all, at), at)
}

// others are all but the proposals', of which there may be many.
func (s *State) others(all []Deadline, at time.Time) []Deadline {
	if s.Phase == Idle || s.Phase.Over() {
		return nil
	}
	if s.Phase != Invited || s.Policy.Format < 3 {
		all = append(all, Deadline{Code: SessionTimeout, At: s.wall(s.duration, at), Ends: true, To: Failed})
	}
	if s.Phase == Invited {
		all = append(all, Deadline{Code: InvitationTimeout, At: s.wall(s.answerBy, at), Ends: true, Ref: s.invitation.ID, To: Failed})
	}
	for _, item := range s.asked {
		if item.Open() {
			all = append(all, s.lapses(item))
		}
	}
	all = s.parkedDeadlines(s.executionDeadlines(all, at), at)
	if deadlines := s.mode().Deadlines; deadlines != nil {
		for _, d := range deadlines(s) {
			d.At = s.wall(d.At, at)
			all = append(all, d)
		}
	}
	slices.SortStableFunc(all, func(a, b Deadline) int { return cmp.Or(a.At.Compare(b.At), strings.Compare(a.Code, b.Code)) })
	return all
}

// endsAt is when the session ends by itself if nobody says anything, on its clock. The time
// to decide an escalation is none of it: it runs while the session is paused.
func (s *State) endsAt() time.Time {
	end := s.duration
	if s.Phase == Invited {
		end = s.answerBy
	}
	if deadlines := s.mode().Deadlines; deadlines != nil {
		for _, d := range deadlines(s) {
			if d.Ends && d.At.Before(end) {
				end = d.At
			}
		}
	}
	return end
}

// Passed is the first deadline that has passed by a time and that the broker enters into
// the transcript before it accepts anything else: it ends the session, or is an event of it.
func (s *State) Passed(at time.Time) (Deadline, bool) {
	var some room
	for _, d := range s.others(some[:0], at) {
		if d.entered() && !at.Before(d.At) {
			return d, true
		}
	}
	return Deadline{}, false
}

// NextDeadline is the first after a time: when the broker should look again.
// While paused only the escalation's own deadline comes nearer, and the end of
// what can be banked.
func (s *State) NextDeadline(at time.Time) (time.Time, bool) {
	var some room
	if next, paused := s.firstDue(); paused {
		left := s.mostPaused() - s.banked
		if full := s.pausedAt.Add(max(left, 0)); full.After(at) && full.Before(next) {
			next = full
		}
		if d := s.deadlines(some[:0], at); len(d) > 0 && s.bankedAt(at) >= s.mostPaused() && d[0].At.Before(next) {
			next = d[0].At
		}
		return next, true
	}
	var next time.Time
	for _, d := range s.others(some[:0], at) {
		if d.entered() || d.At.After(at) {
			next = d.At
			break
		}
	}
	if o := s.firstExpiring(s.clock(at).Add(1)); o != nil && s.wall(o.Expires, at).Before(next) {
		next = s.wall(o.Expires, at)
	}
	if all := s.responses(some[:0], at.Add(1)); len(all) > 0 && all[0].At.Before(next) {
		next = all[0].At
	}
	return next, !next.IsZero()
}

// Lapsed are the deadlines that passed between two times, both included, and end nothing.
func (s *State) Lapsed(from, to time.Time) []Deadline {
	if s.Phase == Idle || s.Phase.Over() {
		return nil
	}
	var all []Deadline
	it := s.expiries.Iterator()
	for it.Seek(expiryTime(s.clock(from))); len(all) < mostAwaited; {
		_, id, ok := it.Next()
		if !ok {
			break
		}
		o, _ := s.Offer(id)
		if o.Expires.IsZero() || s.wall(o.Expires, to).After(to) {
			break
		}
		if o.Kind == aProposal {
			all = append(all, Deadline{Code: ProposalExpired, At: s.wall(o.Expires, to), Ref: o.ID})
		}
	}
	return slices.DeleteFunc(s.responses(all, from), func(d Deadline) bool { return d.At.After(to) })
}

// firstDue is when the first of the open items is due.
func (s *State) firstDue() (due time.Time, open bool) {
	for _, item := range s.asked {
		if item.Open() && (!open || item.Due.Before(due)) {
			due, open = item.Due, true
		}
	}
	return due, open
}

// expiryKey sorts offers by when they expire, those that never do last.
func expiryKey(o *Offer) string {
	if o.Expires.IsZero() {
		return "never|" + o.ID
	}
	return expiryTime(o.Expires) + "|" + o.ID
}

func expiryTime(t time.Time) string { return t.UTC().Format(performatives.TimeFormat) }

// firstExpiring is the open offer that expires first from a time on the
// session's clock on; those that expired before stay on the list behind it.
func (s *State) firstExpiring(now time.Time) *Offer {
	if s.expiries.Len() == 0 {
		return nil
	}
	it := s.expiries.Iterator()
	it.Seek(expiryTime(now))
	if _, id, ok := it.Next(); ok {
		o, _ := s.Offer(id)
		return o
	}
	return nil
}

// Body is what the broker enters of a deadline that has passed; summary says why the session ends.
func (d *Deadline) Body(summary string) performatives.Body {
	switch {
	case d.Enters != nil:
		return performatives.EventBody(*d.Enters)
	case d.To == Closed && d.Code == ExecutionComplete:
		return &performatives.CloseBody{Outcome: performatives.Completed, Reason: d.Code, Summary: summary}
	}
	return &performatives.CloseBody{Outcome: performatives.FailedEnd, Reason: d.Code, Summary: summary}
}

// entered reports whether the deadline makes an entry of the broker's own.
func (d *Deadline) entered() bool { return d.Ends || d.Enters != nil }

// is reports whether an entry of the broker's own is what it enters of the deadline.
func (d *Deadline) is(b performatives.Body) bool {
	if inform, informs := b.(*performatives.InformBody); informs {
		event, _ := inform.Event()
		return d.Enters != nil && *d.Enters == event
	}
	ends, is := b.(*performatives.CloseBody)
	return is && d.Ends && d.Code == ends.Reason
}

// timePassed lets in a broker's own entry: it needs the deadline that it names to have passed.
func (t *Command) timePassed() error {
	if t.Act != performatives.Close && t.Act != performatives.Inform {
		return Refuse(Unauthorized, "a broker enters nothing but a CLOSE and an INFORM event")
	}
	d, passed := t.Passed(t.At)
	if !passed || !d.is(t.Message.Body) {
		return Refuse(WrongState, "no deadline has passed that this %s is about", t.Act)
	}
	if d.Enters != nil {
		t.happened(d)
		return nil
	}
	for _, item := range t.asked {
		if d.Code == EscalationExpired && item.Open() && !t.At.Before(item.Due) {
			t.endItem(item, t.Message.Sender, escalation.EndExpired)
		}
	}
	t.endItems(t.Message.Sender, escalation.EndClosed)
	t.Phase, t.Closing = d.To, d.Code
	if t.Mode.Ended != nil {
		t.Mode.Ended(t, d)
	}
	return nil
}

// stamp writes a time as all replies do.
func stamp(t time.Time) string { return performatives.FormatTime(t) }
