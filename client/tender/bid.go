package tender

import (
	"context"
	"math"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/client/negotiator"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// A Standing says how it stands with an agent.
type Standing string

// The standings.
const (
	Waiting  Standing = "waiting"  // it has to say something
	Offered  Standing = "offered"  // an offer of its own is open
	Agreed   Standing = "agreed"   // it has accepted an offer of ours
	Accepted Standing = "accepted" // we have accepted its offer, or it has ours, and made that the agreement
	Declined Standing = "declined" // it has rejected ours, and offers nothing
	Paused   Standing = "paused"   // a human decides
	Over     Standing = "over"     // the session has ended
)

// A Bid is how it stands with one agent of a tender.
type Bid struct {
	Number   int                     `json:"number"` // of the session, from 1
	Session  performatives.SessionID `json:"sessionId"`
	Agent    performatives.Agent     `json:"agentId"`
	State    session.Phase           `json:"state"`
	Standing Standing                `json:"standing"`
	Reason   string                  `json:"reason,omitzero"` // why the session is over
	Offer    *api.OfferView          `json:"offer,omitzero"`  // what it offers, or what was agreed
	Terms    map[string]any          `json:"-"`               // of the offer; nil if they cannot be compared
	Offers   int                     `json:"offers"`          // made so far, by both

	view api.SessionView
}

// Open reports whether the bid can be accepted.
func (b Bid) Open() bool { return b.Standing == Offered || b.Standing == Agreed }

// Bids reads how it stands with each agent.
func (t *Tender) Bids(ctx context.Context) ([]Bid, error) {
	var bids []Bid
	for i, a := range t.agents {
		view, err := t.c.View(ctx, t.session(i+1))
		if err != nil {
			return nil, err
		}
		if view.Omitted["proposals"] > 0 {
			view.Proposals = nil
			for offer, err := range t.c.Proposals(ctx, view.Session) {
				if err != nil {
					return nil, err
				}
				view.Proposals = append(view.Proposals, offer)
			}
		}
		bids = append(bids, t.bid(i+1, a, view))
	}
	return bids, nil
}

func (t *Tender) bid(n int, a performatives.Agent, view api.SessionView) Bid {
	b := Bid{Number: n, Session: view.Session, Agent: a, State: view.State, Reason: view.Closing, Offers: len(view.Proposals), view: view, Standing: Waiting}
	for i := range view.Proposals {
		offer := &view.Proposals[i]
		theirs := offer.From == a
		switch {
		case b.Standing == Accepted:
		case offer.Status == "accepted" && theirs:
			b.Standing, b.Offer = Accepted, offer
		case b.Standing == Agreed:
		case offer.Status == "accepted":
			b.Standing, b.Offer = Agreed, offer
		case offer.Status == "open" && theirs:
			b.Standing, b.Offer = Offered, offer
		case offer.Status == "rejected" && !theirs && b.Offer == nil:
			b.Standing = Declined
		case offer.Status == "open" && b.Offer == nil:
			b.Standing = Waiting
		}
	}
	switch {
	case view.State.Over() && (b.Standing == Accepted || b.Standing == Agreed) && view.Closing == performatives.Completed: // which binds
		b.Standing = Accepted
	case view.State.Over():
		b.Standing, b.Offer = Over, nil
	case view.State == session.Escalated:
		b.Standing, b.Offer = Paused, nil
	case view.State == session.Invited && view.Invitation.From == a: // it wants another session, which is no tender's
		b.Standing = Declined
	}
	if o := b.Offer; o != nil && !o.Truncated && (t.Request.Schema == "" || o.Schema == t.Request.Schema) && !negotiator.Another(&view, o, t.c.Agent()) && t.asked(&view, o) {
		if json.Unmarshal(o.Terms, &b.Terms) != nil {
			b.Terms = nil
		}
	}
	return b
}

// asked reports whether an offer is about what we offered, or would have.
func (t *Tender) asked(view *api.SessionView, o *api.OfferView) bool {
	offered := false
	for _, ours := range view.Proposals {
		if ours.From != t.c.Agent() {
			continue
		}
		if ours.Subject == o.Subject && ours.Type == o.Type {
			return true
		}
		offered = true
	}
	return !offered && (t.Request.Terms == nil || o.Subject == t.Request.Subject)
}

// A Rule says which bid is best: the one with the lowest or the highest number at a dotted
// path into the terms, or else the one that is worth most by the policy. A policy rules out what it would not agree to.
type Rule struct {
	Lowest, Highest string
	Policy          *negotiator.Policy
	Ours            map[string]any // terms that we offered, in whose currency the numbers have to be; if they name none, all in the same
}

// Value is what a bid is worth by the rule, more is better; false for one that cannot be
// compared, or that the policy rules out.
func (r Rule) Value(b Bid) (float64, bool) {
	switch {
	case b.Terms == nil, r.Policy != nil && b.Standing != Agreed && !r.Policy.Acceptable(b.Terms):
		return 0, false
	case r.Lowest != "":
		n, ok := Number(b.Terms, r.Lowest)
		return -n, ok
	case r.Highest != "":
		return Number(b.Terms, r.Highest)
	case r.Policy != nil:
		worth, _ := r.Policy.Utility(b.Terms)
		return worth, true
	}
	return 0, false
}

// Best is the best of the bids that can be accepted; of equals the one that was invited
// first. false for none, as where their currencies differ.
func (r Rule) Best(bids []Bid) (best Bid, found bool) {
	var most float64
	var among string
	ours, _ := r.currency(r.Ours)
	for _, b := range bids {
		value, ok := r.Value(b)
		currency, named := r.currency(b.Terms)
		if !ok || !named || !b.Open() || ours != "" && currency != ours {
			continue
		}
		switch {
		case found && currency != among:
			return Bid{}, false
		case !found || value > most:
			best, most, among, found = b, value, currency, true
		}
	}
	return best, found
}

// currency is that of the number that is compared: the nearest on the way to it, "" if there is none. One that is no text
// is not known. A policy alone knows its own.
func (r Rule) currency(terms map[string]any) (named string, known bool) {
	for path := r.Lowest + r.Highest; path != ""; {
		path = path[:max(0, strings.LastIndexByte(path, '.'))]
		holder := terms
		if path != "" {
			found, _, _ := performatives.Find(terms, path)
			holder, _ = found.(map[string]any)
		}
		if currency, is := holder["currency"]; is {
			named, known = currency.(string)
			return named, known
		}
	}
	return "", true
}

// Number is the number at a dotted path, which may be written as a string.
func Number(terms map[string]any, path string) (float64, bool) {
	value, _, _ := performatives.Find(terms, path)
	switch v := value.(type) {
	case float64:
		return v, true
	case string:
		n, err := strconv.ParseFloat(v, 64)
		return n, err == nil && !math.IsNaN(n) && !math.IsInf(n, 0)
	}
	return 0, false
}
