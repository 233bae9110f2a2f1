package a2agateway

import (
	"context"
	"fmt"
	"net/url"
	"time"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/go-json-experiment/json"
	"go.uber.org/zap"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
)

// A lane tells the agent's server of one session, an entry after the other.
type lane struct {
	*talk
	session performatives.SessionID
	more    chan struct{} // there are more entries

	seen uint64        // the newest entry that was in the inbox; of talk.mu
	next uint64        // the first entry of which the server is not told
	at   *conversation // nil until it was read
}

// A conversation is a session as the agent's server has it.
type conversation struct {
	Context string     `json:"contextId"`
	Task    a2a.TaskID `json:"taskId"`
	Answers int        `json:"answers"`
	Next    uint64     `json:"next,omitzero"` // of which it is not told yet
	Over    bool       `json:"over,omitzero"` // the session is
}

// run tells the server all there is. What fails is tried again until its session is over.
func (l *lane) run(ctx context.Context) {
	for failures := 0; ctx.Err() == nil; {
		told, err := l.step(ctx)
		switch {
		case err != nil:
			if failures++; failures == silentFrom {
				l.o.Gateway.o.Service.Log.Warn("an agent elsewhere does not answer", zap.String("agent", string(l.agent)), zap.String("session", string(l.session)), zap.Error(err))
			}
			l.disconnect()
			l.pause(ctx, min(retryWait<<min(failures-1, 6), maxBreak))
		case told:
			failures = 0
		case l.end(ctx):
			return
		}
	}
}

// pause waits, or for another entry: it may be the session's last.
func (l *lane) pause(ctx context.Context, pause time.Duration) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-l.more:
	case <-ctx.Done():
	}
}

// end ends the lane unless there is more. What tells how far a session was told goes with the session, once its last
// entry has come by the inbox, too, and the saved cursor is behind that.
func (l *lane) end(ctx context.Context) bool {
	l.mu.Lock()
	select {
	case <-l.more:
		l.mu.Unlock()
		return false
	default:
	}
	delete(l.lanes, l.session)
	delete(l.pending, l.session)
	over := l.at != nil && l.at.Over && l.seen+1 >= l.at.Next
	l.mu.Unlock()
	if over {
		l.save(ctx)
		if err := l.o.Gateway.o.Records.Delete(ctx, l.record()); err != nil && ctx.Err() == nil {
			l.o.Gateway.o.Service.Log.Warn("a record of a session that is over stays", zap.String("session", string(l.session)), zap.Error(err))
		}
	}
	l.move()
	return true
}

func (l *lane) record() string { return l.key(contextKind, string(l.session)) }

// step tells the server of the next entry of somebody else. told is whether there was one.
func (l *lane) step(ctx context.Context) (told bool, err error) {
	if err := l.read(ctx); err != nil {
		return false, err
	}
	c := call{Caller: l.o.Gateway.o.Service.As(l.agent), to: l.agent}
	for ; ; l.next++ {
		page, err := c.Messages(ctx, api.ListMessages{Session: l.session, Since: l.next, Limit: 1})
		if refused(err) || err == nil && len(page.Messages) == 0 {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		all, err := page.Entries()
		if err != nil || all[0].From == l.agent {
			continue // no version of ours wrote it, or it is the agent's own
		}
		return true, l.exchange(ctx, c, all[0])
	}
}

// read reads what the server was told before.
func (l *lane) read(ctx context.Context) error {
	if l.at != nil {
		return nil
	}
	data, _, err := l.o.Gateway.record(ctx, l.record())
	if err != nil {
		return err
	}
	at := &conversation{}
	if len(data) > 0 && json.Unmarshal(data, at) != nil {
		at = &conversation{}
	}
	l.at, l.next = at, max(l.next, at.Next)
	return nil
}

// exchange sends an entry, when it is the turn of its sender's organisation, and says what is answered.
func (l *lane) exchange(ctx context.Context, c call, e api.Entry) (err error) {
	defer func() {
		if why := recover(); why != nil { // of what reads the answers of others
			err = fmt.Errorf("panic: %v", why)
		}
	}()
	at, err := url.Parse(l.url)
	if err != nil {
		return err
	}
	of := e.From
	if of.IsBroker() { // its entries are charged to who opened the session
		view, err := c.View(ctx, l.session)
		if err != nil && !refused(err) {
			return err
		}
		if len(view.Participants) > 0 {
			of = view.Participants[0].Agent
		}
	}
	leave, err := l.turns.Enter(ctx, string(of.Organisation()), at)
	if err != nil {
		return err
	}
	defer leave(nil)
	g, key := l.o.Gateway, "remote "+string(e.ID)
	_, _, said, err := c.Before(ctx, key, "")
	if err != nil {
		return err
	}
	if said { // before a crash
		l.next++
		return nil
	}
	s, err := g.look(ctx, c, ref{session: e.Session})
	if refused(err) || isA2A(err) {
		l.next++
		return nil
	}
	if err != nil {
		return err
	}
	told := *l.at
	told.Over = s.view.State.Over()
	reply, err := l.send(ctx, &told, l.message(e, s, string(e.ID)))
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case told.Over: // whatever it answers
	case err != nil:
		return err
	case told.Answers < maxAnswers:
		told.Answers++
		if err := l.answer(ctx, c, key, s, e, reply, &told); err != nil {
			return err
		}
	}
	told.Next = e.Sequence + 1
	data, err := json.Marshal(told)
	if err != nil {
		return err
	}
	if _, err = g.put(ctx, l.record(), data); err == nil {
		l.at, l.next = &told, told.Next
	}
	return err
}
