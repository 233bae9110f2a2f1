package demo

import (
	"context"

	"github.com/go-json-experiment/json"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// convergentRounds is a session in convergent/1: MACP's vendor and client, who
// refine a plan until both accept the same one, and a coordinator who commits.
func convergentRounds() scene {
	const (
		coordinator = performatives.Agent("agent://market.example/coordinator")
		vendor      = performatives.Agent("agent://vendor.example/sales/plans")
		customer    = performatives.Agent("agent://client.example/procurement/services")
	)
	return scene{
		name: "convergent", title: "Rounds until all agree (convergent/1)",
		shows: "Peers counter until all have accepted the same offer, including its author; then the coordinator commits.",
		opening: client.Invitation{
			With: []performatives.Agent{vendor, customer}, Purpose: "Negotiate service contract terms", Mode: "convergent/1", MaxDuration: sessionTime,
			Policy: map[string]any{"initiatorRole": "coordinator", "maxRounds": 5},
		},
		cast: []role{
			{agent: coordinator, name: "Coordinator", kind: performatives.KindSystem, rules: coordinates()},
			{agent: vendor, name: "Vendor", kind: performatives.KindSystem, rules: sellsPlans},
			{agent: customer, name: "Client", kind: performatives.KindSystem, rules: buysPlans},
		},
		steps:   "PROPOSE → ACCEPT → ACCEPT → PROPOSE → COUNTER → COUNTER → ACCEPT → ACCEPT → COMMIT → INFORM → CLOSE",
		agreed:  "p3",
		outcome: performatives.Completed,
	}
}

type contract struct {
	Plan       string  `json:"plan"`
	Price      float64 `json:"pricePerYear"`
	TermMonths int     `json:"termMonths"`
	Reviews    string  `json:"reviews,omitzero"`
}

// coordinates neither proposes nor accepts. It commits the offer that the peers
// converge on, and closes when the work has begun.
func coordinates() rules {
	committed := false
	return func(ctx context.Context, _ *actor, m *client.Message) error {
		s := m.Session()
		switch m.Act() {
		case performatives.Accept:
			view, err := s.View(ctx)
			if err != nil {
				return err
			}
			agreed := acceptedProposal(view)
			if agreed == "" || committed {
				return nil
			}
			committed = true
			return sent(s.Commit(ctx, client.Commitment{For: agreed, Action: "contract.agreed", AuthorityScope: "procurement"},
				client.Because("Both parties accepted "+agreed)))
		case performatives.Inform:
			return sent(s.Close(ctx, client.Closing{Summary: "The contract is in force", Outcome: performatives.Completed}))
		default:
			return nil
		}
	}
}

// acceptedProposal returns the offer that the peers have converged on, or "".
func acceptedProposal(v api.SessionView) string {
	var of struct {
		Projection struct {
			AcceptedProposal string `json:"acceptedProposal"`
		} `json:"projection"`
	}
	if json.Unmarshal(v.ModePart, &of) != nil {
		return ""
	}
	return of.Projection.AcceptedProposal
}

// sellsPlans proposes after the last acceptance of the invitation, and lowers its
// price once.
func sellsPlans(ctx context.Context, _ *actor, m *client.Message) error {
	s := m.Session()
	open := func() error {
		return sent(s.Propose(ctx, client.Proposal{
			ID: "p1", Type: "service-agreement", Subject: "Plan A", Terms: contract{Plan: "Plan A", Price: 50000, TermMonths: 6},
		}))
	}
	switch body := m.Body().(type) {
	case *performatives.ProposeBody:
		receipt, err := s.Accept(ctx, m.Ref())
		if err != nil || receipt.State != session.Introduced {
			return err
		}
		return open()
	case *performatives.AcceptBody:
		if m.State() == session.Introduced {
			return open()
		}
		if m.State() == session.Conversing {
			return sent(s.Accept(ctx, body.ReferenceID, client.Because("agreed")))
		}
		return nil
	case *performatives.CounterBody:
		return sent(s.Counter(ctx, m.Ref(), client.Proposal{
			ID: "p3", Subject: "Plan A Final", Terms: contract{Plan: "Plan A", Price: 47000, TermMonths: 12, Reviews: "quarterly"},
		}))
	case *performatives.CommitBody:
		return sent(s.Inform(ctx, performatives.Fact, map[string]any{"contract": m.Ref(), "started": true}))
	default:
		return nil
	}
}

// buysPlans pays up to 47,000 a year for a year with reviews.
func buysPlans(ctx context.Context, _ *actor, m *client.Message) error {
	s := m.Session()
	if isInvitation(m) {
		return sent(s.Accept(ctx, m.Ref()))
	}
	if m.Act() != performatives.Propose && m.Act() != performatives.Counter {
		return nil
	}
	offer, err := client.Terms[contract](m)
	if err != nil {
		return err
	}
	if offer.Price <= 47000 && offer.TermMonths >= 12 && offer.Reviews != "" {
		return sent(s.Accept(ctx, m.Ref(), client.Because("terms acceptable")))
	}
	return sent(s.Counter(ctx, m.Ref(), client.Proposal{
		ID: "p2", Subject: "Plan A Revised", Terms: contract{Plan: "Plan A", Price: 45000, TermMonths: 12},
	}))
}
