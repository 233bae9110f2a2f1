package session

import (
	"cmp"
	"time"

	"github.com/parley-asp/parley/delegation"
	"github.com/parley-asp/parley/performatives"
)

// An Event is something that may happen to a session: a message with its body
// decoded, at a time of the broker's clock. A deadline that ends a session
// comes as the broker's own CLOSE.
type Event struct {
	Message *performatives.Message
	At      time.Time
	// Known are the registered principals whom the message may bring in: its
	// sender, and whom it invites, delegates to, or asks for a decision. On
	// replay they are the entry's own joined.
	Known Known
	// Terms is what the named terms schema says of the offer.
	Terms TermsVerdict
	// Policy is pinned by the entry that opens the session.
	Policy performatives.Policy
	Broker performatives.Key
	// Route is pinned by an ESCALATE, and anew by a ruling where the item has
	// been transferred since; nil asks everybody who may decide.
	Route *performatives.Route
	// Replayed says that a broker has accepted the message. What follows from sealed parts
	// that are not here is taken as it accepted it.
	Replayed bool
	// Confirm are the routes by which organisations confirm what an ACCEPT agrees to.
	Confirm map[performatives.Organisation]*performatives.Route
	// Allowed lists the performatives of the sender's moves, which a refusal says; nil lists what
	// Step allows.
	Allowed func() []performatives.Performative
}

// ConfirmedBy adds the route by which its organisation confirms what an ACCEPT agrees to.
func (e *Event) ConfirmedBy(r *performatives.Route) {
	if e.Confirm == nil {
		e.Confirm = map[performatives.Organisation]*performatives.Route{}
	}
	e.Confirm[r.Organisation] = r
}

// A TermsVerdict is the outcome of validating an offer's terms against the
// terms schema that SchemaFor named.
type TermsVerdict struct {
	Unregistered bool
	Faults       []Fault
}

// A Repeat answers a message that was accepted before: not a refusal, but the
// first acceptance again.
type Repeat struct{ Seen Seen }

func (r *Repeat) Error() string { return "accepted before" }

// Step judges an event. It returns the session's next state, or the state as
// it was and a *Refusal or a *Repeat.
func Step(s State, e Event) (State, error) {
	t := newTurn(s, e)
	if e.Message.Sender.IsBroker() {
		if err := t.timePassed(); err != nil {
			return s, err
		}
		t.record()
		return t.State, nil
	}
	if err := t.judge(); err != nil {
		return s, err
	}
	t.happen()
	return t.State, nil
}

// judge makes the checks in the order of PROTOCOL.md §3: the first that fails is the answer.
func (t *Command) judge() error {
	for _, check := range [...]func(*Command) error{
		(*Command).repeated,
		(*Command).part,
		(*Command).fresh,
		(*Command).chained,
		(*Command).rulesInTime,
		(*Command).allowed,
		(*Command).authorised,
		(*Command).fitsMode,
		(*Command).refers,
		(*Command).keepsToOffer,
	} {
		if err := check(t); err != nil {
			return err
		}
	}
	return nil
}

// A Command is one act while it is being judged and carried out. Rules read it;
// effects change its State.
type Command struct {
	State
	Message *performatives.Message
	At      time.Time // the broker's clock

	Now  time.Time           // the session's clock
	From Party               // the sender
	Side performatives.Agent // the principal for whom the sender speaks
	Act  performatives.Performative
	Was  Phase // the session's phase before the act

	Grant *delegation.Grant // what a delegate's authority rests on; nil while that is ambiguous
	Offer *Offer            // what referenceId names, where that is an offer

	event      *Event
	about      *delegation.Grant // what referenceId names, where that is a delegation
	question   *Question         // … a clarification
	answerings []answering
	answersTo  string            // what an INFORM with answers says that it answers
	rerouted   bool              // the open escalation, since it was opened
	offering   *Offer            // what a PROPOSE, COUNTER or COMMIT offers
	opening    *Invitation       // what an invitation asks for
	granted    *delegation.Grant // what a DELEGATE grants
	phase      Phase             // where a mode carries the session; Idle is nowhere
	before     []performatives.Agent
	obligation *Obligation // that the act is about
	delivery   *Delivery   // what referenceId names, where that is a delivery
	remedy     string      // … the dispute that it offers to end
	ofDispute  *Dispute    // that the act is about
	draft      *draft      // nil of an act that is sent
}

func newTurn(s State, e Event) *Command {
	t := &Command{State: s, Was: s.Phase, event: &e, Message: e.Message, At: e.At, Act: e.Message.Performative, Now: s.clock(e.At)}
	t.Last = Effect{}
	return t
}

// Carry takes the session to a later state than the table does.
func (t *Command) Carry(p Phase, why string) { t.phase, t.Closing = p, why }

// repeated answers a message that was accepted before, also from who has no
// part any more: a delegate who declined may ask for the answer again.
func (t *Command) repeated() error {
	seen, again := t.Seen(t.Message.ID)
	if again && seen.Sender == t.Message.Sender && seen.Digest == t.Message.Digest() {
		return &Repeat{seen}
	}
	return nil
}

// part finds the sender's part in the session (PROTOCOL.md §3).
func (t *Command) part() error {
	sender := t.Message.Sender
	if t.Phase == Idle {
		return t.opens()
	}
	from, ok := t.partOf(sender)
	if !ok {
		return NoSuchSession()
	}
	t.Side = from.Agent
	if from.Role == Delegate {
		if t.Grant = t.actsUnder(from); t.Grant != nil {
			t.Side = t.Grant.Principal
		}
	}
	if from.Role == Standby {
		t.Side = from.StandsFor
	}
	if from.Role == Approver {
		t.Side = cmp.Or(t.answersFor(t.asKnown(from).Member), t.Side)
	}
	t.resolve()
	if t.joins() {
		from.Authority = t.Grant.Authority.String()
	}
	t.From = t.asKnown(from)
	t.reroute()
	t.unseal()
	return nil
}

// opens lets an invitation, and nothing else, into a session that is not there.
func (t *Command) opens() error {
	body, ok := t.Message.Body.(*performatives.ProposeBody)
	if !ok || body.Type != performatives.SessionInvitation {
		return NoSuchSession()
	}
	me, registered := t.event.Known.Get(t.Message.Sender)
	if !registered {
		return Refuse(UnknownAgent, "you are not registered")
	}
	t.From, t.Side = Party{Member: me, Role: Inviter, Answered: true}, me.Agent
	return nil
}

// hasPart finds whoever has a part: a delegate who declined has none.
func (s *State) hasPart(a performatives.Agent) (Party, bool) {
	p, ok := s.parties.Get(a)
	if grant, _ := s.grants.Get(p.Grant); p.Role == Delegate && grant.Status == delegation.Declined {
		return Party{}, false
	}
	return p, ok
}

// partOf is the part that the sender acts in. A human who may decide for an
// organisation that has escalated here has one, also if registered later. A
// delegation takes that right only while it is accepted; an act that only a
// delegate may send accepts it.
func (t *Command) partOf(sender performatives.Agent) (Party, bool) {
	p, ok := t.hasPart(sender)
	if m, _ := t.event.Known.Get(sender); t.Decides(m) && (!ok || t.idle(p)) {
		p, ok = Party{Member: m, Role: Approver, Grant: p.Grant, Waiting: p.Waiting}, true
	}
	offered := t.grantOf(p, t.Now)
	if p.Role == Approver && offered.Status == delegation.Offered && offered.ID != "" && t.Phase != Escalated && !approverActs[t.Act] {
		p.Role, p.Authority = Delegate, offered.Authority.String()
	}
	return p, ok
}

// fresh refuses the id of another message that this session has accepted.
func (t *Command) fresh() error {
	if _, used := t.Seen(t.Message.ID); !used {
		return nil
	}
	return Refuse(Duplicate, "the messageId was used before in this session, by another message; make a new UUIDv7")
}

// chained holds a sender's own link against the transcript's head.
func (t *Command) chained() error {
	link := t.Message.Link
	if link == nil || link.Sequence == t.Next && link.PreviousHash == t.Head {
		return nil
	}
	return Refuse(ChainConflict, "the transcript has moved on: the next entry is %d", t.Next).
		With(map[string]any{"head": t.ChainHead()})
}

// fitsMode applies the mode's rules.
func (t *Command) fitsMode() error {
	if t.Phase == Idle {
		return t.invites()
	}
	if err := t.conforms(); err != nil {
		return err
	}
	return judge(t.mode().Rules, t)
}

// refers judges what the act refers to: unknown, then own, then not open.
func (t *Command) refers() error {
	if judge := acts[t.Act].refers; judge != nil {
		return judge(t)
	}
	return nil
}

// happen carries out an act that passed all checks.
func (t *Command) happen() {
	transition := t.transition()
	if t.about != nil {
		t.before = t.delegates()
	}
	t.rejoin()
	if t.rerouted {
		t.pinRoute(t.event.Route)
	}
	t.actsFor()
	if happens := acts[t.Act].happens; happens != nil {
		happens(t)
	}
	t.meetBinding()
	t.Phase = transition.follow(&t.State)
	if after := t.mode().After; after != nil {
		after(t)
	}
	if t.phase != Idle {
		t.Phase = t.phase
	}
	t.execute()
	t.record()
}

// transition is where the act leads; about a delegation or a question it leads nowhere.
func (t *Command) transition() transition {
	if t.about != nil || t.question != nil && t.Act == performatives.Withdraw {
		return stay
	}
	return lifecycle[t.Phase][t.Act]
}

// record enters the act into the state and notes who is to receive it.
func (t *Command) record() {
	m := t.Message
	t.bind()
	t.keeps()
	// The latest waits for its hash, and is entered with the act after it.
	if before := t.latest; before.ID != "" {
		t.seen = t.seen.With(before.ID, &before)
	}
	t.latest = Seen{ID: m.ID, Sequence: t.Next, Sender: m.Sender, Digest: m.Digest(), Phase: t.Phase, AcceptedAt: t.At}
	t.Updated = t.At
	t.Last.sender, t.Last.now, t.Last.also = m.Sender, t.Now, t.before
	t.Last.simple = t.Before(2) || t.simple()
	switch {
	case t.Act == performatives.Delegate:
		t.Last.also = append(t.Last.also, t.granted.To)
	case t.about != nil && t.Act == performatives.Withdraw:
		t.Last.also = append(t.Last.also, t.about.To)
	}
	t.conclude()
	if t.takesTurn() {
		t.taken, t.turned = t.taken+1, t.Next
	}
	t.Next++
}

// Sealed notes the hash of the entry that the last Step made.
func (s State) Sealed(id performatives.MessageID, h performatives.Hash) State {
	if s.latest.ID == id {
		s.latest.Hash = h
	}
	s.Head = h
	return s
}
