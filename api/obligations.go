package api

import (
	"time"

	"github.com/parley-asp/parley/api/fit"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// ListObligations is the request of obligation.list. Times are in RFC 3339; what has no date has no part in a
// request that gives one.
type ListObligations struct {
	Awaiting string `json:"awaiting,omitzero"` // "me" or "others": only those for which the caller's organisation has to do something, or only others
	Status   string `json:"status,omitzero"`   // only those of this status: due, partial, asserted, breached or disputed
	After    string `json:"after,omitzero"`    // only those that are due at this time or later
	Before   string `json:"before,omitzero"`   // only those that are due before this time
	Limit    int    `json:"limit,omitzero"`    // 1–200, by default 50
	Cursor   string `json:"cursor,omitzero"`   // next of the page before
}

// Who has to do something, in a ListObligations.
const (
	AwaitingMe     = "me"
	AwaitingOthers = "others"
)

// Pages of obligation.list are at most this long, and this long by default.
const (
	MaxObligations     = 200
	DefaultObligations = 50
)

// Obligations is a page of obligation.list.
type Obligations struct {
	Obligations []ObligationRow `json:"obligations"`
	Next        string          `json:"next,omitzero"` // cursor of the next page; absent on the last
}

// An ObligationRow is an open obligation of one of the caller's sessions: something of it is still due, to be
// answered or disputed. Its texts have at most 240 bytes.
type ObligationRow struct {
	Session performatives.SessionID `json:"sessionId"`
	Purpose string                  `json:"purpose,omitzero"` // of the session
	For     []performatives.Agent   `json:"for"`              // who has to do something: who owes it, or who answers its delivery
	Due     string                  `json:"due,omitzero"`     // until then; absent without a date, and of what is only disputed
	ObligationView
}

// MostOpenObligations are those of one session that obligation.list has: those due first.
const MostOpenObligations = mostOpen

const rowText = 240 // bytes

// OpenObligations are the open obligations of a session, the one due first first, with short texts and without
// evidence.
func OpenObligations(s *session.State, at time.Time) (open []ObligationView) {
	for o := range s.OpenObligations() {
		if len(open) == MostOpenObligations {
			break
		}
		v := viewObligation(s, o, at)
		for _, text := range []*string{&v.Action, &v.VerificationMethod} {
			short, cut := shortened(*text)
			*text, v.Truncated = short, v.Truncated || cut
		}
		switch {
		case v.Delivery != nil:
			v.Delivery.Evidence = nil
		case o.Ended != "": // it is only disputed
			v.Deadline = ""
		}
		open = append(open, v)
	}
	return open
}

// ShortPurpose is a session's purpose as rows have it.
func ShortPurpose(s *session.State) string {
	short, _ := shortened(s.Agreed.Purpose)
	return short
}

// shortened is a text as rows have it, and whether something is left out.
func shortened(text string) (short string, cut bool) {
	if fit.TextSize(text) <= rowText {
		return text, false
	}
	return fit.Text(text, rowText), true
}

// ObligationRowOf is the row of an obligation.
func ObligationRowOf(id performatives.SessionID, purpose string, v ObligationView) ObligationRow {
	row := ObligationRow{Session: id, Purpose: purpose, For: []performatives.Agent{v.Party}, Due: v.Deadline, ObligationView: v}
	if v.Delivery != nil {
		row.For, row.Due = v.To, v.Delivery.Until
	}
	return row
}
