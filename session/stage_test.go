package session_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/schemas"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/session/modes"
	"github.com/parley-asp/parley/test/testkey"
)

// The principals. Delegates are of whatever organisation; alice and bob may decide
// for theirs, carol and the chief may not.
var principals = map[string]performatives.Agent{
	"alpha": "agent://acme.com/procurement/alpha",
	"beta":  "agent://widgets.co/sales/beta",
	"gamma": "agent://gadgets.io/gamma",
	"gary":  "agent://gadgets.io/gary",
	"delta": "agent://acme.com/legal/delta",
	"delia": "agent://widgets.co/pricing/delia",
	"dora":  "agent://widgets.co/pricing/dora",
	"dirk":  "agent://widgets.co/pricing/dirk",
	"mini":  "agent://sensors.io/mini", // of conformance level Minimal
	"alice": "human://acme.com/alice",
	"carol": "human://acme.com/carol",
	"chief": "human://acme.com/chief",
	"bob":   "human://widgets.co/bob",
	"ghost": "agent://nowhere.org/ghost", // never registered
}

var (
	curtain   = time.Date(2026, 3, 7, 14, 30, 0, 0, time.UTC)
	sessionID = performatives.SessionID("019478a3-0001-7def-8a12-000000000001")
	policy    = performatives.Policy{
		Format: performatives.Format, InvitationTimeout: 30_000, MaxDuration: 3_600_000,
		EscalationLow: 24 * 3_600_000, EscalationMedium: 4 * 3_600_000, EscalationHigh: 3_600_000, EscalationCritical: 15 * 60_000,
		MaxPaused: 7 * 24 * 3_600_000,
	}
	broker = brokerKey()
)

func brokerKey() performatives.Signer { return signerOf("the broker") }

// signerOf derives the same key from a name each time.
func signerOf(name string) performatives.Signer {
	signer, err := performatives.NewSigner(testkey.Of(name + " of these conversations"))
	if err != nil {
		panic(err)
	}
	return signer
}

// A stage is a session and what a broker has around it: a clock, a registry,
// terms schemas, and the transcript as it was delivered.
type stage struct {
	t        reporter
	now      time.Time
	state    session.State
	registry map[performatives.Agent]performatives.Member
	terms    map[string]session.TermsVerdict
	entries  [][]byte
	routes   [][]*performatives.Route // of each entry: those that it has sealed
	views    []string                 // after each entry
	messages int
	route    func(time.Time) *performatives.Route // of the next ESCALATE; nil for none
	policy   performatives.Policy
	level    int           // that colleagues have transferred the open escalation to
	compact  session.State // the same, compacted after each entry
}

// A reporter is what a stage needs of a test, also of one that rapid runs.
type reporter interface {
	Helper()
	Errorf(format string, args ...any)
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

func newStage(t reporter) *stage {
	s := &stage{
		t: t, now: curtain, policy: policy, state: session.New(sessionID, modes.All()), registry: map[performatives.Agent]performatives.Member{},
		terms: map[string]session.TermsVerdict{
			"service-agreement-v1": {},
			"strict-v1":            {Faults: []session.Fault{{Path: "/terms/price", Rule: "required", Message: "price is required"}}},
			"unregistered-v1":      {Unregistered: true},
		},
	}
	for name, agent := range principals {
		if name == "ghost" {
			continue
		}
		trust := 60.0
		member := performatives.Member{Agent: agent, Kind: performatives.KindPersonal, Authority: performatives.AuthorityPrincipal, TrustScore: &trust}
		if name == "mini" {
			member.Conformance = performatives.Minimal
		}
		if agent.IsHuman() {
			member.Kind = performatives.KindHuman
		}
		if name == "alice" || name == "bob" {
			member.Authority = performatives.AuthorityDecide
		}
		s.registry[agent] = member
	}
	return s
}

// anyBody is a body as its own text, so that a play can say what no typed body can.
type anyBody struct {
	performatives.Body // none: it is only sent

	act  performatives.Performative
	text jsontext.Value
}

func (b anyBody) Act() performatives.Performative { return b.act }
func (b anyBody) MarshalJSON() ([]byte, error)    { return b.text, nil }

// newID makes the next message id.
func (s *stage) newID() performatives.MessageID {
	s.messages++
	return performatives.MessageID(fmt.Sprintf("019478a3-7b2c-7def-8a12-%012x", s.messages))
}

// envelope writes a draft as its sender would send it.
func (s *stage) envelope(d performatives.Draft) []byte {
	s.t.Helper()
	if d.ID == "" {
		d.ID = s.newID()
	}
	if d.Session == "" {
		d.Session = sessionID
	}
	d.Timestamp = s.now
	envelope, err := d.Envelope(nil)
	if err != nil {
		s.t.Fatal(err)
	}
	return envelope
}

// submit does what a broker does with an envelope that it received, in the
// order of checks of PROTOCOL.md §3, and asserts that a refusal changes nothing.
func (s *stage) submit(envelope []byte) (performatives.MessageID, error) {
	s.t.Helper()
	m, err := performatives.Read(envelope)
	if err != nil {
		return "", err
	}
	if seen, again := s.state.Seen(m.ID); again && seen.Sender == m.Sender && seen.Digest == m.Digest() {
		return m.ID, &session.Repeat{Seen: seen}
	}
	if err := s.checkBody(m); err != nil {
		return m.ID, err
	}
	s.deadlines()
	before := s.view()
	event := s.event(m)
	moves := s.moves(m)
	next, err := session.Step(s.state, event)
	s.keepsTo(moves, m, err)
	s.fits(moves)
	s.shadow(event, next, err)
	if view := s.view(); view != before {
		s.t.Errorf("%s of %s changed the state that it was judged by:\n%s", m.Performative, m.Sender, cmp.Diff(before, view))
	}
	if err != nil {
		if after := viewOf(next, s.now); after != before {
			s.t.Errorf("the refused %s of %s changed something:\n%s", m.Performative, m.Sender, cmp.Diff(before, after))
		}
		if code := refusal(err); !isRepeat(err) && code.Status() == 0 {
			s.t.Errorf("%s of %s was answered with %v, which is no refusal of the protocol", m.Performative, m.Sender, err)
		}
		return m.ID, err
	}
	s.holds(m, next)
	s.enter(m, next)
	return m.ID, nil
}

// holds asserts what is true of every accepted act.
func (s *stage) holds(m *performatives.Message, next session.State) {
	s.t.Helper()
	if s.state.Phase.Over() {
		s.t.Errorf("%s moved the session on from %s", m.Performative, s.state.Phase)
	}
	if next.Next != s.state.Next+1 {
		s.t.Errorf("one act took the transcript from %d to %d", s.state.Next, next.Next)
	}
	s.goesOn(m, next)
	s.looksAgain(next)
	to := next.Audience()
	for i, a := range to {
		if _, has := next.Party(a); !has || a == m.Sender || slices.Contains(to[:i], a) {
			s.t.Errorf("%s of %s is delivered to %s: a non-participant, its sender, or twice", m.Performative, m.Sender, a)
		}
	}
}

// goesOn asserts that an act led where the table says, or, as its mode wants,
// further on, but never back (PROTOCOL.md §8).
func (s *stage) goesOn(m *performatives.Message, next session.State) {
	s.t.Helper()
	_, to := session.Leads(s.state.Phase, m.Performative)
	to = append(to, s.state.Phase) // of a delegation or a question
	if !slices.Contains(to, next.Phase) && next.Phase <= slices.Max(to) {
		s.t.Errorf("%s led from %s back to %s", m.Performative, s.state.Phase, next.Phase)
	}
}

// looksAgain asserts that a broker that looks again at the next deadline misses
// none and is not sent in circles.
func (s *stage) looksAgain(state session.State) {
	s.t.Helper()
	at := s.now
	for range 8 {
		next, some := state.NextDeadline(at)
		_, ended := state.Passed(at)
		switch {
		case !some && !state.Phase.Over():
			s.t.Errorf("no deadline after %s while %s", at, state.Phase)
			return
		case !some, ended:
			return
		case !next.After(at):
			s.t.Errorf("at %s the next deadline is %s", at, next)
			return
		}
		if d, missed := state.Passed(next.Add(-1)); missed {
			s.t.Errorf("%s has passed before the next deadline, %s", d.Code, next)
		}
		for _, d := range state.Deadlines(at) { // those of a paused session move on
			if state.Phase != session.Escalated && d.At.After(at) && d.At.Before(next) {
				s.t.Errorf("%s at %s comes before the next deadline, %s", d.Code, d.At, next)
			}
		}
		at = next
	}
}

func isRepeat(err error) bool {
	var repeat *session.Repeat
	return errors.As(err, &repeat)
}

func (s *stage) checkBody(m *performatives.Message) error {
	faults := schemas.Validate(m.Performative, m.RawBody)
	if len(faults) == 0 {
		if err := m.DecodeBody(); err != nil {
			s.t.Fatal(err)
		}
		if counter, ok := m.Body.(*performatives.CounterBody); ok && s.state.OffersInvitation(m) {
			faults = schemas.ValidateInvitation(counter.Terms)
		}
	}
	if len(faults) == 0 {
		return nil
	}
	if m.DecodeBody() == nil { // Step is total all the same
		session.Step(s.state, s.event(m)) //nolint:errcheck // it does not panic
	}
	ours := make([]session.Fault, len(faults))
	for i, f := range faults {
		ours[i] = session.Fault(f)
	}
	return session.RefuseSchema(ours...)
}

// event tells Step what a broker would know.
func (s *stage) event(m *performatives.Message) session.Event {
	e := session.Event{Message: m, At: s.now, Policy: s.policy, Broker: broker.Key(), Terms: s.terms[s.state.SchemaFor(m)]}
	know := func(a performatives.Agent) {
		if member, ok := s.registry[a]; ok {
			e.Known.Add(member)
		}
	}
	know(m.Sender)
	know(s.registry[m.Sender].Standby)
	for _, a := range session.Invites(m) {
		know(a)
		know(s.registry[a].Standby)
	}
	if body, ok := m.Body.(performatives.Naming); ok {
		for _, a := range body.Names() {
			know(a)
		}
	}
	if _, escalates := m.Body.(*performatives.EscalateBody); escalates {
		e.Route = s.asks()
		for a, member := range s.registry {
			if a.IsHuman() && member.Authority == performatives.AuthorityDecide && a.Organisation() == s.state.SideOf(m.Sender, s.now).Organisation() {
				know(a)
			}
		}
	}
	offer, confirms := s.state.ToConfirm(m)
	for a, member := range s.registry {
		if confirms && (escalation.MayDecide(member, offer.Side.Organisation()) || escalation.MayDecide(member, s.state.SideOf(m.Sender, s.now).Organisation())) {
			know(a)
		}
	}
	if confirms && s.route != nil {
		route := s.asks()
		route.Organisation = offer.Side.Organisation()
		e.ConfirmedBy(route)
	}
	if _, delivered := s.state.DeliveryTo(m); delivered && s.route != nil {
		route := s.asks()
		route.Organisation = s.state.SideOf(m.Sender, s.now).Organisation()
		e.ConfirmedBy(route)
		for a, member := range s.registry {
			if escalation.MayDecide(member, route.Organisation) {
				know(a)
			}
		}
	}
	if open := s.state.EscalationFor(m); open != nil { // what a ruling's refusal may advise
		for a, member := range s.registry {
			if escalation.MayDecide(member, open.Org) {
				know(a)
			}
		}
		if s.level > 0 && open.Route != nil {
			e.Route = escalation.Advance(*open.Route, s.level, s.now)
		}
	}
	return e
}

// asks is the route of an escalation, nil for none.
func (s *stage) asks() *performatives.Route {
	if s.route == nil {
		return nil
	}
	route := *s.route(s.now)
	if s.policy.Format >= 5 {
		route.Salt = fmt.Sprint("salt ", s.state.Next)
	}
	return &route
}

// enter delivers an accepted message and moves the session on.
func (s *stage) enter(m *performatives.Message, next session.State) {
	s.t.Helper()
	stamp := performatives.Stamp{
		Sequence: s.state.Next, PreviousHash: s.state.Head, OnBehalfOf: next.Last.OnBehalfOf, Joined: next.Last.Joined,
	}
	entry, stamp, err := m.Deliver(stamp, s.now, next.Phase.String(), broker)
	if err != nil {
		s.t.Fatal(err)
	}
	s.state, s.compact = next.Sealed(m.ID, stamp.Hash), s.compact.Sealed(m.ID, stamp.Hash)
	s.entries, s.routes = append(s.entries, entry), append(s.routes, next.Last.Routes)
	s.views = append(s.views, s.view())
}

// deadlines enters the broker's CLOSE where the clock has ended the session.
func (s *stage) deadlines() (ended string) {
	s.t.Helper()
	d, passed := s.state.Passed(s.now)
	if !passed {
		return ""
	}
	m, err := performatives.Read(s.envelope(performatives.Draft{Sender: performatives.BrokerAgent(broker.Key()), Body: d.Body("")}))
	if err == nil {
		err = m.DecodeBody()
	}
	if err != nil {
		s.t.Fatal(err)
	}
	event := session.Event{Message: m, At: s.now, Broker: broker.Key()}
	next, err := session.Step(s.state, event)
	if err != nil {
		s.t.Fatalf("the broker's own %s was refused: %v", m.Performative, err)
	}
	s.shadow(event, next, err)
	s.enter(m, next)
	if e := d.Enters; e != nil {
		return strings.TrimSpace(fmt.Sprintf("INFORM %s %s %s %s", e.Event, strings.Trim(e.CommitmentID+"/"+string(e.Obligation), "/"), e.DisputeID+e.EscalationID, e.Decision))
	}
	return "CLOSE " + d.Code
}

// replayed asserts that folding the transcript again yields the very states that were cached: as
// everybody reads it, and as the broker does, who has the names in its routes.
func (s *stage) replayed() {
	s.t.Helper()
	for _, names := range []bool{false, true} {
		s.replays(names)
	}
}

func (s *stage) replays(names bool) {
	s.t.Helper()
	state := session.New(sessionID, modes.All())
	for i, entry := range s.entries {
		m, stamp, hash, err := performatives.ReadDelivered(entry)
		if err != nil {
			s.t.Fatal(err)
		}
		if hash != stamp.Hash {
			s.t.Fatalf("entry %d: hash", i)
		}
		if names {
			stamp.Routes = s.routes[i]
		}
		if state, err = session.Replay(state, m, stamp); err != nil {
			s.t.Fatal(err)
		}
		if replayed := viewOf(state, state.Updated); replayed != s.views[i] {
			s.t.Fatalf("entry %d: cached State is not replayed State:\n%s", i, cmp.Diff(s.views[i], replayed))
		}
	}
}

func (s *stage) view() string { return viewOf(s.state, s.now) }

// viewOf is all that can be seen of a state.
func viewOf(state session.State, at time.Time) string {
	next, some := state.NextDeadline(at)
	text, err := json.Marshal(map[string]any{
		"view": api.ViewSession(&state, at), "audience": state.Audience(), "next": next.UTC(), "some": some, "last": state.Last.OnBehalfOf, "joined": state.Last.Joined,
	}, jsontext.WithIndent(" "), json.Deterministic(true))
	if err != nil {
		panic(err)
	}
	return string(text)
}

// refusal is the code that an act was answered with, "" when it was accepted.
func refusal(err error) session.Code {
	var r *session.Refusal
	if errors.As(err, &r) {
		return r.Code
	}
	return ""
}
