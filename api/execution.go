package api

import (
	"cmp"
	"math/big"
	"slices"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// An ObligationView is one obligation of a commitment that is carried out, and where it stands
// (COMMITMENTS.md C2).
type ObligationView struct {
	Commitment         string                `json:"commitmentId"`
	ID                 string                `json:"obligation"` // its id in the commitment
	Party              performatives.Agent   `json:"party"`      // who owes it
	To                 []performatives.Agent `json:"to"`         // the other parties of the commitment
	Action             string                `json:"action"`
	Status             string                `json:"status"` // due, asserted, fulfilled, partial, deemed, late, breached, waived, released or disputed
	Deadline           string                `json:"deadline,omitzero"`
	Quantity           *float64              `json:"quantity,omitzero"`
	Unit               string                `json:"unit,omitzero"`
	Amount             *performatives.Worth  `json:"amount,omitzero"`
	VerificationMethod string                `json:"verificationMethod,omitzero"`
	Remains            *float64              `json:"remains,omitzero"`  // of the quantity, still due
	Accepted           *float64              `json:"accepted,omitzero"` // of the quantity
	Window             int64                 `json:"acceptanceWindowMs,omitzero"`
	Breaches           int                   `json:"breaches,omitzero"`   // on record
	Breach             uint64                `json:"breachedBy,omitzero"` // the entry that recorded the newest of them
	Delivery           *DeliveryView         `json:"delivery,omitzero"`   // that waits for an answer
	Truncated          bool                  `json:"truncated,omitzero"`
}

// A DeliveryView is what was delivered of an obligation, and waits for an answer.
type DeliveryView struct {
	Reference string                   `json:"referenceId"` // what an ACCEPT or REJECT of it names
	By        performatives.Agent      `json:"by"`
	Quantity  *float64                 `json:"quantity,omitzero"`
	Evidence  []performatives.Evidence `json:"evidence,omitzero"`
	Sequence  uint64                   `json:"sequenceNumber"`
	Until     string                   `json:"until"` // when it counts as accepted
	Paused    bool                     `json:"paused,omitzero"`
}

// A DisputeView is one dispute.
type DisputeView struct {
	ID         string                   `json:"disputeId"`
	By         performatives.Agent      `json:"by"` // the side that filed it
	Subject    performatives.Hash       `json:"subject"`
	Entry      uint64                   `json:"entry"` // that it is about
	Commitment string                   `json:"commitmentId,omitzero"`
	Obligation string                   `json:"obligation,omitzero"`
	Ground     string                   `json:"ground"`
	Claim      string                   `json:"claim"`
	Remedy     string                   `json:"remedy,omitzero"`
	Severity   int                      `json:"severity"`
	Evidence   []performatives.Evidence `json:"evidence,omitzero"`
	Sequence   uint64                   `json:"sequenceNumber"`
	Replies    []DisputeReplyView       `json:"replies,omitzero"`
	Status     string                   `json:"status"`             // open, upheld, dismissed, split, conceded, agreed or unresolved
	Decided    uint64                   `json:"decidedBy,omitzero"` // the entry that ended it
	// ViewHash names what is shown of an open dispute. An INFORM reply or resolution that repeats it as its
	// shown is refused (409) if the dispute has changed since.
	ViewHash  performatives.Hash `json:"shown,omitzero"`
	Truncated bool               `json:"truncated,omitzero"`
}

// A DisputeReplyView is what another side said to a dispute.
type DisputeReplyView struct {
	Reference string              `json:"referenceId"` // what an ACCEPT of an offer names
	By        performatives.Agent `json:"by"`
	Position  string              `json:"position"` // concede, deny or offer
	Remedy    string              `json:"remedy,omitzero"`
	Sequence  uint64              `json:"sequenceNumber"`
}

func viewObligation(s *session.State, o *session.Obligation, at time.Time) ObligationView {
	v := ObligationView{
		Commitment: o.Commitment, ID: o.ID, Party: o.Party, To: []performatives.Agent{}, Action: o.Action, Status: o.Status(), Quantity: o.Quantity, Unit: o.Unit,
		Amount: o.Amount, VerificationMethod: o.VerificationMethod, Remains: double(o.Remains), Accepted: double(o.Accepted),
		Window: o.AcceptanceWindowMs, Breaches: o.Breaches, Breach: o.BreachedIn,
	}
	if c, ok := s.Commitment(o.Commitment); ok {
		v.To = slices.DeleteFunc(slices.Clone(c.Parties), func(a performatives.Agent) bool { return a == o.Party })
	}
	if due := o.DueBy(); !due.IsZero() {
		v.Deadline = Timestamp(s.Wall(due, at))
	}
	if d := o.Delivery; d != nil {
		v.Delivery = &DeliveryView{
			Reference: d.ID, By: d.By, Quantity: double(d.Quantity), Evidence: d.Evidence, Sequence: d.Sequence,
			Until: Timestamp(s.Wall(d.Until, at)), Paused: s.ClockStopped(at) || o.Disputes > 0,
		}
	}
	return v
}

// double is the double that is nearest to a quantity.
func double(r *big.Rat) *float64 {
	if r == nil {
		return nil
	}
	f, _ := r.Float64()
	return &f
}

func viewDispute(s *session.State, d *session.Dispute) DisputeView {
	v := DisputeView{
		ID: d.DisputeID, By: d.Side, Subject: d.Subject, Entry: d.Entry, Commitment: d.Commitment, Obligation: d.Obligation, Ground: d.Ground, Claim: d.Claim,
		Remedy: d.Remedy, Severity: d.Severity, Evidence: d.Evidence, Sequence: d.Sequence, Status: d.Status, Decided: d.Decided,
	}
	for _, r := range d.Replies {
		v.Replies = append(v.Replies, DisputeReplyView{r.ID, r.Side, r.Position, r.Remedy, r.Sequence})
	}
	if d.Status == session.DisputeOpen {
		v.ViewHash = disputeShown(s, d, &v)
	}
	return v
}

// DisputeShown is the view hash of an open dispute.
func DisputeShown(s *session.State, d *session.Dispute) performatives.Hash {
	return viewDispute(s, d).ViewHash
}

// disputeShown is of what matters to who answers or decides a dispute: the dispute, what was replied, and
// where the obligation stands that it is about. The session goes on meanwhile, and what else is said in it,
// which a party could say at any time, changes nothing.
func disputeShown(s *session.State, d *session.Dispute, v *DisputeView) performatives.Hash {
	seen := struct {
		Dispute  *DisputeView `json:"dispute"`
		Status   string       `json:"status,omitzero"` // of the obligation
		Accepted *float64     `json:"accepted,omitzero"`
		Breaches int          `json:"breaches,omitzero"`
		Delivery string       `json:"delivery,omitzero"`
	}{Dispute: v}
	if o, ok := s.Obligation(d.Commitment, d.Obligation); ok {
		seen.Status, seen.Accepted, seen.Breaches = o.Status(), double(o.Accepted), o.Breaches
		if o.Delivery != nil {
			seen.Delivery = o.Delivery.ID
		}
	}
	data, err := json.Marshal(&seen, json.Deterministic(true))
	if err != nil {
		return ""
	}
	return performatives.HashOf(data)
}

// addExecution shows what is carried out.
func (v *SessionView) addExecution(s *session.State, at time.Time) {
	for _, o := range s.Obligations() {
		v.Owed = append(v.Owed, viewObligation(s, o, at))
	}
	for _, d := range s.Disputes() {
		v.Disputes = append(v.Disputes, viewDispute(s, d))
	}
	v.Arbiter, v.Leaving = s.Arbiter().Agent, s.Leaving()
}

// addExecution lists what is carried out, what waits for an answer and what is due first.
func (v *Snapshot) addExecution(s *session.State, at time.Time) (open []OpenItem) {
	if !s.Executing() {
		return nil
	}
	all := s.Obligations()
	slices.SortStableFunc(all, func(a, b *session.Obligation) int {
		return cmp.Or(cmp.Compare(urgency(a), urgency(b)), a.DueBy().Compare(b.DueBy()))
	})
	for _, o := range all {
		if len(v.Obligations) == mostOpen {
			v.Truncated = true
			break
		}
		view := viewObligation(s, o, at)
		v.Obligations = append(v.Obligations, view)
		if o.Ended != "" || s.Phase.Over() {
			continue
		}
		item := OpenItem{Kind: "obligation", ID: o.Name(), By: o.Party, For: []performatives.Agent{o.Party}, Due: view.Deadline}
		if view.Delivery != nil {
			item.For, item.Due = view.To, view.Delivery.Until
		}
		open = append(open, item)
	}
	for _, d := range slices.Backward(s.Disputes()) {
		if len(v.Disputes) == mostOpen {
			v.Truncated = true
			break
		}
		v.Disputes = append(v.Disputes, viewDispute(s, d))
		if d.Status == session.DisputeOpen {
			open = append(open, OpenItem{Kind: "dispute", ID: d.DisputeID, By: d.Side, For: s.RepliesTo(d)})
		}
	}
	v.Leaving = s.Leaving()
	return open
}

// urgency sorts obligations: those that wait for an answer, those with a deadline, other ones, and
// those that are over.
func urgency(o *session.Obligation) int {
	switch {
	case o.Ended != "":
		return 3
	case o.Delivery != nil:
		return 0
	case o.DueBy().IsZero():
		return 2
	}
	return 1
}

// GetEvidence is the request of session.evidence.
type GetEvidence struct {
	Session performatives.SessionID `json:"sessionId"`
	Redact  []string                `json:"redact,omitzero"` // names of terms to take out, with the entries that would tell them
	Bare    bool                    `json:"bare,omitzero"`   // without the transcript, for sessions that do not fit one reply
}
