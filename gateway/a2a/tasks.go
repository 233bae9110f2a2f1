package a2agateway

import (
	"context"
	"slices"
	"time"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2asrv"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// tasks answers A2A's operations; the library has read the request.
type tasks struct{ *Gateway }

var _ a2asrv.RequestHandler = tasks{}

// A snapshot is a session as its caller sees it: the view, what its caller may do there, and the
// newest entries.
type snapshot struct {
	view    api.SessionView
	deal    api.Snapshot
	entries []api.Entry
	held    bool // what the caller said first is still to be said
}

// maxHistory is how many entries a task shows at most.
const maxHistory = 100

// look reads a session of the caller's in which the agent has a part.
func (g *Gateway) look(ctx context.Context, c call, id performatives.SessionID) (s snapshot, err error) {
	if _, err := performatives.ParseSessionID(string(id)); err != nil {
		return s, noTask()
	}
	if s.view, err = c.View(ctx, id); err != nil {
		return s, err
	}
	if !slices.ContainsFunc(s.view.Participants, func(p api.PartyView) bool { return p.Agent == c.to }) {
		return s, noTask()
	}
	if err := c.Call(ctx, api.SessionSnapshot.Verb, api.GetSnapshot{Session: id}, &s.deal); err != nil {
		return s, err
	}
	if s.view.State == session.Introduced {
		r := record{Session: id, Caller: c.Agent, Agent: c.to}
		data, _, err := g.record(ctx, heldKind+r.key(""))
		if err != nil {
			return s, err
		}
		s.held = len(data) > 0
	}
	next := uint64(0)
	if head := s.view.Head.Sequence; head != nil {
		next = *head + 1 - min(*head+1, maxHistory)
	}
	for more := &next; more != nil; {
		page, err := c.Messages(ctx, api.ListMessages{Session: id, Since: *more, Limit: maxHistory})
		if err != nil {
			return s, err
		}
		entries, err := page.Entries()
		if err != nil {
			return s, err
		}
		for _, e := range entries {
			if head := s.view.Head.Sequence; head != nil && e.Sequence <= *head { // the session may have gone on
				s.entries = append(s.entries, e)
			}
		}
		more = page.Next
	}
	return s, nil
}

// task is the one task of a session.
func (g *Gateway) task(ctx context.Context, c call, id performatives.SessionID, history *int, artifacts bool) (*a2a.Task, error) {
	s, err := g.look(ctx, c, id)
	if err != nil {
		return nil, err
	}
	return g.write(ctx, c, s, history, artifacts)
}

func (g *Gateway) write(ctx context.Context, c call, s snapshot, history *int, artifacts bool) (*a2a.Task, error) {
	t := &a2a.Task{ID: a2a.TaskID(s.view.Session), ContextID: string(s.view.Session), Status: s.status(c)}
	t.Metadata = map[string]any{"sessionId": string(s.view.Session), "state": s.view.State.String(), "mode": s.view.Mode}
	t.History = s.history(c)
	if history != nil {
		t.History = t.History[max(0, len(t.History)-max(0, *history)):]
	}
	var err error
	if artifacts {
		t.Artifacts, err = g.artifacts(ctx, c, s)
	}
	return t, err
}

// GetTask answers with a task.
func (t tasks) GetTask(ctx context.Context, q *a2a.GetTaskRequest) (*a2a.Task, error) {
	if q.HistoryLength != nil && *q.HistoryLength < 0 {
		return nil, invalid("historyLength is at least 0")
	}
	task, err := t.task(ctx, callOf(ctx), performatives.SessionID(q.ID), q.HistoryLength, true)
	return task, t.refusal(err)
}

// CancelTask ends a session: WITHDRAW of the caller's invitation, REJECT of another's, or CLOSE.
func (t tasks) CancelTask(ctx context.Context, q *a2a.CancelTaskRequest) (*a2a.Task, error) {
	c, id := callOf(ctx), performatives.SessionID(q.ID)
	if err := c.Acts(); err != nil {
		return nil, t.refusal(err)
	}
	s, err := t.look(ctx, c, id)
	if err != nil {
		return nil, t.refusal(err)
	}
	var said api.Say
	switch invitation := s.view.Invitation; {
	case s.view.State.Over() || s.view.State == session.Escalated:
		return nil, a2a.NewError(a2a.ErrTaskNotCancelable, "the session is "+s.view.State.String())
	case s.state(c.Agent).Terminal():
		return nil, a2a.NewError(a2a.ErrTaskNotCancelable, "the task is completed; the action close ends its session")
	case s.view.State == session.Invited && invitation.From == c.Agent:
		said, err = speak(performatives.Withdraw, object{"referenceId": invitation.Proposal, "reason": "canceled"})
	case s.view.State == session.Invited:
		said, err = speak(performatives.Reject, object{"referenceId": invitation.Proposal, "code": "unspecified", "reason": "canceled", "retryable": false})
	default:
		said, err = speak(performatives.Close, object{"outcome": "abandoned", "summary": "canceled"})
	}
	if err == nil {
		said.Session = id
		_, err = c.Say(ctx, said)
	}
	if err != nil {
		return nil, t.refusal(err)
	}
	task, err := t.task(ctx, c, id, nil, true)
	return task, t.refusal(err)
}

// Bounds of a list.
const (
	defaultPage = 50
	maxPage     = 100
	maxLooked   = 1_000 // sessions that one request reads
)

// ListTasks lists the caller's sessions with the agent, newest first.
func (t tasks) ListTasks(ctx context.Context, q *a2a.ListTasksRequest) (*a2a.ListTasksResponse, error) {
	c, size := callOf(ctx), q.PageSize
	if size == 0 {
		size = defaultPage
	}
	if size < 1 || size > maxPage {
		return nil, invalid("pageSize is 1 to %d", maxPage)
	}
	if _, err := performatives.ParseSessionID(q.PageToken); err != nil && q.PageToken != "" {
		return nil, invalid("pageToken is the nextPageToken of the page before")
	}
	if q.HistoryLength != nil && *q.HistoryLength < 0 {
		return nil, invalid("historyLength is at least 0")
	}
	if !knownState(q.Status) {
		return nil, invalid("status is a TASK_STATE_…")
	}
	none := 0
	history := q.HistoryLength
	if history == nil {
		history = &none
	}
	found := &a2a.ListTasksResponse{Tasks: []*a2a.Task{}, PageSize: size}
	request := api.ListSessions{Cursor: q.PageToken, Limit: maxPage}
	for looked := 0; looked < maxLooked; {
		var page api.Sessions
		if err := c.Call(ctx, api.SessionList.Verb, request, &page); err != nil {
			return nil, t.refusal(err)
		}
		for _, row := range page.Sessions {
			looked++
			if !slices.Contains(row.Parties, c.to) || q.ContextID != "" && q.ContextID != string(row.Session) || !after(row.Updated, q.StatusTimestampAfter) {
				continue
			}
			if len(found.Tasks) == size {
				found.TotalSize++
				continue
			}
			task, err := t.task(ctx, c, row.Session, history, q.IncludeArtifacts)
			if err != nil {
				return nil, t.refusal(err)
			}
			if q.Status != a2a.TaskStateUnspecified && task.Status.State != q.Status {
				continue
			}
			found.TotalSize++
			if found.Tasks = append(found.Tasks, task); len(found.Tasks) == size {
				found.NextPageToken = string(row.Session)
			}
		}
		if request.Cursor = page.Next; request.Cursor == "" {
			break
		}
	}
	if found.TotalSize <= size {
		found.NextPageToken = "" // nothing comes after
	}
	return found, nil
}

func after(updated string, bound *time.Time) bool {
	at, err := time.Parse(time.RFC3339, updated)
	return bound == nil || err == nil && !at.Before(*bound)
}

func knownState(s a2a.TaskState) bool {
	return slices.Contains([]a2a.TaskState{
		a2a.TaskStateUnspecified, "TASK_STATE_UNSPECIFIED", a2a.TaskStateAuthRequired, a2a.TaskStateCanceled, a2a.TaskStateCompleted, a2a.TaskStateFailed,
		a2a.TaskStateInputRequired, a2a.TaskStateRejected, a2a.TaskStateSubmitted, a2a.TaskStateWorking,
	}, s)
}

// GetExtendedAgentCard answers that there is none: the public card has all there is.
func (tasks) GetExtendedAgentCard(context.Context, *a2a.GetExtendedAgentCardRequest) (*a2a.AgentCard, error) {
	return nil, a2a.NewError(a2a.ErrExtendedCardNotConfigured, "the public card has all there is")
}
