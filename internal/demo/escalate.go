package demo

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// escalationToHuman is pattern 6.
func escalationToHuman() scene {
	const (
		seller = performatives.Agent("agent://clouds.example/sales/enterprise")
		buyer  = performatives.Agent("agent://acme.example/procurement/alpha")
		human  = performatives.Agent("human://acme.example/alice")
	)
	return scene{
		name: "escalation", title: "Escalation to a human",
		shows:   "The price exceeds the agent's limit: the session pauses until a human of its organisation decides, within her own limit.",
		opening: client.Invitation{With: []performatives.Agent{buyer}, Purpose: "Offer an enterprise plan", MaxDuration: sessionTime},
		cast: []role{
			{agent: seller, name: "Enterprise sales", kind: performatives.KindSystem, rules: sellsPlan},
			{agent: buyer, name: "Procurement alpha", kind: performatives.KindSystem, rules: buysWithin(5000)},
			{agent: human, name: "Alice", rules: approves, limits: []performatives.Limit{{Currency: "USD", MaxAmount: 20000}}},
		},
		steps:   "PROPOSE → ACCEPT → PROPOSE → ESCALATE → INFORM → ACCEPT → CLOSE",
		agreed:  "prop_050",
		outcome: performatives.Completed,
	}
}

type plan struct {
	Seats         int     `json:"seats"`
	Support       string  `json:"support"`
	PricePerMonth float64 `json:"pricePerMonth"`
}

func sellsPlan(ctx context.Context, _ *actor, m *client.Message) error {
	s := m.Session()
	body, ok := m.Body().(*performatives.AcceptBody)
	if !ok {
		return nil
	}
	if m.State() == session.Introduced {
		return sent(s.Propose(ctx, client.Proposal{
			ID: "prop_050", Type: "service-agreement", Subject: "Enterprise plan",
			Terms: plan{Seats: 300, Support: "24/7", PricePerMonth: 15000},
		}))
	}
	return sent(s.Close(ctx, client.Closing{Summary: "Agreed on " + body.ReferenceID, Outcome: performatives.Completed}))
}

// buysWithin accepts up to a limit, escalates higher prices, and then keeps to the
// limit that the human set.
func buysWithin(limit float64) rules {
	var offer string
	var asks plan
	return func(ctx context.Context, _ *actor, m *client.Message) error {
		s := m.Session()
		switch body := m.Body().(type) {
		case *performatives.ProposeBody:
			if isInvitation(m) {
				return sent(s.Accept(ctx, m.Ref()))
			}
			var err error
			if asks, err = client.Terms[plan](m); err != nil {
				return err
			}
			if offer = m.Ref(); asks.PricePerMonth <= limit {
				return sent(s.Accept(ctx, offer))
			}
			return sent(s.Escalate(ctx, client.Escalation{
				Reason: client.AuthorityLimit, Urgency: client.High, About: offer,
				Context: fmt.Sprintf("Proposed commitment of %s/month exceeds my authorized spending limit of %s/month",
					dollars(asks.PricePerMonth), dollars(limit)),
				SuggestedAction: "Approve the commitment or provide a revised budget ceiling",
			}))
		case *performatives.InformBody:
			ruling, ok := body.Ruling()
			if !ok {
				return nil
			}
			if a := ruling.Authority; a != nil && a.MaxAmount != nil {
				limit = *a.MaxAmount
			}
			if ruling.Decision != performatives.Approved || asks.PricePerMonth > limit {
				return sent(s.Reject(ctx, offer, client.Rejection{Code: client.BudgetExceeded, Reason: ruling.Comment, Retryable: true}))
			}
			return sent(s.Accept(ctx, offer))
		default:
			return nil
		}
	}
}

// approves is the human: she reads the item in the escalation inbox and decides.
func approves(ctx context.Context, a *actor, m *client.Message) error {
	if m.Act() != performatives.Escalate {
		return nil
	}
	return a.approve(ctx, m.Session(), m.Ref())
}

func (a *actor) approve(ctx context.Context, s *client.Session, escalation string) error {
	item, err := inEscalationInbox(ctx, a.Client, escalation)
	if err != nil {
		return err
	}
	a.say(fmt.Sprintf("in the escalation inbox of %s: %s, urgency %s, due %s", item.Organisation, item.Reason, item.Urgency, due(item.Deadline)))
	limit := 15000.0
	return sent(s.Rule(ctx, string(item.ID), client.Ruling{
		Decision: performatives.Approved, Comment: "Approved at $15k",
		Authority: &performatives.RulingsAuthority{MaxAmount: &limit, Currency: "USD", TermPath: "terms.pricePerMonth"},
	}))
}

// inEscalationInbox waits for an item: the broker writes it after the transcript,
// so the ESCALATE may arrive before it.
func inEscalationInbox(ctx context.Context, c *client.Client, id string) (api.EscalationItem, error) {
	for {
		for item, err := range c.Escalations(ctx, api.ListEscalations{}) {
			if err != nil || string(item.ID) == id {
				return item, err
			}
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return api.EscalationItem{}, ctx.Err()
		}
	}
}

func due(stamp string) string {
	at, err := time.Parse(time.RFC3339Nano, stamp)
	if err != nil {
		return stamp
	}
	return at.UTC().Format(time.DateTime) + " UTC"
}

// dollars writes a whole amount as $15,000.
func dollars(amount float64) string {
	digits := fmt.Sprintf("%.0f", amount)
	var groups []string
	for len(digits) > 3 {
		groups = append([]string{digits[len(digits)-3:]}, groups...)
		digits = digits[:len(digits)-3]
	}
	return "$" + strings.Join(append([]string{digits}, groups...), ",")
}
