package a2agateway

import (
	"context"
	"slices"
	"strings"
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

// A snapshot is a task of a session as its caller sees it: the view of the session, what its caller may
// do there, and the newest entries up to the task's last, those before its first included.
type snapshot struct {
	span
	view    api.SessionView
	deal    api.Snapshot
	entries []api.Entry
	held    bool       // what the caller said first is still to be said
	refused *api.Error // why it was not taken

	agreements []api.AgreementRow // of a session that is over and in which something was accepted
}

// maxHistory is how many entries a task shows at most.
const maxHistory = 100

// look reads a task of a session of the caller's in which the agent has a part.
func (g *Gateway) look(ctx context.Context, c call, of ref) (s snapshot, err error) {
	id := of.session
	if _, err := performatives.ParseSessionID(string(id)); err != nil {
		return s, noTask()
	}
	if s.view, err = c.View(ctx, id); err != nil {
		return s, err
	}
	if !slices.ContainsFunc(s.view.Participants, func(p api.PartyView) bool { return p.Agent == c.to }) {
		return s, noTask()
	}
	var is bool
	if s.span, is = spanOf(of, s.view); !is {
		return s, noTask()
	}
	if err := c.Call(ctx, api.SessionSnapshot.Verb, api.GetSnapshot{Session: id}, &s.deal); err != nil {
		return s, err
	}
	if s.view.State.Over() && s.view.Accepted > 0 {
		if s.agreements, err = c.agreements(ctx, id); err != nil {
			return s, err
		}
	}
	next := s.end + 1 - min(s.end+1, maxHistory)
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
			if s.view.Head.Sequence != nil && e.Sequence <= s.end { // the session may have gone on
				s.entries = append(s.entries, e)
			}
		}
		if more = page.Next; more != nil && *more > s.end {
			break
		}
	}
	return s, g.addFirst(ctx, c, &s)
}

// agreements are those of a session: the first page.
func (c call) agreements(ctx context.Context, id performatives.SessionID) ([]api.AgreementRow, error) {
	var page api.Agreements
	err := c.Call(ctx, api.AgreementList.Verb, api.ListAgreements{Session: id}, &page)
	return page.Agreements, err
}

// addFirst adds what is known of the caller's first message: that it is still to be said, or that it was refused.
func (g *Gateway) addFirst(ctx context.Context, c call, s *snapshot) error {
	spoke := slices.ContainsFunc(s.entries, func(e api.Entry) bool { return e.From == c.Agent && e.Sequence > 0 })
	if s.view.State != session.Introduced && (spoke || s.view.State != session.Conversing) {
		return nil
	}
	r := record{Session: s.view.Session, Caller: c.Agent, Agent: c.to}
	data, revision, err := g.record(ctx, heldKind+r.key(""))
	if err != nil || len(data) == 0 {
		return err
	}
	r, err = readRecord(data, revision)
	s.held, s.refused = r.Refused == nil, r.Refused
	return err
}

func (g *Gateway) task(ctx context.Context, c call, of ref, history *int, artifacts bool) (*a2a.Task, error) {
	s, err := g.look(ctx, c, of)
	if err != nil {
		return nil, err
	}
	return g.write(ctx, c, s, history, artifacts)
}

func (g *Gateway) write(ctx context.Context, c call, s snapshot, history *int, artifacts bool) (*a2a.Task, error) {
	t := &a2a.Task{ID: s.id(), ContextID: string(s.view.Session), Status: s.status(c)}
	t.Metadata = map[string]any{"sessionId": string(s.view.Session), "state": s.phase(), "mode": s.view.Mode}
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
	of, err := refOf(q.ID)
	if err != nil {
		return nil, err
	}
	task, err := t.task(ctx, callOf(ctx), of, q.HistoryLength, true)
	return task, t.refusal(err)
}

// CancelTask ends the session of a task that is not over: WITHDRAW of the caller's invitation, REJECT of another's, or CLOSE.
func (t tasks) CancelTask(ctx context.Context, q *a2a.CancelTaskRequest) (*a2a.Task, error) {
	c := callOf(ctx)
	if err := c.Acts(); err != nil {
		return nil, t.refusal(err)
	}
	of, err := refOf(q.ID)
	if err != nil {
		return nil, err
	}
	s, err := t.look(ctx, c, of)
	if err != nil {
		return nil, t.refusal(err)
	}
	var said api.Say
	switch invitation := s.view.Invitation; {
	case s.view.State.Over() && !s.over:
		return nil, a2a.NewError(a2a.ErrTaskNotCancelable, "the session is "+s.view.State.String())
	case s.state(c.Agent).Terminal():
		return nil, a2a.NewError(a2a.ErrTaskNotCancelable, "the task is over; the action close, without a taskId, ends its session")
	case s.view.State == session.Escalated:
		return nil, a2a.NewError(a2a.ErrTaskNotCancelable, "the session is "+s.view.State.String())
	case s.view.State == session.Executing: // a CLOSE would agree to release what is due
		return nil, a2a.NewError(a2a.ErrTaskNotCancelable, "what was agreed is carried out; the action close ends it once every party says so")
	case s.view.State == session.Invited && invitation.From == c.Agent:
		said, err = speak(performatives.Withdraw, object{"referenceId": invitation.Proposal, "reason": "canceled"})
	case s.view.State == session.Invited:
		said, err = speak(performatives.Reject, object{"referenceId": invitation.Proposal, "code": "unspecified", "reason": "canceled", "retryable": false})
	default:
		said, err = speak(performatives.Close, object{"outcome": "abandoned", "summary": "canceled"})
	}
	if err == nil {
		said.Session = of.session
		_, err = c.Say(ctx, said)
	}
	if err != nil {
		return nil, t.refusal(err)
	}
	task, err := t.task(ctx, c, of, nil, true)
	return task, t.refusal(err)
}

// Bounds of a list.
const (
	defaultPage = 50
	maxPage     = 100
	maxLooked   = 1_000 // sessions and tasks that one request reads
)

// ListTasks lists the tasks of the caller's sessions with the agent, the newest session first, and the
// newest of its tasks.
func (t tasks) ListTasks(ctx context.Context, q *a2a.ListTasksRequest) (*a2a.ListTasksResponse, error) {
	c, size := callOf(ctx), q.PageSize
	if size == 0 {
		size = defaultPage
	}
	if size < 1 || size > maxPage {
		return nil, invalid("pageSize is 1 to %d", maxPage)
	}
	// A token is the last task that was listed, and the cursor of the sessions after its own, "" if there are none.
	last, cursor, goesOn := strings.Cut(q.PageToken, "/")
	from, err := refOf(a2a.TaskID(last))
	if err != nil && q.PageToken != "" || err == nil && !goesOn {
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
	l := listing{tasks: t, c: c, q: q, size: size, history: history, next: cursor, found: &a2a.ListTasksResponse{Tasks: []*a2a.Task{}, PageSize: size}}
	if from.number > 1 { // the page before ended among the tasks of a session
		from.number--
		if err := l.add(ctx, from); err != nil && !isA2A(err) && !refused(err) {
			return nil, t.refusal(err)
		}
	}
	request := api.ListSessions{Cursor: cursor, Limit: maxPage}
	for l.looked < maxLooked && (request.Cursor != "" || !goesOn) {
		var page api.Sessions
		if err := c.Call(ctx, api.SessionList.Verb, request, &page); err != nil {
			return nil, t.refusal(err)
		}
		goesOn = true
		for n, row := range page.Sessions {
			l.looked++
			if !slices.Contains(row.Parties, c.to) || q.ContextID != "" && q.ContextID != string(row.Session) || !after(row.Updated, q.StatusTimestampAfter) {
				continue
			}
			if len(l.found.Tasks) == size {
				l.found.TotalSize++
				continue
			}
			err := l.add(ctx, ref{session: row.Session})
			if err == nil && len(l.found.Tasks) == size {
				l.next, err = l.after(ctx, request, row.Session, n+1)
			}
			if err != nil {
				return nil, t.refusal(err)
			}
		}
		request.Cursor = page.Next
	}
	if l.found.NextPageToken += "/" + l.next; l.found.TotalSize <= size {
		l.found.NextPageToken = "" // nothing comes after
	}
	return l.found, nil
}

// after is the cursor of the sessions after the nth of a page, or a later one if sessions were opened meanwhile.
func (l *listing) after(ctx context.Context, request api.ListSessions, id performatives.SessionID, n int) (next string, err error) {
	for request.Limit = n; request.Limit <= maxPage; request.Limit++ {
		var page api.Sessions
		if err := l.c.Call(ctx, api.SessionList.Verb, request, &page); err != nil {
			return "", err
		}
		if next = page.Next; next == "" || len(page.Sessions) > 0 && page.Sessions[len(page.Sessions)-1].Session == id {
			break
		}
	}
	return next, nil
}

// A listing is a page of tasks on its way.
type listing struct {
	tasks
	c       call
	q       *a2a.ListTasksRequest
	size    int
	history *int
	looked  int
	next    string // cursor of the sessions after that of the last task
	found   *a2a.ListTasksResponse
}

// add adds a task, and those before it in its session.
func (l *listing) add(ctx context.Context, of ref) error {
	for more := true; more; more = of.number > 0 {
		s, err := l.look(ctx, l.c, of)
		if err != nil {
			return err
		}
		if of = s.ref; len(l.found.Tasks) == l.size {
			l.found.TotalSize += of.number
			return nil
		}
		task, err := l.write(ctx, l.c, s, l.history, l.q.IncludeArtifacts)
		if err != nil {
			return err
		}
		at := task.Status.Timestamp
		if matches := l.q.Status == a2a.TaskStateUnspecified || task.Status.State == l.q.Status; matches && (at == nil || l.q.StatusTimestampAfter == nil || !at.Before(*l.q.StatusTimestampAfter)) {
			l.found.TotalSize++
			if l.found.Tasks = append(l.found.Tasks, task); len(l.found.Tasks) == l.size {
				l.found.NextPageToken = string(task.ID)
			}
		}
		l.looked++
		of.number--
	}
	return nil
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
