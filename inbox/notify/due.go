package notify

import (
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
)

// The events of what was agreed: it is due soon, or overdue.
const (
	DueSoon escalation.Kind = api.NoticeDue
	Overdue escalation.Kind = api.NoticeOverdue
)

// A DuePayload is the body of a webhook about what is due. What it is in words is behind the link.
type DuePayload struct {
	ID           string                     `json:"id"`
	Type         string                     `json:"type"` // obligation.due or obligation.overdue
	At           time.Time                  `json:"at"`
	Organisation performatives.Organisation `json:"organisation"`
	Session      performatives.SessionID    `json:"sessionId"`
	Commitment   string                     `json:"commitmentId"`
	Obligation   string                     `json:"obligation"`
	Party        performatives.Agent        `json:"party"`
	For          []performatives.Agent      `json:"for"`
	Delivered    bool                       `json:"delivered,omitzero"` // it waits for an answer
	Due          string                     `json:"due"`
	Link         string                     `json:"link"`
}

func duePayload(note Notification) DuePayload {
	d := note.Due
	return DuePayload{
		ID: note.ID, Type: "obligation." + d.Kind, At: d.At, Organisation: d.Organisation, Session: d.Session, Commitment: d.Commitment,
		Obligation: d.Obligation, Party: d.Party, For: d.For, Delivered: d.Delivered, Due: d.Due, Link: note.Link,
	}
}

// dueOf reads the event of what is due. The token of its subject is its own.
func dueOf(subject string, data []byte) (Notification, error) {
	d := new(api.DueNotice)
	err := json.Unmarshal(data, d)
	return Notification{
		ID: d.Kind + "-" + subject[strings.LastIndexByte(subject, '.')+1:], Event: escalation.Action{Kind: escalation.Kind(d.Kind), At: d.At}, Due: d,
	}, err
}

// dueLink leads to the page of an obligation.
func dueLink(d *api.DueNotice) string {
	return "sessions/" + string(d.Session) + "/obligation?" + url.Values{"commitment": {d.Commitment}, "obligation": {d.Obligation}}.Encode()
}

func dueTime(d *api.DueNotice) string {
	at, err := time.Parse(time.RFC3339Nano, d.Due)
	if err != nil {
		return d.Due
	}
	return at.UTC().Format("2 January 2006, 15:04 UTC")
}

// dueSubject has no text of a party.
func dueSubject(d *api.DueNotice) string {
	switch {
	case escalation.Kind(d.Kind) == Overdue:
		return fmt.Sprintf("[overdue] %s owed it by %s", d.Party, dueTime(d))
	case d.Delivered:
		return fmt.Sprintf("[due] a delivery of %s counts as accepted on %s", d.Party, dueTime(d))
	}
	return fmt.Sprintf("[due] %s owes it by %s", d.Party, dueTime(d))
}

// dueText returns the body of the mail about what is due.
func dueText(note Notification) string {
	d := note.Due
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", dueSubject(d))
	quote(&b, "What was agreed", d.Action)
	quote(&b, "In the deal", d.Purpose)
	fmt.Fprintf(&b, "\nIt is at %s\n\nOpening the link answers nothing.\n", note.Link)
	return b.String()
}
