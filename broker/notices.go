package broker

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/store"
)

// A notice is what people of an organisation are told once: that something is due soon, or overdue.
type notice struct {
	kind                   string
	org                    performatives.Organisation
	commitment, obligation string
	due                    int64 // on the session's clock, which a pause does not move
}

// A reminded is an organisation of a session whose rules say how long before something is due it is told.
type reminded struct {
	org  performatives.Organisation
	lead time.Duration
}

// reminded are the organisations that are told, the longest lead first.
func (b *Broker) reminded(s *session.State) (all []reminded) {
	rules := b.parts.Approvals.Rules()
	if rules == nil || !s.Executing() || s.Phase.Over() {
		return nil
	}
	for _, side := range s.Sides() {
		to := reminded{side.Organisation(), rules.RemindDue(side.Organisation())}
		if to.lead > 0 && !slices.Contains(all, to) {
			all = append(all, to)
		}
	}
	slices.SortFunc(all, func(a, b reminded) int { return cmp.Compare(b.lead, a.lead) })
	return all
}

// waitsFor are those who have to do something about an obligation: who owes it, or who answers its delivery.
func waitsFor(s *session.State, o *session.Obligation) []performatives.Agent {
	c, ok := s.Commitment(o.Commitment)
	if o.Delivery == nil || !ok {
		return []performatives.Agent{o.Party}
	}
	return slices.DeleteFunc(slices.Clone(c.Parties), func(a performatives.Agent) bool { return a == o.Party })
}

func ofOrganisation(all []performatives.Agent, org performatives.Organisation) bool {
	return slices.ContainsFunc(all, func(a performatives.Agent) bool { return a.Organisation() == org })
}

// dueNotices calls each for what is due, the first first, with when its organisation is told of it, until
// each returns false. A session whose clock stands still reminds nobody.
func (b *Broker) dueNotices(l *cachedSession, at time.Time, each func(n notice, o *session.Obligation, due, tell time.Time) bool) {
	s := &l.state
	all := b.reminded(s)
	if len(all) == 0 || s.ClockStopped(at) {
		return
	}
	for onClock, o := range s.Upcoming() {
		due, to := s.Wall(onClock, at), waitsFor(s, o)
		for _, r := range all {
			n := notice{api.NoticeDue, r.org, o.Commitment, o.ID, onClock.UnixNano()}
			if ofOrganisation(to, r.org) && !l.noticed[n] && !each(n, o, due, due.Add(-r.lead)) {
				return
			}
		}
	}
}

// nextNotice is when people have to be told next that something is due; false is never.
func (b *Broker) nextNotice(l *cachedSession, now time.Time) (next time.Time, some bool) {
	all := b.reminded(&l.state)
	b.dueNotices(l, now, func(_ notice, _ *session.Obligation, due, tell time.Time) bool {
		if !some || tell.Before(next) {
			next, some = tell, true
		}
		return due.Add(-all[0].lead).Before(next) // of what is due later, none is told before
	})
	return next, some
}

// tellDue tells the organisations whose rules ask for it of what is due soon, and of what is overdue.
func (b *Broker) tellDue(ctx context.Context, l *cachedSession) (failed error) {
	all := b.reminded(&l.state)
	if len(all) == 0 {
		return nil
	}
	at := b.clock(l)
	b.dueNotices(l, at, func(n notice, o *session.Obligation, due, tell time.Time) bool {
		if !tell.After(at) {
			failed = b.putNotice(ctx, l, n, o, due)
		}
		return failed == nil && !due.Add(-all[0].lead).After(at)
	})
	if failed != nil || l.sought {
		return failed
	}
	for _, o := range l.state.Obligations() {
		c, ok := l.state.Commitment(o.Commitment)
		if !ok || !o.Breached || !o.StillDue() {
			continue
		}
		for _, r := range all {
			n := notice{api.NoticeOverdue, r.org, o.Commitment, o.ID, o.DueBy().UnixNano()}
			if !ofOrganisation(c.Parties, r.org) || l.noticed[n] {
				continue
			}
			if err := b.putNotice(ctx, l, n, o, l.state.Wall(o.DueBy(), at)); err != nil {
				return err
			}
		}
	}
	l.sought = true
	return nil
}

// putNotice writes what people are told. Its subject is its own: a second write conflicts with the first.
func (b *Broker) putNotice(ctx context.Context, l *cachedSession, n notice, o *session.Obligation, due time.Time) error {
	at := b.clock(l)
	to := b.parts.Approvals.Rules().WithRole(n.org, escalation.RoleOwner)
	for _, a := range l.state.Participants() {
		if a.IsHuman() && a.Organisation() == n.org && l.state.MayRead(a, at) && !slices.Contains(to, a) {
			to = append(slices.Clip(to), a)
		}
	}
	data, err := json.Marshal(api.DueNoticeOf(&l.state, o, api.DueNotice{
		Kind: n.kind, At: at.UTC(), Organisation: n.org, People: to, For: waitsFor(&l.state, o), Due: api.Timestamp(due),
	}), json.Deterministic(true))
	if err != nil {
		return err
	}
	own := sha256.Sum256(fmt.Appendf(nil, "%s %s %q %q %d", n.kind, l.id, n.commitment, n.obligation, n.due))
	sequence, err := b.parts.Store.PutIf(ctx, store.Message{Subject: api.PeopleOf(n.org, hex.EncodeToString(own[:16])), Data: data}, 0)
	if err == nil {
		err = b.parts.Store.Sync(api.CaseLogStream, sequence)
	}
	if err != nil && !errors.Is(err, store.ErrConflict) {
		return fmt.Errorf("notice of what is due: %w", err)
	}
	if l.noticed == nil {
		l.noticed = map[notice]bool{}
	}
	l.noticed[n] = true
	return nil
}
