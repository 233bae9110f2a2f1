package broker

import (
	"context"
	"maps"
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
)

// Of the items that are over, memory has the newest: those that people list.
// The stream has them all, one by one.
const (
	maxResolved      = 10_000
	maxResolvedBytes = 64 << 20
)

// forgetResolved lets go of the items that ended first, and of what people did
// around them. i.mu is held.
func (i *items) forgetResolved() {
	n := 0
	for len(i.closed)-n > i.most || i.closedBytes > maxResolvedBytes && n < len(i.closed) {
		k := i.closed[n]
		n++
		i.closedBytes -= weight(k.EscalationItem)
		delete(i.byID, k.ID)
		org := i.byOrg[k.Organisation]
		org[1] = without(org[1], k)
		i.b.desks.forget(k.ID)
	}
	i.closed = slices.Delete(i.closed, 0, n)
}

func (d *desks) forget(id escalation.ID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.byID, id)
}

var urgencies = []escalation.Urgency{escalation.Low, escalation.Medium, escalation.High, escalation.Critical}

// past is an item of the caller's organisation that memory let go of.
func (i *items) past(ctx context.Context, c api.Caller, id string) (*kept, error) {
	if _, err := performatives.ParseMessageID(id); err != nil {
		return nil, unknownEscalation() // and no part of a subject
	}
	orgs := []performatives.Organisation{c.Agent.Organisation()}
	if c.Operator {
		orgs = i.organisations()
	}
	for _, org := range orgs {
		for _, urgency := range urgencies {
			last, err := i.b.store.Last(ctx, api.EscalationsStream, api.Escalation(org, string(urgency), id))
			if err != nil {
				return nil, err
			}
			if last == nil {
				continue
			}
			item := new(api.EscalationItem)
			if err := json.Unmarshal(last.Data, item); err != nil {
				return nil, err
			}
			item.Transcript, item.Next = nil, nil
			asOf(item, i.b.Now())
			return asKept(item), nil
		}
	}
	return nil, unknownEscalation()
}

// organisations are those that ever had an item.
func (i *items) organisations() []performatives.Organisation {
	i.mu.RLock()
	defer i.mu.RUnlock()
	return slices.Collect(maps.Keys(i.byOrg))
}
