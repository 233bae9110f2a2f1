package inbox

import (
	"cmp"
	"maps"
	"net/http"
	"slices"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/api/render"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// maxPicked is how many items can be denied or handed over at once.
const maxPicked = 50

// several are selected items, and what is about to be done with each of them: they are denied or handed
// over. Nothing approves several at once.
type several struct {
	Deny     bool
	Picked   []picked
	Able     int // those that it can be done with
	Others   []standIn
	Required bool // a rule wants a reason to deny
}

// A picked is one of the items.
type picked struct {
	ID, Title, Amount string
	Item              *api.EscalationItem
	Why               string // it cannot be done; "" if it can
}

// A standIn is a colleague who may decide a number of the items.
type standIn struct {
	Agent performatives.Agent
	May   int
}

func (i *Inbox) several(r *http.Request, who *person) (*several, error) {
	q := r.URL.Query()
	ids := q["id"]
	if len(ids) == 0 || len(ids) > maxPicked {
		return nil, session.Refuse(session.SchemaInvalid, "select 1 to %d items", maxPicked)
	}
	s := &several{Deny: q.Get("do") == "deny"}
	may := map[performatives.Agent]int{}
	for _, id := range ids {
		it, err := ask(r.Context(), i, who.Agent, api.EscalationGet, api.GetEscalation{Escalation: id})
		if refused(err) {
			s.Picked = append(s.Picked, picked{ID: id, Title: "An item that you can no longer see", Why: "it is not there any more"})
			continue
		}
		if err != nil {
			return nil, err
		}
		p := picked{ID: id, Title: titleOf(&it), Item: &it, Why: s.cannot(&it)}
		if it.Amount != nil {
			p.Amount = render.Money(it.Amount.Value, it.Amount.Currency)
		}
		if s.Picked = append(s.Picked, p); p.Why != "" {
			continue
		}
		s.Able++
		s.Required = s.Required || it.Route != nil && it.Route.ReasonToDeny
		for _, a := range it.Approvers {
			if a.Agent != who.Agent {
				may[a.Agent]++
			}
		}
	}
	for _, a := range slices.Sorted(maps.Keys(may)) {
		s.Others = append(s.Others, standIn{a, may[a]})
	}
	slices.SortStableFunc(s.Others, func(a, b standIn) int { return cmp.Compare(b.May, a.May) })
	return s, nil
}

// cannot is why one of the items is left out; "" if it is not.
func (s *several) cannot(it *api.EscalationItem) string {
	you := it.You
	switch {
	case it.Status != "open":
		return "it is decided: " + it.Status
	case you != nil && you.Reads:
		return "you can only read it"
	case s.Deny && you != nil && !you.Decide:
		return cmp.Or(you.Why, "you may not decide it")
	}
	return ""
}
