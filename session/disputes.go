package session

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
)

// A dispute is about an entry of the session. It reopens nothing: what it leaves is a decision on
// record (COMMITMENTS.md C2).

// DisputeOpen is the status of a dispute that nothing has ended.
const DisputeOpen = "open"

// A Dispute is one that was filed: an immutable value.
type Dispute struct {
	performatives.DisputeData
	Side       performatives.Agent // who filed it
	By         performatives.Agent // who sent it
	Commitment string              // that it is about; "" for none in particular
	Obligation string              // that it is about, by its id; "" for none in particular
	Sequence   uint64
	Entry      uint64 // that it is about
	Replies    []DisputeReply
	Status     string // open, upheld, dismissed, split, conceded, agreed or unresolved
	Decided    uint64 // the entry that ended it; 0 for none

	due    time.Time       // when the broker enters an event, on the session's clock
	people []escalation.ID // the items of the organisations whose humans are asked
}

// A DisputeReply is what another side said to a dispute.
type DisputeReply struct {
	ID       string // its messageId
	Side     performatives.Agent
	Position string
	Remedy   string
	Sequence uint64
}

// Disputes are the session's, in the order of the transcript.
func (s *State) Disputes() []*Dispute {
	all := make([]*Dispute, 0, len(s.filed))
	for _, id := range s.filed {
		d, _ := s.claims.Get(id)
		all = append(all, d)
	}
	return all
}

// Dispute finds one by its id.
func (s *State) Dispute(id string) (*Dispute, bool) { return s.claims.Get(id) }

// Disputing is how many are open.
func (s *State) Disputing() int { return s.disputing }

// Arbiter is who decides disputes; the zero Member for nobody.
func (s *State) Arbiter() performatives.Member { return s.arbiter }

// whoDecides names the arbiter, for a refusal.
func (s *State) whoDecides() string {
	if s.arbiter.Agent == "" {
		return "; the session has none"
	}
	return ", " + string(s.arbiter.Agent)
}

// waitsFor reports whether an open dispute waits for a side's reply, or for the arbiter's decision.
func (d *Dispute) waitsFor(s *State, side performatives.Agent) bool {
	if d.Status != DisputeOpen || d.Side == side || s.arbiter.Agent == "" && s.shown(d) { // the broker decides it at once
		return false
	}
	if side == s.arbiter.Agent {
		return true
	}
	replied := slices.ContainsFunc(d.Replies, func(r DisputeReply) bool { return r.Side == side })
	return !replied && s.disputeOf(d, side)
}

// RepliesTo are the parties for whose reply a dispute waits, and the arbiter.
func (s *State) RepliesTo(d *Dispute) []performatives.Agent {
	waits := []performatives.Agent{}
	for _, a := range s.order {
		if p, _ := s.parties.Get(a); (p.Role <= Invitee || p.Role == Arbiter) && d.waitsFor(s, a) {
			waits = append(waits, a)
		}
	}
	return waits
}

// disputeOf reports whether a side is a party of what a dispute is about.
func (s *State) disputeOf(d *Dispute, side performatives.Agent) bool {
	return slices.ContainsFunc(s.carried, func(c *Commitment) bool {
		return (d.Commitment == "" || c.ID == d.Commitment) && slices.Contains(c.Parties, side)
	})
}

// judgesDispute judges an INFORM dispute, reply or resolution; any other is no matter of disputes.
func (t *Command) judgesDispute() error {
	inform := t.inform()
	if d, ok := inform.Dispute(); ok {
		return t.files(d)
	}
	if r, ok := inform.Reply(); ok {
		return t.replies(r)
	}
	if d, ok := inform.Decides(); ok {
		open, err := t.openDispute(d.DisputeID)
		t.ofDispute = open
		return err
	}
	return nil
}

// openDispute finds a dispute that has not ended.
func (t *Command) openDispute(id string) (*Dispute, error) {
	d, ok := t.claims.Get(id)
	if !ok {
		return nil, unknown("data.disputeId", id, "dispute")
	}
	if d.Status != DisputeOpen {
		return nil, Refuse(ProposalNotOpen, "the dispute is over: %s", d.Status).
			With(map[string]any{"disputeId": id, "status": d.Status, "sequenceNumber": d.Decided})
	}
	return d, nil
}

func (t *Command) files(filed performatives.DisputeData) error {
	entry, found := t.entryOf(filed.Subject)
	if !found {
		return unknown("data.subject", string(filed.Subject), "entry")
	}
	d := &Dispute{DisputeData: filed, Side: t.Side, By: t.From.Agent, Sequence: t.Next, Entry: entry, Status: DisputeOpen}
	if key, ok := t.aboutObligation.Get(sequenceKey(entry)); ok {
		o, _ := t.obligations.Get(key)
		d.Commitment, d.Obligation = o.Commitment, o.ID
	} else if i := slices.IndexFunc(t.carried, func(c *Commitment) bool { return entry > 0 && slices.Contains(c.entries, entry) }); i >= 0 {
		d.Commitment = t.carried[i].ID
	}
	if !t.disputeOf(d, t.Side) {
		return Refuse(Unauthorized, "%s is no party of the commitment that the entry is about", t.Side)
	}
	if err := t.newID(d.DisputeID); err != nil {
		return err
	}
	if t.disputing >= MostDisputes || len(t.filed) >= 10*MostDisputes {
		return Refuse(RateLimited, "a session has at most %d open disputes, and %d in all", MostDisputes, 10*MostDisputes)
	}
	t.ofDispute = d
	return nil
}

// entryOf finds the entry of a hash.
func (s *State) entryOf(hash performatives.Hash) (sequence uint64, found bool) {
	if s.latest.Hash == hash {
		return s.latest.Sequence, true
	}
	for _, seen := range s.seen.All() {
		if seen.Hash == hash {
			return seen.Sequence, true
		}
	}
	return 0, false
}

func (t *Command) replies(r performatives.ReplyData) error {
	d, err := t.openDispute(r.DisputeID)
	if err != nil {
		return err
	}
	if d.Side == t.Side && (t.From.Role != Approver || r.Position != performatives.Concede) {
		return Refuse(OwnProposal, "it is your own dispute; the other side replies")
	}
	if !t.disputeOf(d, t.Side) {
		return Refuse(Unauthorized, "%s is no party of the commitment that the dispute is about", t.Side)
	}
	if len(d.Replies) >= MostDisputes {
		return Refuse(RateLimited, "a dispute has at most %d replies", MostDisputes)
	}
	t.ofDispute = d
	return nil
}

// answersRemedy judges an ACCEPT of what a reply offers to end a dispute.
func (t *Command) answersRemedy() error {
	d, err := t.openDispute(t.remedy)
	if err != nil {
		return err
	}
	if d.Side != t.Side {
		return Refuse(Unauthorized, "%s filed the dispute, and accepts what is offered to end it", d.Side)
	}
	t.ofDispute = d
	return nil
}

// disputed carries out an INFORM dispute, reply or resolution.
func (t *Command) disputed() {
	inform := t.inform()
	if _, ok := inform.Dispute(); ok {
		t.file()
		return
	}
	if r, ok := inform.Reply(); ok {
		d := *t.ofDispute
		d.Replies = append(slices.Clip(d.Replies), DisputeReply{ID: string(t.Message.ID), Side: t.Side, Position: r.Position, Remedy: r.Remedy, Sequence: t.Next})
		if r.Position == performatives.OfferOf {
			t.remedies = t.remedies.With(string(t.Message.ID), d.DisputeID)
		}
		if r.Position == performatives.Concede {
			how := performatives.Conceded
			if d.Side == t.Side { // its people give the claim up
				how = performatives.Dismissed
			}
			t.endDispute(d, how)
			return
		}
		t.setDispute(d)
		t.replied(&d, r.Position)
		return
	}
	if r, ok := inform.Decides(); ok {
		t.endDispute(*t.ofDispute, r.Decision)
	}
}

// file enters a dispute, and lets the arbiter in.
func (t *Command) file() {
	d := *t.ofDispute
	d.due = t.Now.Add(LongestDispute)
	switch {
	case t.arbiter.Agent != "":
	case t.shown(&d):
		d.due = t.Now
	default:
		t.asksPeople(&d)
	}
	t.filed = append(slices.Clip(t.filed), d.DisputeID)
	t.disputing++
	t.size += len(t.Message.RawBody)
	t.setDispute(d)
	t.contests(&d, 1)
	if _, in := t.parties.Get(t.arbiter.Agent); t.arbiter.Agent != "" && !in {
		t.enter(Party{Member: t.arbiter, Role: Arbiter})
	}
	t.rests()
}

// shown reports whether the transcript alone decides a dispute: a deadline passed, and nothing had
// been delivered.
func (s *State) shown(d *Dispute) bool {
	o, ok := s.Obligation(d.Commitment, d.Obligation)
	return ok && o.Party != d.Side && o.Breaches > 0 && (d.Ground == performatives.NonDelivery || d.Ground == performatives.LateDelivery)
}

// setDispute enters what has become of a dispute.
func (t *Command) setDispute(d Dispute) {
	key := "dispute " + d.DisputeID
	if old, again := t.claims.Get(d.DisputeID); again && !old.due.IsZero() {
		t.dues = t.dues.Delete(dueKey(old.due, key))
	}
	if !d.due.IsZero() {
		t.dues = t.dues.Set(dueKey(d.due, key), due{dispute: d.DisputeID})
	}
	t.claims = t.claims.With(d.DisputeID, &d)
	t.disputesChanged = t.Next
}

// endDispute notes how a dispute ended. What was delivered and rightly disputed is due again.
func (t *Command) endDispute(d Dispute, how string) {
	d.Status, d.Decided, d.due = how, t.Next, time.Time{}
	t.setDispute(d)
	t.endsAsking(&d, how)
	t.disputing--
	t.contests(&d, -1)
	if o, ok := t.Obligation(d.Commitment, d.Obligation); ok && o.Delivery != nil && o.Party != d.Side && (how == performatives.Upheld || how == performatives.Conceded) {
		t.dueAgain(*o)
	}
	t.rests()
}

// contests counts the open disputes of what a dispute is about: an obligation, or all of a commitment.
func (t *Command) contests(d *Dispute, n int) {
	for _, o := range t.Obligations() {
		if o.Commitment == d.Commitment && (d.Obligation == "" || o.ID == d.Obligation) {
			now := *o
			now.Disputes += n
			t.setObligation(now)
		}
	}
}

func sequenceKey(n uint64) string { return strconv.FormatUint(n, 10) }

// The parameters of every mode about what follows the agreement.
const (
	executionMember = "execution"
	arbiterMember   = "arbiter"
)

// readExecution takes execution and arbiter out of an invitation's policy; the rest is the mode's own.
func (t *Command) readExecution(policy jsontext.Value) (jsontext.Value, error) {
	t.opening.execution, t.opening.arbiter = false, ""
	given := map[string]jsontext.Value{}
	if t.Before(7) || len(policy) == 0 || json.Unmarshal(policy, &given) != nil {
		return policy, nil //nolint:nilerr // the mode refuses what is no object
	}
	raw, executes := given[executionMember]
	if k := raw.Kind(); executes && k != 't' && k != 'f' {
		return nil, RefuseSchema(Fault{Path: "/terms/policy/" + executionMember, Rule: "type", Message: "policy.execution must be true or false"})
	}
	t.opening.execution = executes && raw.Kind() == 't'
	named, arbitrated := given[arbiterMember]
	if arbitrated {
		if err := t.readArbiter(named); err != nil {
			return nil, err
		}
	}
	if !executes && !arbitrated {
		return policy, nil
	}
	delete(given, executionMember)
	delete(given, arbiterMember)
	return json.Marshal(given, json.Deterministic(true))
}

// readArbiter reads who decides disputes: somebody of no party's organisation.
func (t *Command) readArbiter(raw jsontext.Value) error {
	fault := func(rule, format string, args ...any) error {
		return RefuseSchema(Fault{Path: "/terms/policy/" + arbiterMember, Rule: rule, Message: fmt.Sprintf(format, args...)})
	}
	var uri string
	if raw.Kind() != '"' || json.Unmarshal(raw, &uri) != nil {
		return fault("type", "policy.arbiter must be the URI of an agent or a human")
	}
	arbiter, err := performatives.ParseAgent(uri)
	if err != nil {
		return fault("format", "policy.arbiter: %s", err)
	}
	for _, party := range append([]performatives.Agent{t.inviter}, t.opening.Invitees...) {
		if party.Organisation() == arbiter.Organisation() {
			return fault("independent", "%s belongs to the organisation of %s, and an arbiter to that of no party", arbiter, party)
		}
	}
	t.opening.arbiter = arbiter
	return nil
}

// arbiterKnown refuses an arbiter who is not registered.
func (t *Command) arbiterKnown() error {
	a := t.opening.arbiter
	if _, known := t.event.Known.Get(a); a != "" && a != t.arbiter.Agent && !known {
		return unknownAgent(a)
	}
	return nil
}

// pinArbiter pins the arbiter whom the invitation names, with its key. It has no part before a dispute
// is filed.
func (t *Command) pinArbiter() {
	if t.opening.arbiter == t.arbiter.Agent {
		return
	}
	t.arbiter, _ = t.event.Known.Get(t.opening.arbiter)
	if t.arbiter.Agent == "" {
		return
	}
	t.arbiter.Authority, t.arbiter.Standby = performatives.AuthorityArbiter, ""
	t.Last.Joined = append(t.Last.Joined, t.arbiter)
}
