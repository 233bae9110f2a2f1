package a2agateway

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
)

// A ref names a task: its session, and which of the session's it is. The first has the session's id,
// the others <session>.2 and so on. 0 is the newest.
type ref struct {
	session performatives.SessionID
	number  int
}

func (r ref) id() a2a.TaskID {
	if r.number <= 1 {
		return a2a.TaskID(r.session)
	}
	return a2a.TaskID(string(r.session) + "." + strconv.Itoa(r.number))
}

// refOf reads the id of a task.
func refOf(id a2a.TaskID) (ref, error) {
	of, number, several := strings.Cut(string(id), ".")
	session, err := performatives.ParseSessionID(of)
	if err != nil {
		return ref{}, noTask()
	}
	if !several {
		return ref{session, 1}, nil
	}
	n, err := strconv.Atoi(number)
	if err != nil || n < 2 || strconv.Itoa(n) != number {
		return ref{}, noTask()
	}
	return ref{session, n}, nil
}

// A span is the entries of a task. A session's concluded entries end its tasks; what comes after one is
// another task, so that one that is over never changes, and every broker says the same.
type span struct {
	ref
	first, end uint64
	over       bool // a concluded entry ended it
	tasks      int  // of the session
}

// spanOf finds a task among those of a session; ok is false if there is none of the number.
func spanOf(r ref, v api.SessionView) (s span, ok bool) {
	head := uint64(0)
	if v.Head.Sequence != nil {
		head = *v.Head.Sequence
	}
	n := len(v.Concluded)
	s = span{ref: r, end: head, tasks: n + 1}
	if n > 0 && v.Concluded[n-1] == head {
		s.tasks = n
	}
	if s.number == 0 {
		s.number = s.tasks
	}
	if s.number > s.tasks {
		return s, false
	}
	if s.number > 1 {
		s.first = v.Concluded[s.number-2] + 1
	}
	if s.number <= n {
		s.end, s.over = v.Concluded[s.number-1], true
	}
	return s, true
}

// with is the number of the task that has an entry.
func with(sequence uint64, v api.SessionView) int {
	for i, last := range v.Concluded {
		if sequence <= last {
			return i + 1
		}
	}
	return len(v.Concluded) + 1
}

// agreed reports whether something was accepted in the task, or its session ended with an agreement. What was
// accepted in a session that was abandoned is none.
func (s snapshot) agreed() bool {
	accepted := s.view.Accepted > 0 && s.view.Accepted >= s.first
	switch {
	case s.over || s.view.Closing == "agreed":
		return true
	case !s.view.State.Over():
		return accepted
	}
	return slices.ContainsFunc(s.agreements, s.made) || s.number > 1 && len(s.agreements) > 0 && s.view.Closing == performatives.Completed
}

// made reports whether an agreement is of the task, not of another one of the session.
func (s snapshot) made(a api.AgreementRow) bool { return s.first <= a.Sequence && a.Sequence <= s.end }

// again is the acceptance of what was said under a key before, if the same message said it.
func (g *Gateway) again(ctx context.Context, c call, key string, asked performatives.Hash) (a api.Acceptance, accepted bool, err error) {
	a.Session, a.Message, accepted, err = c.Before(ctx, key, asked)
	if err != nil || !accepted {
		return a, accepted, err
	}
	page, err := c.Messages(ctx, api.ListMessages{Session: a.Session, Message: a.Message})
	if err != nil {
		return a, accepted, err
	}
	entries, err := page.Entries()
	if err == nil && len(entries) > 0 {
		a.Sequence = entries[0].Sequence
	}
	return a, accepted, err
}

// overAlready is the error of a message to a task that is over (A2A §3.1.1).
func overAlready() error {
	return a2a.NewError(a2a.ErrUnsupportedOperation, "the task is over; a message with its contextId and without a taskId begins another")
}
