package demo

import (
	"context"

	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// simpleAccept is pattern 1. It goes through every state: agreement, commitment,
// execution, close.
func simpleAccept() scene {
	const (
		seller = performatives.Agent("agent://myorg.example/sales/bot")
		buyer  = performatives.Agent("agent://partner.example/procurement/buyer")
	)
	return scene{
		name: "simple-accept", title: "Simple accept",
		shows: "The buyer accepts the terms as they are. A commitment binds them, the seller delivers, and the session closes.",
		opening: client.Invitation{
			With: []performatives.Agent{buyer}, Purpose: "Offer log ingestion pipeline",
			Schemas: []string{"service-agreement-v1"}, MaxDuration: sessionTime,
		},
		cast: []role{
			{agent: seller, name: "Sales bot", kind: performatives.KindSystem, rules: sellsIngestion(buyer)},
			{agent: buyer, name: "Procurement", kind: performatives.KindSystem, rules: buysIngestion},
		},
		steps:   "PROPOSE → ACCEPT → PROPOSE → ACCEPT → COMMIT → ACCEPT → INFORM → CLOSE",
		agreed:  "prop_001",
		outcome: performatives.Completed,
	}
}

type ingestion struct {
	Throughput    string  `json:"throughput"`
	Retention     string  `json:"retention"`
	PricePerMonth float64 `json:"pricePerMonth"`
}

// sellsIngestion proposes after the invitation was accepted, commits after the
// offer was, and delivers after the commitment was.
func sellsIngestion(buyer performatives.Agent) rules {
	return func(ctx context.Context, a *actor, m *client.Message) error {
		s := m.Session()
		accepted, ok := m.Body().(*performatives.AcceptBody)
		if !ok {
			return nil
		}
		switch m.State() {
		case session.Introduced:
			return sent(s.Propose(ctx, client.Proposal{
				ID: "prop_001", Type: "service-agreement", Subject: "Log ingestion pipeline",
				Terms: ingestion{Throughput: "5000 events/sec", Retention: "30 days", PricePerMonth: 250},
			}))
		case session.Conversing:
			return sent(s.Commit(ctx, client.Commitment{
				ID: "commit_001", For: accepted.ReferenceID,
				Obligations: []performatives.Obligation{
					{Party: a.Agent(), Action: "ingest 5,000 events/sec and keep them for 30 days", VerificationMethod: "throughput report"},
					{Party: buyer, Action: "pay 250 per month"},
				},
			}))
		default:
			return sent(s.Inform(ctx, performatives.Result, map[string]any{"pipeline": "live", "measured": "5000 events/sec"}))
		}
	}
}

// buysIngestion accepts up to 300 a month, and closes when it has the result.
func buysIngestion(ctx context.Context, _ *actor, m *client.Message) error {
	s := m.Session()
	switch m.Body().(type) {
	case *performatives.ProposeBody:
		if isInvitation(m) {
			return sent(s.Accept(ctx, m.Ref()))
		}
		offer, err := client.Terms[ingestion](m)
		if err != nil {
			return err
		}
		if offer.PricePerMonth > 300 {
			return sent(s.Reject(ctx, m.Ref(), client.Rejection{Code: client.BudgetExceeded, Reason: "More than 300 per month", Retryable: true}))
		}
		return sent(s.Accept(ctx, m.Ref()))
	case *performatives.CommitBody:
		return sent(s.Accept(ctx, m.Ref()))
	case *performatives.InformBody:
		return sent(s.Close(ctx, client.Closing{Summary: "Log ingestion runs as agreed", Outcome: performatives.Completed}))
	default:
		return nil
	}
}
