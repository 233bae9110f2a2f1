package session

import (
	"bytes"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/delegation"
	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
)

// A deed is what an act does once it is allowed and authorised. Each act's own
// file enters its deed. An act without one, such as QUERY and OBSERVE, is
// recorded and changes nothing.
type deed struct {
	refers  func(*Command) error // judges what the act refers to; nil finds no fault
	happens func(*Command)       // nil changes nothing
	// answers lists the ids of the messages that the act answers; nil is none.
	answers func(*Command) []string
	// agrees is what the act offers or agrees to, and whether a ruling limits it;
	// nil agrees to nothing.
	agrees func(*Command, *escalation.Bound) (pledge escalation.Pledge, limited bool)
}

var acts [performatives.Acts]deed

func does(p performatives.Performative, d deed) performatives.Performative {
	acts[p] = d
	return p
}

// unknownReference refuses a referenceId that names nothing of the right kind.
func unknownReference(id, want string) error { return unknown("referenceId", id, want) }

// unknown refuses a member that refers to nothing of the right kind.
func unknown(member, id, want string) error {
	return Refuse(ProposalUnknown, "%s %q names no %s in this session", member, id, want).
		With(map[string]string{"referenceId": id})
}

// newID refuses an id that something in this session has already, whatever
// it is.
func (t *Command) newID(id string) error {
	if t.named(id) != nothing {
		return Refuse(Duplicate, "the id %q is used already in this session; make another", id).With(map[string]string{"id": id})
	}
	return nil
}

// answers judges an answer to t.Offer by the mode's rules; it must be known.
func (t *Command) answers(id string) error {
	if t.Offer == nil {
		return unknownReference(id, "proposal or commitment")
	}
	if t.Offer.Kind != aProposal {
		if err := judge([]Rule{NotOwn, Addressed, StillOpen, NothingPending}, t); err != nil || t.Offer.Kind != anAmendment {
			return err
		}
		return t.answersAmendment()
	}
	return judge(t.mode().Answering, t)
}

// offer judges a new offer: its id, whom it is for, its schema, the mode's rules.
func (t *Command) offer(o *Offer) error {
	t.offering = o
	if err := t.alive(o.Expires); err != nil && !t.Before(3) {
		return err
	}
	if o.Expires.IsZero() && t.Mode.Validity != nil {
		o.Expires = t.Now.Add(t.Mode.Validity(&t.State))
	}
	if err := t.newID(o.ID); err != nil {
		return err
	}
	if err := t.addresses(); err != nil {
		return err
	}
	if err := t.fitsSchema(); err != nil {
		return err
	}
	if err := t.fitsExecution(); err != nil {
		return err
	}
	return judge(t.Mode.Offering, t)
}

// alive refuses an offer that would be over before it begins.
func (t *Command) alive(until time.Time) error { return alive(until, t.Now) }

func alive(until, now time.Time) error {
	if until.IsZero() || now.Before(until) {
		return nil
	}
	return Refuse(StaleTimestamp, "validUntil has passed, so nobody could answer the offer")
}

// Fits refuses a body that no session would take at the time. Any other may be refused in a session.
func Fits(body performatives.Body, now time.Time) error {
	offering, is := body.(performatives.Offering)
	if !is {
		return nil
	}
	o := offering.Offer()
	if keepsBack(o.Terms) {
		return heldBack()
	}
	if o.ValidUntil == nil {
		return nil
	}
	return alive(*o.ValidUntil, now)
}

// addresses finds the side that is to answer. A delegate stands for its principal.
func (t *Command) addresses() error {
	to := t.Message.Recipient
	if to == "" {
		return nil
	}
	p, ok := t.hasPart(to)
	if !ok || p.Role >= Approver {
		return RefuseSchema(Fault{Path: "/recipient", Rule: "participant", Message: "the recipient has no part in the session, so could not answer"})
	}
	t.offering.To = p.Agent
	if p.Role == Delegate {
		all := t.GrantsOf(p, t.At)
		if len(all) > 1 && all[0].Status == delegation.Offered {
			return RefuseSchema(Fault{Path: "/recipient", Rule: "participant", Message: "several sides delegated to the recipient, who accepted none: it acts for nobody yet"})
		}
		t.offering.To = all[0].Principal
	}
	if t.offering.To == t.Side {
		return RefuseSchema(Fault{Path: "/recipient", Rule: "participant", Message: "an offer to one's own side has nobody to answer it"})
	}
	return nil
}

// SchemaFor is the terms schema that the terms of an offer have to fit: the one
// it names, else the one of the offer that it counters.
func (s *State) SchemaFor(m *performatives.Message) string {
	body, ok := m.Body.(performatives.Offering)
	if !ok {
		return ""
	}
	if name := body.Offer().Schema; name != "" || s.Phase == Invited {
		return name
	}
	if o, ok := s.Offer(m.Body.Refers()); ok {
		return o.Schema
	}
	return ""
}

// OffersInvitation reports whether the message's terms are an invitation's.
func (s *State) OffersInvitation(m *performatives.Message) bool {
	return isInvitation(m.Body) || s.Phase == Invited && m.Performative == performatives.Counter
}

func (t *Command) fitsSchema() error {
	if !t.Before(3) && keepsBack(t.offering.Terms) {
		return heldBack()
	}
	name, verdict := t.offering.Schema, t.event.Terms
	switch {
	case t.offering.Kind == anInvitation:
	case name == "":
		return nil
	case !contains(t.Agreed.Schemas, name):
		return Refuse(SchemaUnsupported, "the invitation did not agree on schema %q; it agreed on %s", name, orNone(t.Agreed.Schemas)).
			With(map[string]any{"schema": name, "agreed": t.Agreed.Schemas})
	case verdict.Unregistered:
		return Refuse(SchemaUnsupported, "schema %q was agreed but is not registered yet", name).With(map[string]any{"schema": name})
	}
	if len(verdict.Faults) > 0 {
		return RefuseSchema(verdict.Faults...)
	}
	return nil
}

// keepsBack reports whether terms have a member that is meant for one side alone. Of a
// hosted inviter's first invitation the broker holds it aside before anything is signed.
func keepsBack(terms jsontext.Value) bool {
	var members struct {
		Private jsontext.Value `json:"private"`
	}
	return json.Unmarshal(terms, &members) == nil && members.Private != nil
}

func heldBack() error {
	return RefuseSchema(Fault{Path: "/terms/private", Rule: "private", Message: "terms.private must not be there: all that an offer says is delivered to the other side"})
}

func contains(list []string, s string) bool {
	for _, l := range list {
		if l == s {
			return true
		}
	}
	return false
}

func orNone(list []string) string {
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, ", ")
}

// put enters an offer and takes note of its id, its terms and its expiry.
func (t *Command) put(o *Offer) {
	o.moved, o.movedAt = t.Next, t.Now
	o.Sequence, o.Body = t.Next, bytes.Clone(o.Body) // which shares the memory of the whole message
	t.size += sizeOf(o)
	t.live = t.live.With(o.ID, o)
	if o.Kind == aProposal {
		o.openAs = termsKey(o.Side, o.Terms) + expiryKey(o)
		t.openTerms, t.threads = t.openTerms.Set(o.openAs, o.ID), t.threads.Set(t.threadKey(o)+expiryKey(o), o.ID)
		if !o.Expires.IsZero() {
			t.expiries = t.expiries.Set(expiryKey(o), o.ID)
			if expiryKey(o) < t.compacted {
				t.Last.ended = append(t.Last.ended, o.ID)
			}
		}
	}
}

// change replaces an offer by what edit makes of its copy.
func (t *Command) change(id string, edit func(*Offer)) {
	old, ok := t.State.Offer(id)
	if !ok {
		return
	}
	o := *old
	edit(&o)
	if o.Status == Open {
		t.live = t.live.With(id, &o)
	} else {
		t.live, t.past = t.live.Without(id), t.past.With(id, &o)
		t.unawait(id)
		t.Last.ended = append(t.Last.ended, id)
		if o.Kind == aProposal {
			t.openTerms, t.threads = t.openTerms.Delete(o.openAs), t.threads.Delete(t.threadKey(&o)+expiryKey(&o))
		}
		if !o.Expires.IsZero() {
			t.expiries = t.expiries.Delete(expiryKey(&o))
		}
	}
	if t.invitation != nil && t.invitation.ID == id {
		t.invitation = &o
	} else if old.Status == Open && o.Status == Accepted {
		t.acceptedIn = t.Next
		if o.Kind == aProposal {
			t.notesAgreed(&o)
		}
	}
	if o.Kind == aCommitment && old.Status == Open && o.Status != Open {
		t.openCommitments--
		if o.Status == Accepted {
			t.acceptedCommitments++
			t.promised += o.promises
		}
	}
}

// SetStatus sets an offer's status.
func (t *Command) SetStatus(id string, status Status) {
	t.change(id, func(o *Offer) { o.Status = status })
}

// sameTerms is an offer of one side with the same terms that is open still.
// Expired ones stay on the list before it, and are not looked at.
func (t *Command) sameTerms(side performatives.Agent, terms jsontext.Value) (id string, found bool) {
	return t.withTerms(side, terms, func(string) bool { return true })
}

// withTerms is the first of them that is wanted.
func (t *Command) withTerms(side performatives.Agent, terms jsontext.Value, wanted func(id string) bool) (id string, found bool) {
	key := termsKey(side, terms)
	it := t.openTerms.Iterator()
	for it.Seek(key + expiryTime(t.Now.Add(1))); ; {
		k, id, ok := it.Next()
		switch {
		case !ok || !strings.HasPrefix(k, key):
			return "", false
		case wanted(id):
			return id, true
		}
	}
}

func termsKey(side performatives.Agent, terms jsontext.Value) string {
	return string(side) + " " + string(performatives.HashOf(terms)) + " "
}
