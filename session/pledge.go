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
		p.Terms, p.Threads = performatives.HashOf(of.Terms), s.threadsOf(of)
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
	p.Side, p.Opened, p.At = t.Side, t.Created, t.At
	if of := t.proposalOf(t.Offer); p.Frame == nil && of != nil {
		p.Frame = t.frameOf(of, t.Side)
	}
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
	if until, err := time.Parse(time.RFC3339, body.Until); err == nil {
		frame.Until = &until
	}
	frame.With = s.with(o, side)
	return frame
}

// with is with whom a proposal would be agreed, of several; "" is anybody.
func (s *State) with(o *Offer, side performatives.Agent) performatives.Agent {
	switch {
	case s.principals <= 2:
		return ""
	case o.Side == side:
		return s.sideOf(o.To)
	}
	return o.Side
}

// sideOf is the principal for whom an agent acts, as far as can be told.
func (s *State) sideOf(a performatives.Agent) performatives.Agent {
	p, _ := s.hasPart(a)
	if p.Role == Delegate {
		if grant, _ := s.grants.Get(p.Grant); grant.Principal != "" {
			return grant.Principal
		}
	}
	return a
}

// notesAgreed notes that a proposal is agreed whose terms a human has approved exactly.
func (t *Command) notesAgreed(o *Offer) {
	for _, side := range []performatives.Agent{o.Side, t.Side} {
		b, bound := t.bounds.Get(side)
		if !bound {
			continue
		}
		p := t.pledgeOf(o)
		if b = b.For(p); b != nil && b.TermsHash != "" && b.TermsHash == p.Terms && t.framed(o, side, b) {
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
	var terms jsontext.Value // that may be agreed, beside those of an own offer
	switch o := t.Offer; {
	case o == nil, t.Mode.Effects[performatives.Accept] != nil:
	case t.Act == performatives.Accept && o.IsProposal() && o.Side != t.Side:
		terms = o.Terms
	case t.Act == performatives.Counter:
		terms = t.Message.Body.(*performatives.CounterBody).Terms //nolint:errcheck,forcetypeassert // its act says so
	}
	if terms == nil {
		return ""
	}
	own, _ := t.withTerms(t.Side, terms, func(id string) bool {
		o, _ := t.State.Offer(id)
		return t.framed(o, t.Side, b)
	})
	return own
}

// framed reports whether a proposal is in the thread, and with whom, that a bound was approved for. Its body may be compact.
func (s *State) framed(o *Offer, side performatives.Agent, b *escalation.Bound) bool {
	if b.Frame == nil {
		return true
	}
	with := s.with(o, side)
	return o.Type == b.Frame.Type && o.Subject == b.Frame.Subject && (with == b.Frame.With || with == "" || b.Frame.With == "")
}

// proposalOf is a proposal, or the one that a commitment carries out; nil where there is none.
func (s *State) proposalOf(o *Offer) *Offer {
	if o != nil && o.Kind == aCommitment {
		o, _ = s.Offer(o.Supersedes)
	}
	if o == nil || !o.IsProposal() {
		return nil
	}
	return o
}

// threadsOf is the thread of that proposal; none where there is none.
func (s *State) threadsOf(o *Offer) []escalation.Thread {
	if o = s.proposalOf(o); o == nil {
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
