package a2agateway

import (
	"context"
	"iter"
	"time"

	"github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/parley-asp/parley/gateway"
	"github.com/parley-asp/parley/performatives"
)

// waitFor is how long a message that is not streamed waits for an answer, which is within what an
// HTTP answer may take. Of an agent that takes longer the task says that it works on it.
const waitFor = gateway.AnswerIn - gateway.WriteWithin

// wait waits until the task is over or waits for the client or a human.
func (g *Gateway) wait(ctx context.Context, c call, of ref) {
	ctx, cancel := context.WithTimeout(ctx, waitFor)
	defer cancel()
	g.watch(ctx, of.session, func() bool { //nolint:errcheck // it waited long enough
		s, err := g.look(ctx, c, of)
		return err == nil && s.state(c.Agent) == a2a.TaskStateWorking
	})
}

// watch calls look, and again whenever the session goes on, until it returns false.
func (g *Gateway) watch(ctx context.Context, id performatives.SessionID, look func() bool) error {
	changed, stop, err := g.o.Service.WatchSession(ctx, id)
	if err != nil {
		return err
	}
	defer stop()
	for look() {
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

type events = iter.Seq2[a2a.Event, error]

// SendStreamingMessage says what a message says, and streams the task until it is the
// caller's turn, or over.
func (t tasks) SendStreamingMessage(ctx context.Context, q *a2a.SendMessageRequest) events {
	return func(yield func(a2a.Event, error) bool) {
		c := callOf(ctx)
		of, err := t.say(ctx, c, q)
		if err != nil {
			yield(nil, t.refusal(err))
			return
		}
		var history *int
		if q.Config != nil {
			history = q.Config.HistoryLength
		}
		t.stream(ctx, c, of, history, yield, func(s a2a.TaskState) bool { return s.Terminal() || s == a2a.TaskStateInputRequired })
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
		t.stream(ctx, c, of, nil, yield, a2a.TaskState.Terminal)
	}
}

// stream yields the task, then what others say as updates of its status, and its artifacts.
func (t tasks) stream(ctx context.Context, c call, of ref, history *int, yield func(a2a.Event, error) bool, last func(a2a.TaskState) bool) {
	leave, err := c.EnterStream(ctx)
	if err != nil {
		yield(nil, t.refusal(err))
		return
	}
	defer leave()
	var sent *uint64
	var state a2a.TaskState
	failed := t.watch(ctx, of.session, func() bool {
		ctx, end := gateway.Page(ctx)
		defer end()
		var s snapshot
		var all []a2a.Event
		if err := gateway.Retry(ctx, func() (err error) { // there may be no further change to wait for
			s, all, err = t.since(ctx, c, of, sent, state, history)
			return err
		}); err != nil {
			yield(nil, t.refusal(err))
			return false
		}
		state, sent = s.state(c.Agent), &s.end
		for _, e := range all {
			if !yield(e, nil) {
				return false
			}
		}
		return !last(state)
	})
	if failed != nil && ctx.Err() == nil {
		yield(nil, t.refusal(failed))
	}
}

// since is a task, and the events since an entry of it.
func (g *Gateway) since(ctx context.Context, c call, of ref, sent *uint64, was a2a.TaskState, history *int) (snapshot, []a2a.Event, error) {
	s, err := g.look(ctx, c, of)
	if err != nil {
		return s, nil, err
	}
	all, err := g.news(ctx, c, s, sent, was, history)
	return s, all, err
}

// news are the events since an entry, all of it as a task at first.
func (g *Gateway) news(ctx context.Context, c call, s snapshot, sent *uint64, was a2a.TaskState, history *int) ([]a2a.Event, error) {
	if sent == nil {
		task, err := g.write(ctx, c, s, history, true)
		return []a2a.Event{task}, err
	}
	info := a2a.TaskInfo{TaskID: s.id(), ContextID: string(s.view.Session)}
	state := s.state(c.Agent)
	var all []a2a.Event
	for _, e := range s.entries {
		if m := messageOf(e, c, s.id()); e.Sequence > *sent && m.Role == a2a.MessageRoleAgent {
			update := a2a.NewStatusUpdateEvent(info, a2a.TaskStateWorking, m)
			if at, err := time.Parse(time.RFC3339, e.At); err == nil {
				update.Status.Timestamp = &at
			}
			all = append(all, update)
		}
	}
	if state.Terminal() {
		artifacts, err := g.artifacts(ctx, c, s)
		if err != nil {
			return nil, err
		}
		for _, artifact := range artifacts {
			all = append(all, &a2a.TaskArtifactUpdateEvent{Artifact: artifact, ContextID: info.ContextID, TaskID: info.TaskID, LastChunk: true})
		}
	}
	if state != was || len(all) > 0 {
		all = append(all, &a2a.TaskStatusUpdateEvent{ContextID: info.ContextID, TaskID: info.TaskID, Status: s.status(c)})
	}
	return all, nil
}
