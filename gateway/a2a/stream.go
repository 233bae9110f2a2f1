package a2agateway

import (
	"context"
	"iter"
	"slices"
	"time"

	"github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/gateway"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// waitFor is how long a message that is not streamed waits for an answer, which is within what an
// HTTP answer may take. Of an agent that takes longer the task says that it works on it.
const waitFor = gateway.AnswerIn - gateway.WriteWithin

// wait waits until the task is over or waits for the client or a human.
func (g *Gateway) wait(ctx context.Context, c call, of ref) {
	ctx, cancel := context.WithTimeout(ctx, waitFor)
	defer cancel()
	g.watchHeld(ctx, of.session, func() (more, held bool) { //nolint:errcheck // it waited long enough
		s, err := g.look(ctx, c, of)
		return err == nil && s.state(c.Agent) == a2a.TaskStateWorking && s.view.State != session.Executing, s.held // which may take years
	})
}

// watch calls look, and again whenever the session goes on, until it returns false.
func (g *Gateway) watch(ctx context.Context, id performatives.SessionID, look func() bool) error {
	return g.watchHeld(ctx, id, func() (more, held bool) { return look(), false })
}

// watchHeld also calls look again after a while where it says that a first message is held: no entry
// says that it was refused.
func (g *Gateway) watchHeld(ctx context.Context, id performatives.SessionID, look func() (more, held bool)) error {
	changed, stop, err := g.o.Service.WatchSession(ctx, id)
	if err != nil {
		return err
	}
	defer stop()
	for {
		more, held := look()
		if !more {
			return nil
		}
		var again <-chan time.Time
		if held {
			again = time.After(retryWait)
		}
		select {
		case <-changed:
		case <-again:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

type events = iter.Seq2[a2a.Event, error]

// SendStreamingMessage says what a message says, and streams the task until it is the
// caller's turn, or over.
func (t tasks) SendStreamingMessage(ctx context.Context, q *a2a.SendMessageRequest) events {
	return func(yield func(a2a.Event, error) bool) {
		c := callOf(ctx)
		of, at, err := t.say(ctx, c, q)
		if err != nil {
			yield(nil, t.refusal(err))
			return
		}
		var history *int
		if q.Config != nil {
			history = q.Config.HistoryLength
		}
		t.stream(ctx, c, of, &at, history, yield, func(s a2a.TaskState) bool { return s.Terminal() || s == a2a.TaskStateInputRequired })
	}
}

// SubscribeToTask streams a task until it is over.
func (t tasks) SubscribeToTask(ctx context.Context, q *a2a.SubscribeToTaskRequest) events {
	return func(yield func(a2a.Event, error) bool) {
		c := callOf(ctx)
		of, err := refOf(q.ID)
		var s snapshot
		if err == nil {
			s, err = t.look(ctx, c, of)
		}
		if err == nil && s.state(c.Agent).Terminal() {
			err = a2a.NewError(a2a.ErrUnsupportedOperation, "the task is over")
		}
		if err != nil {
			yield(nil, t.refusal(err))
			return
		}
		t.stream(ctx, c, of, nil, nil, yield, a2a.TaskState.Terminal)
	}
}

// stream yields the task, then what others say as updates of its status, and its artifacts. The task is as
// it was after an entry, so that the stream tells each state since then; as it is now if that is nil.
func (t tasks) stream(ctx context.Context, c call, of ref, after *uint64, history *int, yield func(a2a.Event, error) bool, last func(a2a.TaskState) bool) {
	leave, err := c.EnterStream(ctx)
	if err != nil {
		yield(nil, t.refusal(err))
		return
	}
	defer leave()
	var sent *uint64
	var state a2a.TaskState
	failed := t.watchHeld(ctx, of.session, func() (more, held bool) {
		ctx, end := gateway.Page(ctx)
		defer end()
		var s snapshot
		var all []a2a.Event
		if err := gateway.Retry(ctx, func() (err error) { // there may be no further change to wait for
			if s, err = t.look(ctx, c, of); err != nil {
				return err
			}
			if sent != nil {
				all, err = t.news(ctx, c, s, *sent, state)
			} else {
				all, err = t.beginning(ctx, c, s, after, history)
			}
			return err
		}); err != nil {
			yield(nil, t.refusal(err))
			return false, false
		}
		state, sent = s.state(c.Agent), &s.end
		for _, e := range all {
			if !yield(e, nil) {
				return false, false
			}
		}
		return !last(state), s.held
	})
	if failed != nil && ctx.Err() == nil {
		yield(nil, t.refusal(failed))
	}
}

// beginning is a task as it was after an entry, and the events since then; as it is now if the entry is
// its last, or too long ago.
func (g *Gateway) beginning(ctx context.Context, c call, s snapshot, after *uint64, history *int) ([]a2a.Event, error) {
	at := -1
	if after != nil && *after < s.end {
		at = slices.IndexFunc(s.entries, func(e api.Entry) bool { return e.Sequence == *after })
	}
	if at < 0 {
		task, err := g.write(ctx, c, s, history, true)
		return []a2a.Event{task}, err
	}
	was := s
	was.entries = s.entries[:at+1]
	task, err := g.write(ctx, c, was, history, false)
	if err != nil {
		return nil, err
	}
	task.Status, task.Metadata["state"] = s.passed(s.entries[at], nil), s.entries[at].Receipt.State
	all, err := g.news(ctx, c, s, *after, task.Status.State)
	return append([]a2a.Event{task}, all...), err
}

// passed is the status of a task after an entry that others followed.
func (s snapshot) passed(e api.Entry, m *a2a.Message) a2a.TaskStatus {
	status := a2a.TaskStatus{State: a2a.TaskStateWorking, Message: m}
	if e.Receipt.State == session.Escalated.String() {
		status.State = a2a.TaskStateAuthRequired
	}
	if at, err := time.Parse(time.RFC3339, e.At); err == nil {
		status.Timestamp = &at
	}
	return status
}

// news are the events since an entry: each state that the task went through, and what others said.
func (g *Gateway) news(ctx context.Context, c call, s snapshot, sent uint64, was a2a.TaskState) ([]a2a.Event, error) {
	var all []a2a.Event
	update := func(status a2a.TaskStatus) {
		all = append(all, &a2a.TaskStatusUpdateEvent{ContextID: string(s.view.Session), TaskID: s.id(), Status: status})
	}
	for _, e := range s.entries {
		m := messageOf(e, c, s.id())
		switch {
		case e.Sequence <= sent:
		case m.Role == a2a.MessageRoleAgent:
			update(s.passed(e, m))
		case e.Sequence < s.end && e.Receipt.State == session.Escalated.String():
			update(s.passed(e, nil))
		}
	}
	state := s.state(c.Agent)
	if state.Terminal() {
		artifacts, err := g.artifacts(ctx, c, s)
		if err != nil {
			return nil, err
		}
		for _, artifact := range artifacts {
			all = append(all, &a2a.TaskArtifactUpdateEvent{Artifact: artifact, ContextID: string(s.view.Session), TaskID: s.id(), LastChunk: true})
		}
	}
	if state != was || len(all) > 0 {
		update(s.status(c))
	}
	return all, nil
}
