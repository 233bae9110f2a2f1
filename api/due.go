package api

import (
	"time"

	"github.com/parley-asp/parley/api/fit"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// What people are told of what was agreed.
const (
	NoticeDue     = "due"     // it is due soon
	NoticeOverdue = "overdue" // its deadline has passed, and nothing was delivered
)

// A DueNotice is what people of an organisation are told of an obligation, on asp.people.<org>.<token>.
type DueNotice struct {
	Kind         string                     `json:"kind"` // NoticeDue or NoticeOverdue
	At           time.Time                  `json:"at"`
	Organisation performatives.Organisation `json:"organisation"`
	People       []performatives.Agent      `json:"people"` // its humans who take part, and its owners
	Session      performatives.SessionID    `json:"sessionId"`
	Commitment   string                     `json:"commitmentId"`
	Obligation   string                     `json:"obligation"`
	Party        performatives.Agent        `json:"party"` // who owes it
	For          []performatives.Agent      `json:"for"`   // who has to do something: who owes it, or who answers its delivery
	Delivered    bool                       `json:"delivered,omitzero"`
	Due          string                     `json:"due"`
	Action       string                     `json:"action"`  // cut
	Purpose      string                     `json:"purpose"` // of the session, cut
}

// DueNoticeOf adds to a notice what it is about.
func DueNoticeOf(s *session.State, o *session.Obligation, n DueNotice) DueNotice {
	n.Session, n.Commitment, n.Obligation, n.Party = s.ID, o.Commitment, o.ID, o.Party
	n.Delivered, n.Action, n.Purpose = o.Delivery != nil, o.Action, s.Agreed.Purpose
	if n.People == nil {
		n.People = []performatives.Agent{}
	}
	fit.To(&n, MaxRowBytes)
	return n
}
