package api

import (
	"github.com/parley-asp/parley/agreement"
	"github.com/parley-asp/parley/performatives"
)

// GetAgreement is the request of agreement.get. A session without an id of an agreement
// stands for its newest one.
type GetAgreement struct {
	Agreement agreement.ID            `json:"agreementId,omitzero"`
	Session   performatives.SessionID `json:"sessionId,omitzero"`
}

// ListAgreements is the request of agreement.list: those of the caller's sessions, the
// newest session first, or of one session.
type ListAgreements struct {
	Session performatives.SessionID `json:"sessionId,omitzero"`
	Limit   int                     `json:"limit,omitzero"`
	Cursor  string                  `json:"cursor,omitzero"`
}

// Agreements is a page of agreement.list.
type Agreements struct {
	Agreements []AgreementRow `json:"agreements"`
	Next       string         `json:"next,omitzero"`
}

// An AgreementRow is an agreement in a list.
type AgreementRow struct {
	Agreement      agreement.ID            `json:"agreementId"`
	Session        performatives.SessionID `json:"sessionId"`
	Proposal       string                  `json:"proposalId"`
	Parties        []agreement.DID         `json:"parties"` // who made the offer comes first
	Category       string                  `json:"category,omitzero"`
	EffectiveFrom  string                  `json:"effectiveFrom"`
	EffectiveUntil string                  `json:"effectiveUntil,omitzero"`
	Hash           agreement.Digest        `json:"agreementHash"`
	AcceptedAt     string                  `json:"acceptedAt"`
}
