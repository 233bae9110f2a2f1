package notify

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/internal/webhook"
	"github.com/parley-asp/parley/performatives"
)

// A Payload is the body of a webhook. It has no text of the conversation: that is
// behind the link, which needs a sign-in.
type Payload struct {
	ID         string                     `json:"id"`   // the same on every attempt
	Type       string                     `json:"type"` // "escalation." and the event's kind
	At         time.Time                  `json:"at"`
	Escalation string                     `json:"escalationId"`
	Session    performatives.SessionID    `json:"sessionId"`
	Org        performatives.Organisation `json:"organisation"`
	Asks       performatives.Agent        `json:"asks"`
	Reason     string                     `json:"reason"`
	Urgency    string                     `json:"urgency"`
	Status     string                     `json:"status"` // when this is sent
	Due        string                     `json:"due"`
	Amount     *escalation.Amount         `json:"amount,omitzero"`
	By         performatives.Agent        `json:"by,omitzero"` // absent for events of the clock
	To         performatives.Agent        `json:"to,omitzero"`
	Absent     performatives.Agent        `json:"absent,omitzero"`  // whom To stands in for
	Allowed    *Allowed                   `json:"allowed,omitzero"` // by a decision that approves; {} is no bound
	Link       string                     `json:"link"`
}

// Allowed is what a decision allows the agent.
type Allowed struct {
	performatives.RulingsAuthority `json:",embed"`
	More                           int `json:"moreBounds,omitzero"` // that say what the counterparty wrote: they are behind the link
}

// plainPath is one that holds no sentence.
var plainPath = regexp.MustCompile(`^[A-Za-z0-9_]{1,40}(\.[A-Za-z0-9_]{1,40}){0,4}$`)

// allowed is what a decision allows, nil for one that approves nothing.
func allowed(note Notification) *Allowed {
	a, decided := allows(note)
	if !decided {
		return nil
	}
	shown := new(Allowed)
	if a == nil {
		return shown
	}
	shown.RulingsAuthority = *a
	shown.Bounds = slices.DeleteFunc(slices.Clone(a.Bounds), func(b performatives.RulingsBound) bool {
		return !plainPath.MatchString(b.TermPath) || b.Equals != nil && !slices.Contains([]jsontext.Kind{'0', 't', 'f'}, b.Equals.Kind())
	})
	shown.More = len(a.Bounds) - len(shown.Bounds)
	if !plainPath.MatchString(a.TermPath) {
		shown.TermPath = ""
	}
	return shown
}

// allows is what the item's approvals allow, once it is decided.
func allows(note Notification) (a *performatives.RulingsAuthority, decided bool) {
	it := &note.Item
	if note.Event.Kind != escalation.Decided || it.Confirms() || !escalation.Approves(it.Status) {
		return nil, false
	}
	return it.InForce()
}

// webhooks follows no redirects, so it only calls addresses that the operator configured.
var webhooks = &http.Client{
	Timeout:       attempt,
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

func (w *Webhook) wants(k escalation.Kind) bool { return slices.Contains(w.Events, k) }

// An EnrolledPayload is the body of a webhook about an enrolled device.
type EnrolledPayload struct {
	ID     string              `json:"id"`
	Type   string              `json:"type"` // human.enrolled
	At     time.Time           `json:"at"`
	Human  performatives.Agent `json:"human"`
	Device api.Device          `json:"device"`
	Link   string              `json:"link"`
}

// An AskedPayload is the body of a webhook about a check. Its scope is behind the link.
type AskedPayload struct {
	ID         string                  `json:"id"`
	Type       string                  `json:"type"` // check.asked
	At         time.Time               `json:"at"`
	Human      performatives.Agent     `json:"human"`
	Session    performatives.SessionID `json:"sessionId"`
	Delegation string                  `json:"delegationId"`
	From       performatives.Agent     `json:"from"`
	OnBehalfOf performatives.Agent     `json:"onBehalfOf"`
	Authority  string                  `json:"authority"`
	ValidUntil string                  `json:"validUntil,omitzero"`
	Link       string                  `json:"link"`
}

func askedPayload(note Notification) AskedPayload {
	a := note.Asked
	return AskedPayload{
		ID: note.ID, Type: "check." + string(Asked), At: a.At, Human: a.Human, Session: a.Session, Delegation: string(a.Delegation),
		From: a.From, OnBehalfOf: a.OnBehalfOf, Authority: a.Authority, ValidUntil: a.ValidUntil, Link: note.Link,
	}
}

// currency is a currency's code.
var currency = regexp.MustCompile(`^[A-Za-z]{3}$`)

// stake is the amount at stake, without a currency that is some other text: the
// counterparty may have written it.
func stake(it *api.EscalationItem) *escalation.Amount {
	if it.Amount == nil || currency.MatchString(it.Amount.Currency) {
		return it.Amount
	}
	plain := *it.Amount
	plain.Currency = ""
	return &plain
}

// payload returns the body for an event.
func payload(note Notification) any {
	it, e := &note.Item, note.Event
	if note.Asked != nil {
		return askedPayload(note)
	}
	if note.Week != nil {
		return digestPayload(note)
	}
	if note.Due != nil {
		return duePayload(note)
	}
	if of := note.Enrolled; of != nil {
		return EnrolledPayload{ID: note.ID, Type: "human." + string(e.Kind), At: e.At, Human: of.Human, Device: of.Device, Link: note.Link}
	}
	return Payload{
		ID: note.ID, Type: "escalation." + string(e.Kind), At: e.At, Escalation: string(it.ID), Session: it.Session,
		Org: it.Organisation, Asks: it.By, Reason: it.Reason, Urgency: it.Urgency, Status: it.Status, Due: it.AnswerDue(), Amount: stake(it),
		By: e.By, To: e.To, Absent: e.Absent, Allowed: allowed(note), Link: note.Link,
	}
}

// send posts an event.
func (w *Webhook) send(ctx context.Context, note Notification, now time.Time) (who string, err error) {
	body, err := json.Marshal(payload(note))
	if err != nil {
		return "", err
	}
	host, err := webhook.Call{ID: note.ID, At: now, Body: body}.Post(ctx, webhooks, w.URL, w.secret)
	if errors.Is(err, webhook.ErrGone) {
		return "", fmt.Errorf("%w: %w", err, errPermanent)
	}
	if err != nil {
		return "", err
	}
	return "webhook " + host, nil
}
