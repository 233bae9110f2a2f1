package api

import (
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api/fit"
	"github.com/parley-asp/parley/delegation"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/session/agreement"
	"github.com/parley-asp/parley/session/modes"
)

// GetSnapshot is the request of session.snapshot.
type GetSnapshot struct {
	Session performatives.SessionID `json:"sessionId"`
	Since   *uint64                 `json:"since,omitzero"` // the entries from this sequence number on are its news; none without it
}

// A Snapshot is one view of a deal, for one caller: what is on the table, what waits for whom,
// and what the caller may do now (GATEWAYS.md G9).
type Snapshot struct {
	Session     performatives.SessionID `json:"sessionId"`
	Purpose     string                  `json:"purpose,omitzero"`
	Mode        string                  `json:"mode"`
	State       session.Phase           `json:"state"`
	Head        SnapshotHead            `json:"head"`
	You         SnapshotCaller          `json:"you"`
	Others      []Other                 `json:"others"`
	Offers      []SnapshotOffer         `json:"offers"`               // oldest first
	Agreed      *SnapshotOffer          `json:"agreed,omitzero"`      // the offer that was accepted last
	Open        []OpenItem              `json:"open"`                 // what waits for an answer
	Obligations []ObligationView        `json:"obligations,omitzero"` // what is carried out: what waits for an answer and what is due first before the rest
	Disputes    []DisputeView           `json:"disputes,omitzero"`    // newest first
	Leaving     []performatives.Agent   `json:"leaving,omitzero"`     // parties who said CLOSE while something is due
	Moves       []Move                  `json:"moves"`                // exactly what the caller may send now
	Waiting     *Waiting                `json:"waiting,omitzero"`
	Publish     jsontext.Value          `json:"publish,omitzero"` // terms of an agreement that the public log is to show, to which whoever accepts consents
	Outcome     string                  `json:"outcome,omitzero"` // why the session is over
	Private     jsontext.Value          `json:"private,omitzero"` // what the caller's side alone may know
	News        []jsontext.Value        `json:"news,omitzero"`    // entries, as session.messages has them
	Cursor      uint64                  `json:"cursor"`           // since of the next request

	// Sealed are what opens sealed members of the news, as session.messages has them.
	Sealed map[performatives.MessageID]performatives.SealedParts `json:"sealed,omitzero"`

	Truncated bool `json:"truncated,omitzero"` // something is cut, or left out
	Omitted   int  `json:"omitted,omitzero"`   // offers left out; session.get has them by pages

	Completes []string `json:"-"` // the offers of which a CLOSE that says no outcome makes agreements, for the sentences
}

// A SnapshotHead is the end of the transcript: what ifHead and If-Match name.
type SnapshotHead struct {
	N    uint64             `json:"n"` // sequence number of the newest entry
	Hash performatives.Hash `json:"hash"`
}

// A SnapshotCaller is the caller in the session.
type SnapshotCaller struct {
	Agent      performatives.Agent `json:"agentId,omitzero"`
	Role       string              `json:"role"` // inviter, invitee, delegate, standby, approver or arbiter; observer of who only reads
	Authority  string              `json:"authority,omitzero"`
	OnBehalfOf performatives.Agent `json:"onBehalfOf,omitzero"`
	Bounds     []AuthorityView     `json:"bounds,omitzero"` // what rulings let the caller's side agree to
}

// An Other is another party.
type Other struct {
	Agent        performatives.Agent        `json:"agentId"`
	Name         string                     `json:"name,omitzero"` // as its card has it
	Organisation performatives.Organisation `json:"organisation"`
	Role         string                     `json:"role"`
	Verified     bool                       `json:"verified"` // its domain vouches for its key
	Trust        *float64                   `json:"trust,omitzero"`
}

// A SnapshotOffer is an offer with what it changes in the one before in its thread.
type SnapshotOffer struct {
	ID      string              `json:"id"`
	By      performatives.Agent `json:"by"`
	Mine    bool                `json:"mine"`           // of the caller's side; what is not was written by the other
	About   string              `json:"about,omitzero"` // the subject
	Terms   jsontext.Value      `json:"terms,omitzero"`
	Text    string              `json:"text"` // the offer as a sentence, with its terms
	Changes []TermChange        `json:"changes,omitzero"`
	Status  string              `json:"status"`
	Expires string              `json:"expires,omitzero"`
	Binding bool                `json:"binding"` // an ACCEPT makes an agreement

	Truncated bool `json:"truncated,omitzero"` // the terms are cut; session.get has them in its part proposals
}

// A TermChange is what an offer changes.
type TermChange struct {
	Path string         `json:"path"`
	From jsontext.Value `json:"from,omitzero"` // absent: it was not there
	To   jsontext.Value `json:"to,omitzero"`   // absent: it is not there any more
}

// An OpenItem waits for an answer.
type OpenItem struct {
	Kind string                `json:"kind"` // invitation, offer, question, commitment, delegation, check, escalation, obligation or dispute
	ID   string                `json:"id"`
	By   performatives.Agent   `json:"by"`
	For  []performatives.Agent `json:"for"`
	Due  string                `json:"due,omitzero"`
	Text string                `json:"text"`
	Body jsontext.Value        `json:"body,omitzero"` // of an invitation, a commitment or an amendment, as it was sent: what an ACCEPT agrees to

	Truncated bool `json:"truncated,omitzero"` // the body is cut; session.messages has it
}

// Waiting says for whom the session waits.
type Waiting struct {
	For      []performatives.Agent `json:"for"`
	Since    string                `json:"since"`
	Yours    bool                  `json:"yours"`             // for the caller's side, and the caller may answer
	Deadline string                `json:"deadline,omitzero"` // when the session ends if nobody answers
}

// Bounds of a snapshot.
const (
	mostOffers    = 20
	mostOthers    = 50
	mostOpen      = 50
	maxTermsBytes = 16 << 10
	maxOpenBytes  = 64 << 10 // of all bodies of what is open
)

// ViewSnapshot is the snapshot of a session for a caller, without sentences (package render) and
// news: with the moves of the caller, and the cards of the others.
func ViewSnapshot(s *session.State, c performatives.Member, at time.Time, moves []session.Move, card func(performatives.Agent) (Card, bool)) Snapshot {
	v := Snapshot{
		Session: s.ID, Purpose: s.Agreed.Purpose, Mode: s.Mode.Name, State: s.Phase, Head: SnapshotHead{s.Next - 1, s.Head},
		Others: []Other{}, Offers: []SnapshotOffer{}, Open: []OpenItem{}, Moves: []Move{}, Cursor: s.Next, Publish: agreement.AskedOf(s),
	}
	if s.Phase.Over() {
		v.Outcome = s.Closing
		if at.After(s.Updated) {
			at = s.Updated
		}
	}
	side := v.addParties(s, c, at, card)
	v.addOffers(s, side, at)
	v.addOpen(s, side, at)
	v.Waiting, v.Completes = waiting(s, c, at), completes(s)
	p, _ := s.Party(c.Agent)
	for _, m := range moves {
		v.Moves = append(v.Moves, viewMove(m).madeFor(p))
	}
	return v
}

// ViewOffered is what somebody may see of a session before it accepts a delegation there: whoever
// delegates to it, and of its moves those that name nothing else.
func ViewOffered(s *session.State, c Caller, at time.Time, moves []session.Move) Snapshot {
	v := Snapshot{
		Session: s.ID, Mode: s.Mode.Name, State: s.Phase, Head: SnapshotHead{s.Next - 1, s.Head}, You: SnapshotCaller{Agent: c.Agent, Role: session.Delegate.String()},
		Others: []Other{}, Offers: []SnapshotOffer{}, Open: []OpenItem{}, Moves: []Move{}, Cursor: s.Next,
	}
	p, _ := s.Party(c.Agent)
	known := map[string]bool{"": true} // what a move may refer to, and whom it may name
	for _, g := range s.GrantsOf(p, at) {
		if g.Status == delegation.Offered {
			v.Open = append(v.Open, OpenItem{Kind: "delegation", ID: string(g.ID), By: g.From, For: []performatives.Agent{g.To}})
			known[string(g.ID)], known[string(g.From)] = true, true
		}
	}
	for _, m := range moves {
		if known[m.Reference] && known[string(m.To)] {
			v.Moves = append(v.Moves, viewMove(m))
		}
	}
	if turn, waits := s.TurnOf(c.Agent, at); waits {
		v.Waiting = &Waiting{For: []performatives.Agent{c.Agent}, Since: Timestamp(s.Wall(turn.Since, at)), Yours: true}
	}
	return v
}

// addParties says who the caller and the others are, and returns the caller's side.
func (v *Snapshot) addParties(s *session.State, c performatives.Member, at time.Time, card func(performatives.Agent) (Card, bool)) performatives.Agent {
	v.You = SnapshotCaller{Agent: c.Agent, Role: "observer"}
	side := c.Agent
	if p, has := s.Party(c.Agent); has && c.Agent != "" {
		mine := viewParty(s, p, at)
		v.You.Role, v.You.Authority, v.You.OnBehalfOf = mine.Role, mine.Authority, mine.OnBehalfOf
		side = s.SideOf(c.Agent, at)
		for bound, _ := s.Bound(side); bound != nil; bound = bound.Else {
			view := viewBound(side, bound)
			if bound.Sealed && c.Agent.Organisation() != side.Organisation() { // a delegate of another organisation
				view = view.closed()
			}
			v.You.Bounds = append(v.You.Bounds, view)
		}
	}
	for _, a := range s.Participants() {
		p, _ := s.Party(a)
		switch {
		case a == c.Agent:
			continue
		case len(v.Others) == mostOthers:
			v.Truncated = true
			continue
		}
		o := Other{Agent: a, Organisation: a.Organisation(), Role: p.Role.String(), Trust: p.TrustScore}
		if found, known := card(a); known {
			o.Name, o.Verified, o.Trust = found.Name, found.DomainVerified, found.Registry.TrustScore
		}
		v.Others = append(v.Others, o)
	}
	return side
}

// addOffers lists the newest offers, each with what it changes.
func (v *Snapshot) addOffers(s *session.State, side performatives.Agent, at time.Time) {
	var proposals []*session.Offer
	for _, o := range s.Offers() {
		if o.IsProposal() {
			proposals = append(proposals, o)
		}
	}
	if v.Omitted = max(0, len(proposals)-mostOffers); v.Omitted > 0 {
		v.Truncated = true
	}
	for i, o := range proposals[v.Omitted:] {
		offer := snapshotOffer(s, o, before(s, proposals[:v.Omitted+i], o), side, at)
		v.Truncated = v.Truncated || offer.Truncated
		v.Offers = append(v.Offers, offer)
		if o.Status == session.Accepted {
			v.Agreed = &offer
		}
	}
}

// before is the offer that another one replaces, or the newest before it with its type and subject.
func before(s *session.State, earlier []*session.Offer, o *session.Offer) *session.Offer {
	if o.Supersedes != "" {
		if countered, ok := s.Offer(o.Supersedes); ok && countered.IsProposal() {
			return countered
		}
	}
	for _, e := range slices.Backward(earlier) {
		if e.Type == o.Type && e.Subject == o.Subject {
			return e
		}
	}
	return nil
}

func snapshotOffer(s *session.State, o, was *session.Offer, side performatives.Agent, at time.Time) SnapshotOffer {
	v := SnapshotOffer{
		ID: o.ID, By: o.Side, Mine: o.Side == side, About: o.Subject, Terms: o.Terms, Status: o.StatusAt(s.Clock(at)).String(),
		Binding: s.AcceptanceBinds() && !s.Mode.Commits, Truncated: o.Compact,
	}
	if !o.Expires.IsZero() {
		v.Expires = Timestamp(s.Wall(o.Expires, at))
	}
	if was != nil && !was.Compact && !o.Compact {
		for _, c := range Compare(o.Terms, was.Terms, nil) {
			if c.Kind != Same {
				v.Changes = append(v.Changes, TermChange{c.Path, c.Before, c.After})
			}
		}
	}
	fit.To(&v, maxTermsBytes+len(v.ID)+len(v.By)+fit.TextSize(v.About)+1<<10)
	return v
}

// addOpen lists what waits for an answer.
func (v *Snapshot) addOpen(s *session.State, side performatives.Agent, at time.Time) {
	add := func(item OpenItem) {
		if len(v.Open) == mostOpen {
			v.Truncated = true
			return
		}
		v.Open = append(v.Open, item)
	}
	now, carried, left := s.Clock(at), v.addExecution(s, at), maxOpenBytes
	if s.Phase.Over() {
		return
	}
	awaited := awaitedIn(s, at)
	for _, o := range s.Offers() {
		if o.StatusAt(now) != session.Open {
			continue
		}
		item := OpenItem{Kind: "invitation", ID: o.ID, By: o.Side, For: awaited(o)}
		switch {
		case o.IsProposal(), o.IsAmendment():
			item.Kind = "offer"
		case o.IsCommitment():
			item.Kind = "commitment"
		}
		if !o.IsProposal() { // which is among the offers
			item.Body = o.Body
			if most := min(left, maxTermsBytes); len(o.Body) > most {
				item.Body, item.Truncated, v.Truncated = fit.JSON(o.Body, most), true, true
			}
			left -= min(left, len(item.Body))
		}
		if !o.Expires.IsZero() {
			item.Due = Timestamp(s.Wall(o.Expires, at))
		}
		add(item)
	}
	for _, q := range s.OpenQuestions() {
		if o, ok := s.Offer(q.Offer); ok {
			add(OpenItem{Kind: "question", ID: q.ID, By: q.By, For: []performatives.Agent{o.Side}})
		}
	}
	for _, g := range s.Grants() {
		item := OpenItem{Kind: "delegation", ID: string(g.ID), By: g.From, For: []performatives.Agent{g.To}}
		switch status := delegation.StatusAt(g, now, s.Grant); {
		case status == delegation.Offered:
		case status == delegation.Active && g.Result == 0 && g.Authority != delegation.Full:
			item.Kind = "check" // that waits for its result
		default:
			continue
		}
		if !g.Until.IsZero() {
			item.Due = Timestamp(s.Wall(g.Until, at))
		}
		add(item)
	}
	for _, item := range carried {
		add(item)
	}
	if item := s.Escalation(); item != nil && s.Phase == session.Escalated {
		add(OpenItem{Kind: "escalation", ID: string(item.ID), By: item.By, For: []performatives.Agent{}, Due: Timestamp(item.Due)})
	}
}

// awaitedIn says for whom an open offer waits. In convergent/1, whose acceptances end no offer and are also the
// author's, that is for those whose turn it is.
func awaitedIn(s *session.State, at time.Time) func(*session.Offer) []performatives.Agent {
	if s.Mode.Name != modes.Convergent.Name {
		return s.Awaited
	}
	turns := map[string][]performatives.Agent{}
	for _, a := range s.Sides() {
		if turn, waits := s.TurnOf(a, at); waits {
			turns[turn.Reference] = append(turns[turn.Reference], a)
		}
	}
	return func(o *session.Offer) []performatives.Agent {
		if !o.IsProposal() {
			return s.Awaited(o)
		}
		return append([]performatives.Agent{}, turns[o.ID]...)
	}
}

// waiting says for whom a session waits; nil for nobody.
func waiting(s *session.State, you performatives.Member, at time.Time) *Waiting {
	if _, passed := s.Passed(at); passed || s.Phase.Over() {
		return nil // until the broker has entered what has passed, nobody may say anything
	}
	w := Waiting{For: []performatives.Agent{}, Yours: s.Awaits(you, at)}
	since := time.Time{}
	if item := s.Escalation(); item != nil && s.Phase == session.Escalated {
		if since = item.At; !s.Lapses(item.ID) {
			w.Deadline = Timestamp(item.Due)
		}
	} else {
		for _, a := range s.Participants() {
			if turn, waits := s.TurnOf(a, at); waits && turn.Side == a {
				w.For = append(w.For, a)
				if began := s.Wall(turn.Since, at); since.IsZero() || began.Before(since) {
					since = began
				}
			}
		}
		for _, d := range s.Deadlines(at) {
			if d.Ends {
				w.Deadline = Timestamp(d.At)
				break
			}
		}
	}
	if since.IsZero() {
		return nil
	}
	w.Since = Timestamp(since)
	return &w
}
