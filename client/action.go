package client

import (
	"context"
	"slices"
	"time"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
)

// A Commitment binds: who owes what.
type Commitment struct {
	ID             string                     // by default a new one
	For            string                     // the accepted offer that it carries out; may be empty in asp/1
	Obligations    []performatives.Obligation // required outside convergent/1
	Penalties      any
	Deadline       time.Time
	Escrow         *performatives.Escrow // recorded; no money is moved
	Outcome        string                // agreed (default) or rejected
	Action         string
	AuthorityScope string
}

// Commit makes a commitment. The receipt's ID is the commitment's.
func (s *Session) Commit(ctx context.Context, c Commitment, options ...ActOption) (Receipt, error) {
	body := &performatives.CommitBody{
		CommitmentID: c.ID, ReferenceID: c.For, Deadline: moment(c.Deadline), Escrow: c.Escrow,
		Outcome: c.Outcome, Action: c.Action, AuthorityScope: c.AuthorityScope,
	}
	if len(c.Obligations) > 0 || c.Penalties != nil {
		body.Terms = &performatives.CommitmentTerms{Obligations: c.Obligations, Penalties: c.Penalties}
	}
	return s.Say(ctx, body, options...)
}

// What a delegate may send.
const (
	Full     = "full"     // whatever its delegator may, but COMMIT and CLOSE
	Limited  = "limited"  // INFORM, QUERY, OBSERVE, ESCALATE
	Advisory = "advisory" // INFORM, OBSERVE
)

// A Delegation says what a delegate is to do and may do.
type Delegation struct {
	Scope      string    // what for, in words
	Authority  string    // Full, Limited or Advisory
	For        string    // limits the authority to this offer and its counters; "" is no such limit
	ValidUntil time.Time // zero is as long as the session lasts
	MaxDepth   *int      // levels of delegates that it may grow to, this one counted; at most 3
}

// Delegate invites an agent to act for the caller. It finds the session in its
// inbox and joins by [Session.Accept] of the receipt's ID, or by acting.
func (s *Session) Delegate(ctx context.Context, target performatives.Agent, d Delegation, options ...ActOption) (Receipt, error) {
	return s.Say(ctx, &performatives.DelegateBody{
		TargetAgent: target, Scope: d.Scope, Authority: d.Authority, Protocol: "asp",
		ReferenceID: d.For, ValidUntil: moment(d.ValidUntil), MaxDepth: d.MaxDepth,
	}, options...)
}

// Why an agent asks a human.
const (
	AuthorityLimit      = "authority-limit"
	ConfidenceLow       = "confidence-low"
	PolicyAmbiguous     = "policy-ambiguous"
	AdversarialDetected = "adversarial-detected"
)

// How soon an answer is due; the times are the broker's defaults.
const (
	Low      = "low"      // 24 h
	Medium   = "medium"   // 4 h
	High     = "high"     // 1 h
	Critical = "critical" // 15 min
)

// An Escalation is what a human is asked to decide.
type Escalation struct {
	Reason          string // such as AuthorityLimit
	Urgency         string // by default Medium
	Context         any    // what the human needs to know, a text or anything else
	SuggestedAction string
	About           string // the offer at stake
	Open            bool   // the other sides may read Context and SuggestedAction, too
}

// Escalate pauses the session until a human of the caller's organisation has
// decided. The receipt's ID is the escalation's.
func (s *Session) Escalate(ctx context.Context, e Escalation, options ...ActOption) (Receipt, error) {
	raw, err := value("Context", e.Context)
	if err != nil {
		return Receipt{}, err
	}
	if e.Urgency == "" {
		e.Urgency = Medium
	}
	if !e.Open {
		options = append(slices.Clone(options), Seal(performatives.SealContext, performatives.SealSuggested))
	}
	return s.Say(ctx, &performatives.EscalateBody{
		Reason: e.Reason, Urgency: e.Urgency, Context: raw, SuggestedAction: e.SuggestedAction, ReferenceID: e.About,
	}, options...)
}

// A Ruling is a human's decision.
type Ruling struct {
	Decision string // performatives.Approved, Denied, Modified or Guidance
	Comment  string

	// Authority is what the agent may agree to from now on. An approval that names neither
	// bounds nor terms is of exactly the terms at stake, unless it is Unbounded.
	Authority *performatives.RulingsAuthority
	Unbounded bool // the approval sets no bound

	OpenAuthority bool // the other sides may read Authority, too
	SealComment   bool // they may not read Comment

	// On is the item that the human was shown. If it has changed since, the
	// ruling is refused as chain_conflict, with the item as it is now.
	On *api.EscalationItem
}

// Rule decides an escalation; only a human who may decide for its organisation
// is accepted. The session goes on where it was paused. The same ruling again is
// answered like the first; another, or a late one, is refused as
// escalation_resolved.
func (s *Session) Rule(ctx context.Context, escalation string, r Ruling, options ...ActOption) (Receipt, error) {
	data := performatives.RulingData{EscalationID: escalation, Decision: r.Decision, Comment: r.Comment, Authority: r.Authority}
	if r.Decision == performatives.Approved && !r.Unbounded {
		shown := r.On
		if shown == nil {
			item, err := s.client.Escalation(ctx, escalation)
			if err != nil {
				return Receipt{}, err
			}
			shown = &item
		}
		data.Authority = shown.Exactly(r.Authority)
	}
	if r.On != nil {
		data.Revision, data.ViewHash = &r.On.Revision, r.On.ViewHash
	}
	var seals []string
	if !r.OpenAuthority {
		seals = append(seals, performatives.SealAuthority)
	}
	if r.SealComment {
		seals = append(seals, performatives.SealComment)
	}
	return s.Inform(ctx, performatives.Resolution, data, append(slices.Clone(options), Seal(seals...))...)
}

// A Closing ends a session.
type Closing struct {
	Summary string
	Outcome string // performatives.Completed, Abandoned or FailedEnd
	Reason  string
}

// Close ends the session for everybody.
func (s *Session) Close(ctx context.Context, c Closing, options ...ActOption) (Receipt, error) {
	return s.Say(ctx, &performatives.CloseBody{Summary: c.Summary, Outcome: c.Outcome, Reason: c.Reason}, options...)
}
