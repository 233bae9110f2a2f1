package session

import (
	"crypto/sha256"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
)

var _ = does(performatives.Escalate, deed{refers: escalates, happens: escalated})

func escalates(t *Command) error {
	body := t.Message.Body.(*performatives.EscalateBody) //nolint:errcheck,forcetypeassert // its act says so
	if err := t.newID(string(t.Message.ID)); err != nil {
		return err
	}
	if err := t.opened(body.Sealed); err != nil {
		return err
	}
	if body.ReferenceID != "" && (t.Offer == nil || t.Offer.Kind == anInvitation) {
		return unknownReference(body.ReferenceID, "proposal or commitment")
	}
	return nil
}

// escalated pauses the session and gives the humans who may decide for the
// organisation of the principal concerned, and are to be asked, their part in it.
func escalated(t *Command) {
	body := t.Message.Body.(*performatives.EscalateBody) //nolint:errcheck,forcetypeassert // its act says so
	t.pause(t.newItem(escalation.ID(t.Message.ID), t.From.Agent, t.Side, body, t.AtStake(body, t.Side, t.At), t.event.Route))
}

// newItem asks the organisation of a side about an offer, nil for none.
func (t *Command) newItem(id escalation.ID, by, side performatives.Agent, body *performatives.EscalateBody, o *Offer, r *performatives.Route) *escalation.Item {
	item := &escalation.Item{
		ID: id, By: by, Principal: side, Org: side.Organisation(), Body: body, At: t.At, Sequence: t.Next,
		Due: t.At.Add(escalation.Urgency(body.Urgency).Within(t.Policy)), Sealed: t.Message.Digests(),
	}
	var paths []string
	if r != nil && len(r.Levels) > 0 {
		item.Route, item.Due, paths = r, r.Levels[len(r.Levels)-1].Due, r.Amounts
	}
	if o != nil {
		item.Offer, item.Terms = o.ID, t.pledgeOf(o).Terms
		item.Amount, item.Unreadable = t.amountAtStake(o, paths)
	}
	return item
}

// pause stops the session until all items have ended.
func (t *Command) pause(items ...*escalation.Item) {
	t.asked, t.resumeTo, t.pausedAt = items, t.Phase, t.At
	for _, item := range items {
		if item.Route != nil {
			t.pinRoute(item.Route)
		}
		t.items = t.items.With(item.ID, item)
		t.deciders = t.deciders.With(item.Org, true)
		for _, m := range t.event.Known.sorted() {
			p, has := t.hasPart(m.Agent)
			joins := !has || t.idle(p)
			if !item.Names(m) || !joins && (p.Role == Delegate || sameMember(p.Member, m)) {
				continue
			}
			if p.Member = m; joins {
				if !t.Before(5) {
					continue // the other sides learn of it when it acts
				}
				p.Role = Approver
			}
			t.enter(p)
		}
	}
}

// changeItem puts an item in the place of what it was.
func (t *Command) changeItem(item *escalation.Item) {
	t.items = t.items.With(item.ID, item)
	t.asked = slices.Clone(t.asked)
	for i, old := range t.asked {
		if old.ID == item.ID {
			t.asked[i] = item
		}
	}
}

// pinRoute pins who decides, on the broker's word. Humans who have not acted are digests.
func (t *Command) pinRoute(r *performatives.Route) {
	if !t.Before(5) {
		if r.Salt != "" {
			t.Last.Routes = append(t.Last.Routes, r)
		}
		r = r.Seal(func(a performatives.Agent) bool { _, came := t.parties.Get(a); return came })
	}
	t.Last.Joined = append(t.Last.Joined, performatives.Member{
		Agent: performatives.BrokerAgent(t.event.Broker), Key: t.event.Broker, Kind: performatives.KindBroker,
		Authority: performatives.AuthorityBroker, Route: r,
	})
}

// reroute takes the open escalation up its chain, where colleagues have
// transferred it before its time: it counts for the ruling, and is pinned with it.
func (t *Command) reroute() {
	_, rules := t.ruling()
	open := t.EscalationFor(t.Message)
	if r := t.event.Route; r != nil && open != nil && (rules || t.Act == performatives.Close) {
		item := *open
		item.Route, t.rerouted = r, true
		t.changeItem(&item)
	}
}

// unseal names in the open escalations the humans who have acted by now, whom routes had sealed.
func (t *Command) unseal() {
	for _, m := range t.event.Known.sorted() {
		if m.Salt == "" {
			continue
		}
		for _, item := range t.asked {
			if item.Route == nil {
				continue
			}
			if r := item.Route.Open(m.Agent, m.Salt); r != item.Route {
				opened := *item
				opened.Route = r
				t.changeItem(&opened)
			}
		}
	}
}

// saltOf opens a human's name in the route that asks it; "" where that is not sealed.
func (t *Command) saltOf(a performatives.Agent) string {
	for _, item := range t.asked {
		if item.Route != nil {
			if salt := item.Route.SaltOf(a); salt != "" {
				return salt
			}
		}
	}
	return ""
}

// AtStake is the offer that an escalation is about: the one that it names, else
// the newest open proposal of another side; nil for none.
func (s *State) AtStake(body *performatives.EscalateBody, side performatives.Agent, at time.Time) *Offer {
	if o, ok := s.Offer(body.ReferenceID); ok {
		return o
	}
	var newest *Offer
	if body.ReferenceID != "" {
		return newest
	}
	now := s.clock(at)
	for _, o := range s.live.All() {
		if o.IsProposal() && o.Side != side && o.StatusAt(now) == Open && (newest == nil || o.Sequence > newest.Sequence) {
			newest = o
		}
	}
	return newest
}

// AmountAtStake is the highest amount that an offer names at one of the paths,
// or, without paths, at the usual ones.
func (s *State) AmountAtStake(o *Offer, paths []string) *escalation.Amount {
	if o == nil {
		return nil
	}
	highest, _ := s.amountAtStake(o, paths)
	return highest
}

func (s *State) amountAtStake(o *Offer, paths []string) (highest *escalation.Amount, unreadable bool) {
	look := func(body jsontext.Value, paths []string) {
		found, unread := escalation.Highest(body, paths, s.Policy.Format >= 3)
		unreadable = unreadable || unread != ""
		if found != nil && (highest == nil || found.Value > highest.Value) {
			highest = found
		}
	}
	p := s.pledgeOf(o)
	for _, body := range p.Bodies {
		look(body, paths)
	}
	if p.Escrow != nil {
		look(p.Escrow, []string{"escrow"})
	}
	return highest, unreadable
}

// endItem ends an open item. With the last one the pause ends, and its time is banked.
func (t *Command) endItem(open *escalation.Item, by performatives.Agent, how string) {
	item := *open
	item.End = escalation.End{By: by, How: how, At: t.At, Sequence: t.Next}
	t.changeItem(&item)
	if t.Escalation() == nil {
		t.banked = t.bankedAt(t.At)
	}
}

// endItems ends all that are open.
func (t *Command) endItems(by performatives.Agent, how string) {
	for open := t.Escalation(); open != nil; open = t.Escalation() {
		t.endItem(open, by, how)
	}
}

// opened refuses sealed members whose parts are not here. On replay they may be somebody else's.
func (t *Command) opened(unopened performatives.Digests) error {
	if len(unopened) == 0 || t.event.Replayed {
		return nil
	}
	return RefuseSchema(Fault{Path: "/sealed", Rule: "sealed", Message: "what is sealed is not opened: send salt and value of each sealed member beside the envelope"})
}

// decisionDigest is what makes two rulings the same decision: their data, but
// for what names the showing.
func (t *Command) decisionDigest() [32]byte {
	if inform, ok := t.Message.Body.(*performatives.InformBody); ok {
		return sha256.Sum256(inform.Decision())
	}
	return [32]byte{}
}
