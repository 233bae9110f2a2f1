package session

import (
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/performatives"
)

// What the context of a principal's card forbids (GATEWAYS.md G4) is a secret of its
// organisation. barred refuses an invitation that the inviter's context forbids, and one that
// an invitee's forbids because of the inviter, and says neither whose context it was nor what
// of it. What an invitee's forbids because of the others, or of a category, only keeps the
// invitee from accepting (unfit): to everybody else it has declined, or not answered, when it
// did. The lists are in no transcript, so a replay does not judge them again.
func (t *Command) barred() error {
	inviter, own, categories := t.called(t.Side), t.context(t.Side), categories(t.opening, t.Message.RawBody)
	for _, a := range t.opening.Invitees {
		invitee := t.called(a)
		if own.Bars(inviter, invitee) || own.Covers(invitee, categories, t.At) || t.context(a).Bars(invitee, inviter) {
			return Violation(barredRule, "the confidentiality obligations of the parties do not allow this session")
		}
	}
	return nil
}

// barredRule is the rule of GATEWAYS.md that a refusal names.
const barredRule = "ccc"

// unfit refuses the answer by which an invited principal would enter a session that its own
// context forbids. Only it learns that.
func (t *Command) unfit() error {
	own := t.context(t.Side)
	if own == nil {
		return nil
	}
	invitation, body := t.Agreed, t.Offer.Body
	if t.opening != nil { // by COUNTER
		invitation, body = t.opening, t.Message.RawBody
	}
	self, categories := t.called(t.Side), categories(invitation, body)
	for _, a := range t.order[:t.principals] {
		if other := t.called(a); a != t.Side && (own.Bars(self, other) || own.Covers(other, categories, t.At)) {
			return Violation(barredRule, "the confidentiality obligations of %s do not allow this session: REJECT the invitation; nobody learns why", t.Side)
		}
	}
	return nil
}

// context is that of a principal's card; nil for none. The registry checked it.
func (t *Command) context(a performatives.Agent) *performatives.CCC {
	m, _ := t.event.Known.Get(a)
	c, _ := performatives.ReadCCC(m.Context)
	return c
}

// called are what lists may call a principal.
func (t *Command) called(a performatives.Agent) []string {
	m, _ := t.event.Known.Get(a)
	return names(a, m.DID, t.context(a))
}

// names are what the lists of a context may call a principal: its URI, its DIDs, that of its
// organisation, its scope.
func names(a performatives.Agent, did string, c *performatives.CCC) []string {
	all := []string{string(a), performatives.WebDID(a), "did:web:" + string(a.Organisation())}
	if did != "" {
		all = append(all, did)
	}
	if c != nil && c.Scope != "" {
		all = append(all, c.Scope)
	}
	return all
}

// categories are what an invitation with this body says that the session is about.
func categories(inv *Invitation, body jsontext.Value) []string {
	var policy struct {
		Categories []string `json:"categories"`
	}
	if len(inv.Policy) > 0 && json.Unmarshal(inv.Policy, &policy) != nil {
		policy.Categories = nil // no mode has such ones
	}
	var binds struct {
		Category string `json:"category"`
	}
	if json.Unmarshal(body, &binds) == nil && binds.Category != "" {
		policy.Categories = append(policy.Categories, binds.Category)
	}
	return policy.Categories
}

// regulated pins what the context of a principal's card says of its profession or trade. It
// stays as it was pinned, for the session's life.
func regulated(m performatives.Member) performatives.Member {
	if c, err := performatives.ReadCCC(m.Context); err == nil && c != nil {
		m.CCC = &c.Regulation
	}
	return m
}

// Classification is the most restrictive one of the principals, which the session inherits;
// "" if no card says.
func (s *State) Classification() (most string) {
	for _, a := range s.order {
		if c := s.Regulation(a); c != nil {
			most = performatives.MostRestrictive(most, c.Classification)
		}
	}
	return most
}

// Regulation is what was pinned of a principal's profession or trade; nil for nothing.
func (s *State) Regulation(a performatives.Agent) *performatives.Regulation {
	p, _ := s.parties.Get(a)
	if p.Role > Invitee {
		return nil
	}
	return p.CCC
}

// Obligated are the principals whose regulation the agreement has to name: those that are
// regulated, if others are not.
func (s *State) Obligated() (all []performatives.Agent) {
	free := false
	for _, a := range s.order {
		p, _ := s.parties.Get(a)
		switch {
		case p.Role > Invitee:
		case p.CCC == nil || p.CCC.Classification == performatives.Unregulated:
			free = true
		default:
			all = append(all, a)
		}
	}
	if !free {
		return nil
	}
	return slices.Clip(all)
}
