package client

import (
	"context"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/performatives"
)

// A Proposal is an offer, or a counter-offer.
type Proposal struct {
	ID         string    // by default a new one
	Type       string    // service-agreement, data-exchange, resource-allocation, or any other; a counter-offer has by default that of the offer it replaces
	Subject    string    // one line; by default the type, or the subject of the offer it replaces
	Terms      any       // what becomes a JSON object: a map or a struct
	Schema     string    // a terms schema of the invitation, which Terms must fit
	ValidUntil time.Time // zero is as long as the session lasts
}

// Propose makes an offer. The receipt's ID is the offer's.
func (s *Session) Propose(ctx context.Context, p Proposal, options ...ActOption) (Receipt, error) {
	terms, err := p.terms()
	if err != nil {
		return Receipt{}, err
	}
	if p.Subject == "" {
		p.Subject = p.Type
	}
	return s.Say(ctx, &performatives.ProposeBody{
		ProposalID: p.ID, Type: p.Type, Subject: p.Subject, Terms: terms, Schema: p.Schema, ValidUntil: moment(p.ValidUntil),
	}, options...)
}

// Counter replaces another side's offer, or invitation, by one's own. Its terms
// are the new ones as a whole. The receipt's ID is the new offer's.
func (s *Session) Counter(ctx context.Context, offer string, p Proposal, options ...ActOption) (Receipt, error) {
	terms, err := p.terms()
	if err != nil {
		return Receipt{}, err
	}
	return s.Say(ctx, &performatives.CounterBody{
		ProposalID: p.ID, ReferenceID: offer, Terms: terms,
		Subject: p.Subject, Type: p.Type, Schema: p.Schema, ValidUntil: moment(p.ValidUntil),
	}, options...)
}

func (p Proposal) terms() (performatives.Object, error) {
	terms, err := object("Terms", p.Terms)
	if terms == nil {
		terms = jsontext.Value("{}")
	}
	return terms, err
}

// Accept accepts an invitation, an offer, a commitment or a delegation.
func (s *Session) Accept(ctx context.Context, id string, options ...ActOption) (Receipt, error) {
	return s.Say(ctx, &performatives.AcceptBody{ReferenceID: id}, options...)
}

// The codes of a REJECT: why, for machines.
const (
	InsufficientTrustScore = "insufficient_trust_score"
	NotAuthorized          = "unauthorized"
	SchemaUnsupported      = "schema_unsupported"
	BudgetExceeded         = "budget_exceeded"
	CapacityUnavailable    = "capacity_unavailable"
	PolicyViolation        = "policy_violation"
	TimedOut               = "timeout"
	DuplicateOffer         = "duplicate"
	EscalationRequired     = "escalation_required"
	Unspecified            = "unspecified"
)

// A Rejection says why, and whether a revised offer has a chance.
type Rejection struct {
	Code      string // one of the codes above, by default unspecified
	Reason    string // why, for people; by default the code
	Retryable bool
	Terminal  bool // the last word (convergent/1)
}

// Reject turns down an invitation, an offer, a commitment or a delegation.
func (s *Session) Reject(ctx context.Context, id string, r Rejection, options ...ActOption) (Receipt, error) {
	if r.Code == "" {
		r.Code = Unspecified
	}
	if r.Reason == "" {
		r.Reason = r.Code
	}
	return s.Say(ctx, &performatives.RejectBody{
		ReferenceID: id, Code: r.Code, Reason: r.Reason, Retryable: r.Retryable, Terminal: r.Terminal,
	}, options...)
}

// Withdraw takes back what is one's own: an invitation, an offer, a commitment
// that nobody accepted, a delegation, or a question.
func (s *Session) Withdraw(ctx context.Context, id string, options ...ActOption) (Receipt, error) {
	return s.Say(ctx, &performatives.WithdrawBody{ReferenceID: id}, options...)
}
