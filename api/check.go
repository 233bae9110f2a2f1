package api

import (
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api/fit"
	"github.com/parley-asp/parley/delegation"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// The values of ListChecks.Status.
const (
	OpenChecks = "open"
	OverChecks = "over"
	AllChecks  = "all"
)

// ListChecks is the request of check.list.
type ListChecks struct {
	Status string `json:"status,omitzero"` // open (default): the delegation stands; over; or all
	Limit  int    `json:"limit,omitzero"`  // 1–1000, by default 100
	Cursor string `json:"cursor,omitzero"` // next of the page before
}

// Checks is a page of check.list, newest session first.
type Checks struct {
	Checks []Check `json:"checks"`
	Next   string  `json:"next,omitzero"` // cursor of the next page; absent on the last
}

// A Check is a delegation as its target sees it: what it is asked to check, and
// how that stands. It is bounded in size: long texts are cut.
type Check struct {
	GrantView
	Session      performatives.SessionID      `json:"sessionId"`
	State        session.Phase                `json:"state"`
	Mode         string                       `json:"mode"`
	Purpose      string                       `json:"purpose,omitzero"`
	Participants []performatives.Agent        `json:"participants"` // at most 20
	Asked        string                       `json:"askedAt"`
	Awaiting     bool                         `json:"awaitingYou"`
	Allows       []performatives.Performative `json:"allows,omitzero"`      // what may be sent now
	MaxDepth     int                          `json:"maxDepth"`             // of the delegates that it may name; 0 for none
	Result       uint64                       `json:"result,omitzero"`      // sequence number of the newest INFORM result
	AlsoOffered  []delegation.ID              `json:"alsoOffered,omitzero"` // by other sides, at most 20: one may be accepted
	Truncated    bool                         `json:"truncated,omitzero"`   // long texts are cut

	// Of check.get only, while the caller may read the session:
	Closing  string           `json:"reason,omitzero"`   // why it is over
	Proposal *OfferView       `json:"proposal,omitzero"` // at stake, without its terms
	Previous *OfferView       `json:"previous,omitzero"` // the offer that it countered
	Changes  []Change         `json:"changes,omitzero"`  // the terms at stake, against Previous where there is one
	Labels   map[string]Label `json:"labels,omitzero"`   // what the terms schema calls a path, such as terms.price
}

// The bounds of a check.
const (
	maxCheckParties = 20
	maxAlsoOffered  = 20
	maxChanges      = 200
	maxTextBytes    = 8 << 10 // of the scope or the purpose in check.get
	maxChangeBytes  = 2 << 10 // of a change
	maxLabelBytes   = 1 << 10 // of a label
)

// Open reports whether the delegation stands and the session is not over.
func (c *Check) Open() bool {
	return !c.State.Over() && (c.Status == delegation.Offered.String() || c.Status == delegation.Active.String())
}

// ViewCheck shows what was delegated to a party at a time of the broker's clock;
// ok is false for one to whom nothing was.
func ViewCheck(s *session.State, you performatives.Agent, at time.Time) (c Check, ok bool) {
	if s.Phase.Over() && at.After(s.Updated) {
		at = s.Updated
	}
	party, _ := s.Party(you)
	grants := s.GrantsOf(party, at)
	g := grants[0]
	if g.ID == "" || !s.HasPart(you) {
		return c, false
	}
	c = Check{GrantView: viewGrant(s, g, at), Session: s.ID, State: s.Phase, Mode: s.Mode.Name, Result: g.Result, Purpose: s.Agreed.Purpose, Participants: s.Participants()}
	if len(c.Participants) > maxCheckParties {
		c.Participants, c.Truncated = c.Participants[:maxCheckParties], true
	}
	if asked, known := s.Seen(performatives.MessageID(g.ID)); known {
		c.Asked = Timestamp(asked.AcceptedAt)
	}
	for _, also := range grants[1:min(len(grants), maxAlsoOffered+1)] {
		c.AlsoOffered = append(c.AlsoOffered, also.ID)
	}
	c.fitted(fit.To(&c.Scope, maxTextBytes))
	c.fitted(fit.To(&c.Purpose, maxTextBytes))
	if !c.Open() {
		return c, true
	}
	if s.Phase != session.Escalated {
		if g.Status == delegation.Active || len(grants) == 1 {
			c.Allows = g.Authority.Acts()
		}
		c.Awaiting = g.Status == delegation.Offered || g.Result == 0 || s.Awaits(performatives.Member{Agent: you}, at)
	}
	if g.Authority.Allows(performatives.Delegate) {
		c.MaxDepth = g.MaxDepth - g.Depth
	}
	return c, true
}

// Brief is the check as a list has it.
func (c Check) Brief() Check {
	fit.To(&c, entryBytes)
	return c
}

// AddOffer adds the offer at stake and how the session ended: for a caller who
// may read the session. labels returns those of a terms schema.
func (c *Check) AddOffer(s *session.State, at time.Time, labels func(schema string) map[string]Label) {
	if s.Phase.Over() && at.After(s.Updated) {
		at = s.Updated
	}
	c.Closing = s.Closing
	offer := c.atStake(s, at)
	if offer == nil {
		return
	}
	view := viewOffer(s, offer, at)
	var before jsontext.Value
	if previous, ok := s.Offer(offer.Supersedes); ok && previous.IsProposal() {
		v := viewOffer(s, previous, at)
		before = v.Terms
		c.Previous = c.bounded(v)
	}
	known := labels(view.Schema)
	c.Changes = c.fewer(Compare(view.Terms, before, known))
	for _, change := range c.Changes {
		if l, ok := known[change.Path]; ok {
			if c.Labels == nil {
				c.Labels = map[string]Label{}
			}
			c.fitted(fit.To(&l, maxLabelBytes))
			c.Labels[change.Path] = l
		}
	}
	c.Proposal = c.bounded(view)
}

// atStake is the newest of the offer that the authority is limited to and what counters it,
// else the newest open one of another side, else the newest.
func (c *Check) atStake(s *session.State, at time.Time) (newest *session.Offer) {
	open, reached := false, map[string]bool{c.Reference: true}
	for _, o := range s.Offers() {
		switch {
		case !o.IsProposal():
		case c.Reference != "":
			if reached[o.ID] || reached[o.Supersedes] {
				newest, reached[o.ID] = o, true
			}
		case o.Side != c.OnBehalfOf && o.StatusAt(s.Clock(at)) == session.Open:
			newest, open = o, true
		case !open:
			newest = o
		}
	}
	return newest
}

// bounded is an offer without its terms.
func (c *Check) bounded(o OfferView) *OfferView {
	o.Terms = nil
	c.fitted(fit.To(&o, entryBytes))
	return &o
}

// fitted notes that something was cut.
func (c *Check) fitted(cut bool) { c.Truncated = c.Truncated || cut }

// fewer keeps so many changes, those that differ first, and cuts what is long in them.
func (c *Check) fewer(all []Change) []Change {
	slices.SortStableFunc(all, func(a, b Change) int {
		if (a.Kind == Same) == (b.Kind == Same) {
			return 0
		}
		if a.Kind == Same {
			return 1
		}
		return -1
	})
	if len(all) > maxChanges {
		all, c.Truncated = all[:maxChanges], true
	}
	for n := range all {
		c.fitted(fit.To(&all[n], maxChangeBytes))
	}
	return all
}

// Asked is what a human is told of a delegation, on asp.people.<org>.<delegationId>.
type Asked struct {
	Kind       string                  `json:"kind"` // asked
	At         time.Time               `json:"at"`
	Human      performatives.Agent     `json:"human"`
	Session    performatives.SessionID `json:"sessionId"`
	Delegation delegation.ID           `json:"delegationId"`
	From       performatives.Agent     `json:"from"`
	OnBehalfOf performatives.Agent     `json:"onBehalfOf"`
	Authority  string                  `json:"authority"`
	Scope      string                  `json:"scope"` // cut
	ValidUntil string                  `json:"validUntil,omitzero"`
}

// AskedOf is that of a delegation at a time of the broker's clock.
func AskedOf(s *session.State, g delegation.Grant, at time.Time) Asked {
	v := viewGrant(s, g, at)
	asked := Asked{
		Kind: "asked", At: at.UTC(), Human: g.To, Session: s.ID, Delegation: g.ID, From: g.From, OnBehalfOf: g.Principal,
		Authority: v.Authority, Scope: v.Scope, ValidUntil: v.ValidUntil,
	}
	fit.To(&asked, MaxRowBytes)
	return asked
}
