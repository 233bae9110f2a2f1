package session

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
)

// pledgeOf is what agreeing to an offer agrees to: of a commitment also its escrow,
// and the proposal that it carries out.
func (s *State) pledgeOf(o *Offer) escalation.Pledge {
	p := escalation.Pledge{Bodies: []jsontext.Value{o.Body}}
	if o.ID != "" {
		p.Offers = []string{o.ID}
	}
	of := o
	if o.Kind == aCommitment || o.Kind == anAmendment {
		p.Commitment, p.CommitmentTerms = o.Body, commitmentTerms(o)
	}
	if o.Kind == aCommitment {
		p.Escrow = o.Body
		if of, _ = s.Offer(o.Supersedes); of == nil || !of.IsProposal() {
			return p
		}
		p.Bodies, p.Offers = append(p.Bodies, of.Body), append(p.Offers, of.ID)
	}
	if of.IsProposal() {
		p.Terms, p.Threads, p.Frame = performatives.HashOf(of.Terms), s.threadsOf(of), frameOf(of)
	}
	return p
}

// commitmentTerms is the hash of what a commitment says, or an amendment of one, but for its id and its reason; "" of
// another offer, or none.
func commitmentTerms(o *Offer) performatives.Hash {
	if o == nil || o.Kind != aCommitment && o.Kind != anAmendment {
		return ""
	}
	var body struct {
		Terms    jsontext.Value `json:"terms,omitzero"`
		Deadline jsontext.Value `json:"deadline,omitzero"`
		Escrow   jsontext.Value `json:"escrow,omitzero"`
	}
	if json.Unmarshal(o.Body, &body) != nil || body.Terms == nil {
		return ""
	}
	said, _ := json.Marshal(body) // it was JSON
	return performatives.HashOf(said)
}

// pledge is what the act offers or agrees to, as a bound limits it; false if it is not limited.
func (t *Command) pledge(bound *escalation.Bound) (escalation.Pledge, bool) {
	p, limited := acts[t.Act].agrees(t, bound)
	if t.event.Replayed {
		p.Commitment, p.CommitmentTerms, p.Frame = nil, "", nil
		return p, limited
	}
	p.Side = t.Side
	return p, limited
}

// frameOf is what a proposal says besides its terms.
func frameOf(o *Offer) *escalation.Frame {
	frame := &escalation.Frame{}
	if json.Unmarshal(o.Body, frame) != nil {
		return nil
	}
	frame.Type, frame.Subject, frame.Schema = o.Type, o.Subject, o.Schema
	return frame
}

// notesTaken notes that the terms of a proposal, which a human has approved exactly, are agreed: once, under that approval.
func (t *Command) notesTaken(o *Offer) {
	for _, side := range []performatives.Agent{o.Side, t.Side} {
		b, some := t.bounds.Get(side)
		if !some {
			continue
		}
		if b = b.For(t.pledgeOf(o)); b != nil && b.TermsHash != "" && b.TermsHash == performatives.HashOf(o.Terms) {
			t.agreedExactly = t.agreedExactly.With(b.Escalation, o.ID)
		}
	}
}

// agreedAlready is the other offer that was agreed under an approval of exact terms; "" for none.
func (t *Command) agreedAlready(b *escalation.Bound, p escalation.Pledge) string {
	id, _ := t.agreedExactly.Get(b.Escalation)
	if t.event.Replayed || b.TermsHash == "" || slices.Contains(p.Offers, id) {
		return ""
	}
	return id
}

// threadsOf is the thread of a proposal, or of the one that a commitment carries out; none
// where there is none.
func (s *State) threadsOf(o *Offer) []escalation.Thread {
	if o != nil && o.Kind == aCommitment {
		o, _ = s.Offer(o.Supersedes)
	}
	if o == nil || !o.IsProposal() {
		return nil
	}
	return []escalation.Thread{s.threadOf(o)}
}

// threadOf is the thread of a proposal.
func (s *State) threadOf(o *Offer) escalation.Thread {
	thread := escalation.Thread{Type: o.Type, Subject: o.Subject, Line: o.Line}
	if to, _ := s.parties.Get(o.To); s.principals > 2 && to.Agent != "" && to.Role <= Invitee {
		sides := []string{string(o.Side), string(o.To)}
		slices.Sort(sides)
		thread.Between = strings.Join(sides, " ")
	}
	return thread
}

// denied finds the denial of what the act agrees to, or of the terms that it offers.
func (t *Command) denied(bound *escalation.Bound, pledge escalation.Pledge) (escalation.Denial, bool) {
	switch {
	case t.Act == performatives.Accept, t.Act == performatives.Commit:
		return bound.Denies(pledge)
	case t.event.Replayed:
		return escalation.Denial{}, false
	}
	i := slices.IndexFunc(bound.Denied, func(d escalation.Denial) bool {
		return d.Terms != "" && d.Terms == pledge.Terms || d.CommitmentTerms != "" && d.CommitmentTerms == pledge.CommitmentTerms
	})
	if i < 0 {
		return escalation.Denial{}, false
	}
	return bound.Denied[i], true
}
