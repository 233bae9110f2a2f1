package session

import (
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
)

// pledgeOf is what agreeing to an offer agrees to: of a commitment also its escrow,
// and the proposal that it carries out.
func (s *State) pledgeOf(o *Offer, side performatives.Agent) escalation.Pledge {
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
		p.Terms, p.Threads, p.Frame = performatives.HashOf(of.Terms), s.threadsOf(of), s.frameOf(of, side)
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
	p.Side, p.At = t.Side, t.At
	return p, limited
}

// frameOf is what a proposal says besides its terms, as a side sees it.
func (s *State) frameOf(o *Offer, side performatives.Agent) *escalation.Frame {
	var body struct {
		Category string `json:"category"`
		From     string `json:"effectiveFrom"`
		Until    string `json:"effectiveUntil"`
	}
	_ = json.Unmarshal(o.Body, &body) // its schema has them as texts
	frame := &escalation.Frame{Type: o.Type, Subject: o.Subject, Schema: o.Schema, Category: body.Category}
	frame.From, _ = time.Parse(time.RFC3339, body.From)
	frame.Until, _ = time.Parse(time.RFC3339, body.Until)
	if s.principals > 2 {
		if frame.With = o.Side; o.Side == side {
			frame.With = o.To
		}
	}
	return frame
}

// notesAgreed notes that a proposal is agreed whose terms a human has approved exactly.
func (t *Command) notesAgreed(o *Offer) {
	for _, side := range []performatives.Agent{o.Side, t.Side} {
		b, _ := t.bounds.Get(side)
		p := t.pledgeOf(o, side)
		if b = b.For(p); b != nil && b.TermsHash != "" && b.TermsHash == p.Terms && (b.Frame == nil || p.Frame.Differs(b.Frame, t.At) == "") {
			t.agreedBy(b.Escalation, o.ID)
		}
	}
}

func (t *Command) agreedBy(ruling escalation.ID, offer string) {
	before, _ := t.agreedExactly.Get(ruling)
	if !slices.Contains(before, offer) {
		t.agreedExactly = t.agreedExactly.With(ruling, append(slices.Clip(before), offer))
	}
}

// agreedAlready is another offer by which what a human has approved exactly is agreed, or would be if it is accepted; "" for
// none. An approval is of one agreement.
func (t *Command) agreedAlready(b *escalation.Bound, p escalation.Pledge) string {
	if t.event.Replayed || b.TermsHash == "" || b.TermsHash != p.Terms {
		return ""
	}
	agreed, _ := t.agreedExactly.Get(b.Escalation)
	if slices.ContainsFunc(p.Offers, func(id string) bool { return slices.Contains(agreed, id) }) {
		return ""
	}
	if len(agreed) > 0 {
		return agreed[0]
	}
	if o := t.Offer; t.Act == performatives.Accept && o != nil && o.IsProposal() && o.Side != t.Side && t.Mode.Effects[performatives.Accept] == nil {
		if own, open := t.sameTerms(t.Side, o.Terms); open {
			return own
		}
	}
	return ""
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
