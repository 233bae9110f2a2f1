package session

import (
	"cmp"
	"slices"
	"time"

	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
)

// Escalation is the item that pauses the session, the first of several; nil while it is
// not paused.
func (s *State) Escalation() *escalation.Item {
	for _, item := range s.asked {
		if item.Open() {
			return item
		}
	}
	return nil
}

// EscalationFor is the open item that a human rules on or closes, nil for none.
func (s *State) EscalationFor(m *performatives.Message) *escalation.Item {
	var named escalation.ID
	if inform, ok := m.Body.(*performatives.InformBody); ok {
		ruling, _ := inform.Ruling()
		named = escalation.ID(ruling.EscalationID)
	}
	if named == "" {
		return s.EscalationOf(m.Sender.Organisation())
	}
	return s.openItem(func(item *escalation.Item) bool { return item.ID == named })
}

// EscalationOf is the first open escalation that waits for an organisation, nil for none.
func (s *State) EscalationOf(org performatives.Organisation) *escalation.Item {
	return s.openItem(func(item *escalation.Item) bool { return item.Org == org })
}

func (s *State) openItem(is func(*escalation.Item) bool) *escalation.Item {
	for _, item := range s.asked {
		if item.Open() && is(item) {
			return item
		}
	}
	return nil
}

// Escalations calls each with every item of the session, in no order.
func (s *State) Escalations(each func(*escalation.Item)) {
	for _, item := range s.items.All() {
		each(item)
	}
}

// NewestEscalations are the items that were opened last: one, or those of all
// organisations that confirm an agreement. Do not change them.
func (s *State) NewestEscalations() []*escalation.Item { return s.asked }

// A Pause is a time in which humans decided, and no deadline passed.
type Pause struct {
	From, Until time.Time // Until is zero while it goes on
}

// Pauses are the times in which the session was paused, oldest first.
func (s *State) Pauses() (all []Pause) {
	items := make([]*escalation.Item, 0, s.items.Len())
	for _, item := range s.items.All() {
		if item.Dispute == "" {
			items = append(items, item)
		}
	}
	slices.SortFunc(items, func(a, b *escalation.Item) int { return cmp.Compare(a.Sequence, b.Sequence) })
	for _, item := range items {
		p := Pause{From: item.At, Until: item.End.At}
		if item.Open() {
			p.Until = time.Time{}
		}
		if n := len(all); n > 0 && (all[n-1].Until.IsZero() || p.From.Before(all[n-1].Until)) { // the organisations that confirm an agreement
			if last := &all[n-1].Until; p.Until.IsZero() || !last.IsZero() && p.Until.After(*last) {
				*last = p.Until
			}
			continue
		}
		all = append(all, p)
	}
	return all
}

// EscalationsOf counts how often a side has escalated.
func (s *State) EscalationsOf(side performatives.Agent) int {
	n := 0
	for _, item := range s.items.All() {
		if item.Principal == side && item.Dispute == "" && !item.OfDelivery() {
			n++
		}
	}
	return n
}

// mayEnd reports whether the sender may decide for an organisation that is asked still.
func (t *Command) mayEnd() bool {
	return slices.ContainsFunc(t.asked, func(item *escalation.Item) bool {
		return item.Open() && escalation.MayDecide(t.From.Member, item.Org)
	})
}
