package notify

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
)

// Asked is the event that something was delegated to a human.
const Asked escalation.Kind = "asked"

// maxAsked is how many checks in an hour a target hears of for one human: any agent may
// delegate. The page and the command line list them all.
const maxAsked = 30

// admits counts a check, unless there were too many in the last hour.
func (n *Notifier) admits(target string, human performatives.Agent) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	key, now := target+" "+string(human), n.Now()
	recent := slices.DeleteFunc(n.checks[key], func(at time.Time) bool { return now.Sub(at) >= time.Hour })
	ok := len(recent) < maxAsked
	if ok {
		recent = append(recent, now)
	}
	n.checks[key] = recent
	return ok
}

func asked(data []byte) (Notification, error) {
	a := new(api.Asked)
	err := json.Unmarshal(data, a)
	return Notification{ID: "asked-" + string(a.Delegation), Event: escalation.Action{Kind: Asked, At: a.At, By: a.From, To: a.Human}, Asked: a}, err
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

// askedText returns the body of the mail about a check.
func askedText(note Notification) string {
	a := note.Asked
	var b strings.Builder
	fmt.Fprintf(&b, "%s asks %s to check something.\n\n", a.From, a.Human)
	fmt.Fprintf(&b, "  %-12s %s\n", "Authority", a.Authority)
	if a.OnBehalfOf != a.From {
		fmt.Fprintf(&b, "  %-12s %s\n", "For", a.OnBehalfOf)
	}
	if until, err := time.Parse(time.RFC3339Nano, a.ValidUntil); err == nil {
		fmt.Fprintf(&b, "  %-12s %s\n", "Until", until.UTC().Format("2 January 2006, 15:04 UTC"))
	}
	whose := "In its own words"
	if a.From.Organisation() != a.Human.Organisation() {
		whose = "Written by another organisation (their word, not a fact)"
	}
	quote(&b, whose, a.Scope)
	fmt.Fprintf(&b, "\nAnswer at %s\n\nOpening the link answers nothing: you sign in there, read, and sign what you send.\n", note.Link)
	return b.String()
}
