package api

import (
	"cmp"
	"slices"

	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// ListDisputes is the request of dispute.list.
type ListDisputes struct {
	Status string `json:"status,omitzero"` // open, which is the default, or all: also those that have ended
	Limit  int    `json:"limit,omitzero"`  // 1–200, by default 50
	Cursor string `json:"cursor,omitzero"` // next of the page before
}

// AllDisputes asks for those that have ended, too.
const AllDisputes = "all"

// Disputes is a page of dispute.list.
type Disputes struct {
	Disputes []DisputeRow `json:"disputes"`
	Next     string       `json:"next,omitzero"` // cursor of the next page; absent on the last
}

// A DisputeRow is a dispute in one of the caller's sessions that are not over. Its texts have at most 240 bytes.
type DisputeRow struct {
	Session performatives.SessionID `json:"sessionId"`
	Purpose string                  `json:"purpose,omitzero"` // of the session
	For     []performatives.Agent   `json:"for,omitzero"`     // who has to reply, or to decide
	DisputeView
}

// DisputeRows are the disputes of a session that is not over, at most 50, the newest first: those that are open,
// and as many others as there is room for. They have short texts, and neither evidence nor replies.
func DisputeRows(s *session.State) (rows []DisputeRow) {
	if s.Phase.Over() {
		return nil
	}
	purpose := ShortPurpose(s)
	for _, open := range []bool{true, false} {
		for _, d := range slices.Backward(s.Disputes()) {
			if (d.Status == session.DisputeOpen) != open || len(rows) == mostOpen {
				continue
			}
			row := DisputeRow{Session: s.ID, Purpose: purpose, DisputeView: viewDispute(s, d)}
			if open {
				row.For = s.RepliesTo(d)
			}
			row.Evidence, row.Replies, row.ViewHash = nil, nil, ""
			for _, text := range []*string{&row.Claim, &row.Remedy} {
				short, cut := shortened(*text)
				*text, row.Truncated = short, row.Truncated || cut
			}
			rows = append(rows, row)
		}
	}
	slices.SortFunc(rows, func(a, b DisputeRow) int { return cmp.Compare(b.Sequence, a.Sequence) })
	return rows
}
