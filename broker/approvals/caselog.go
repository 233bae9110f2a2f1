package approvals

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"go.uber.org/zap"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/api/fit"
	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/store"
)

// cases are the case logs. Each approval has a subject of its own; each message on it has an action
// and the case after it. So the last message is enough to go on from, and all of them are the history.
type cases struct {
	store *store.Store

	mu        sync.RWMutex
	byID      map[escalation.ID]caseAt
	followed  uint64                   // the stream sequence that was followed last
	forgotten map[escalation.ID]uint64 // those that were forgotten before their last action was followed
}

// A caseAt is a case and the stream sequence of its last action.
type caseAt struct {
	escalation.Case
	sequence uint64
}

// A caseEntry is a message of the stream.
type caseEntry struct {
	Action escalation.Action `json:"event"`
	Case   escalation.Case   `json:"case"`
}

func newCases(s *store.Store) *cases {
	return &cases{store: s, byID: map[escalation.ID]caseAt{}, forgotten: map[escalation.ID]uint64{}}
}

func (a *Approvals) followCases(ctx context.Context) error {
	return a.o.Store.FollowAll(ctx, a.work, api.CaseLogStream, func(m store.Message) {
		if api.IsOfPeople(m.Subject) {
			return // it is for notifications
		}
		at, err := readCase(&m)
		if err != nil {
			a.o.Log.Error("case log", zap.String("subject", m.Subject), zap.Error(err))
			return
		}
		a.cases.follow(escalation.ID(m.Subject[strings.LastIndexByte(m.Subject, '.')+1:]), at)
	})
}

func readCase(m *store.Message) (caseAt, error) {
	var e caseEntry
	err := json.Unmarshal(m.Data, &e)
	return caseAt{e.Case, m.Sequence}, err
}

// follow takes a case from the stream, unless it was forgotten since.
func (c *cases) follow(id escalation.ID, at caseAt) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.followed = at.sequence
	last, forgotten := c.forgotten[id]
	if forgotten && at.sequence >= last {
		delete(c.forgotten, id)
	}
	if !forgotten || at.sequence > last {
		c.keep(id, at)
	}
}

func (c *cases) put(id escalation.ID, at caseAt) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keep(id, at)
}

// keep takes the newer case. The caller holds mu.
func (c *cases) keep(id escalation.ID, at caseAt) {
	if c.byID[id].sequence < at.sequence {
		c.byID[id] = at
	}
}

// cached is a case as memory has it.
func (c *cases) cached(id escalation.ID) escalation.Case {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.byID[id].Case
}

func (c *cases) forget(id escalation.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if last := c.byID[id].sequence; last > c.followed {
		c.forgotten[id] = last
	}
	delete(c.byID, id)
}

// read is a case as the stream has it now.
func (c *cases) read(ctx context.Context, org performatives.Organisation, id escalation.ID) (caseAt, error) {
	m, err := c.store.Last(ctx, api.CaseLogStream, api.CaseLogOf(org, string(id)))
	if m == nil || err != nil {
		return caseAt{}, err
	}
	at, err := readCase(m)
	if err == nil {
		c.put(id, at)
	}
	return at, err
}

// errNothing means that there is nothing to append.
var errNothing = errors.New("nothing has happened")

// maxRaces is how often an action is tried again because the case log moved on.
const maxRaces = 16

// append appends what judge makes of the case as it is now, or returns its refusal.
func (c *cases) append(ctx context.Context, org performatives.Organisation, id escalation.ID, judge func(escalation.Case) (escalation.Action, error)) error {
	for range maxRaces {
		at, err := c.read(ctx, org, id)
		if err != nil {
			return err
		}
		e, err := judge(at.Case)
		if err != nil {
			return err
		}
		next := at.With(e)
		data, err := json.Marshal(caseEntry{e, next})
		if err != nil {
			return err
		}
		sequence, err := c.store.PutIf(ctx, store.Message{Subject: api.CaseLogOf(org, string(id)), Data: data}, at.sequence)
		if err == nil {
			c.put(id, caseAt{next, sequence})
			return c.store.Sync(api.CaseLogStream, sequence)
		}
		if !errors.Is(err, store.ErrConflict) {
			return fmt.Errorf("case log: %w", err)
		}
	}
	return session.Busy()
}

// bringUpToDate appends what follows from the transcript and the clock: that the approval was opened,
// voted on or decided, that a level is reminded, that the next one is asked.
func (a *Approvals) bringUpToDate(ctx context.Context, s *session.State, of *escalation.Item, at time.Time) error {
	missing := func(c escalation.Case) (escalation.Action, error) {
		e, some := c.Missing(of, func() escalation.Plan { return a.plan(s, of) }, at)
		if !some {
			e, some = a.standIn(c, of)
		}
		if !some {
			return e, errNothing
		}
		return e, nil
	}
	for {
		if _, err := missing(a.cases.cached(of.ID)); err != nil {
			return nil //nolint:nilerr // nothing is missing
		}
		if err := a.cases.append(ctx, of.Org, of.ID, missing); err != nil && !errors.Is(err, errNothing) {
			return err
		}
	}
}

// NextDue is when the clock next adds to the case logs of a session's open approvals: a
// reminder is due, or the next level is asked. It is false for never.
func (a *Approvals) NextDue(s session.State, now time.Time) (next time.Time, ok bool) {
	for _, item := range append(slices.Clip(s.NewestEscalations()), s.DisputeItems()...) {
		if due, some := a.cases.cached(item.ID).NextDue(item, now); some && (!ok || due.Before(next)) {
			next, ok = due, true
		}
	}
	return next, ok
}

// Notified adds to the case log who was told of an approval, and how. It changes nothing for who decides.
func (a *Approvals) Notified(ctx context.Context, item *api.EscalationItem, told string) error {
	return a.cases.append(ctx, item.Organisation, item.ID, func(escalation.Case) (escalation.Action, error) {
		return escalation.Action{Kind: escalation.Notified, At: a.o.Now().UTC(), Text: clip(told, maxComment)}, nil
	})
}

// history is a page of the case log of an approval, oldest action first, from a stream sequence on.
func (c *cases) history(ctx context.Context, org performatives.Organisation, id escalation.ID, from uint64) (actions []escalation.Action, next *uint64, err error) {
	page := api.NewPage[escalation.Action](api.MaxPage)
	err = c.store.Read(ctx, api.CaseLogStream, api.CaseLogOf(org, string(id)), max(from, 1), func(m store.Message) error {
		var e caseEntry
		if err := json.Unmarshal(m.Data, &e); err != nil {
			return err
		}
		if !page.Add(e.Action, fit.Size(e.Action)) {
			next = &m.Sequence
			return store.ErrEnough
		}
		return nil
	})
	return page.Items, next, err
}
