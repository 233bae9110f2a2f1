package demo

import (
	"context"

	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// rejectionWithRetry is pattern 3.
func rejectionWithRetry() scene {
	const (
		buyer  = performatives.Agent("agent://fund.example/desk/data")
		seller = performatives.Agent("agent://ticks.example/feeds/gateway")
	)
	return scene{
		name: "rejection-with-retry", title: "Rejection with retry",
		shows:   "The terms do not fit, and the REJECT is retryable: the proposer relaxes a term and tries again.",
		opening: client.Invitation{With: []performatives.Agent{seller}, Purpose: "Market data for the trading desk", MaxDuration: sessionTime},
		cast: []role{
			{agent: buyer, name: "Data desk", kind: performatives.KindSystem, rules: buysFeed},
			{agent: seller, name: "Feed gateway", kind: performatives.KindSystem, rules: sellsFeed},
		},
		steps:   "PROPOSE → ACCEPT → PROPOSE → REJECT → PROPOSE → ACCEPT → CLOSE",
		agreed:  "prop_021",
		outcome: performatives.Completed,
	}
}

type feed struct {
	Symbols           int    `json:"symbols"`
	UpdateFrequencyMs int    `json:"updateFrequencyMs"`
	Region            string `json:"region"`
}

// buysFeed asks for updates every 100 ms and is content with every 500 ms.
func buysFeed(ctx context.Context, _ *actor, m *client.Message) error {
	s := m.Session()
	offer := func(id string, every int) error {
		return sent(s.Propose(ctx, client.Proposal{
			ID: id, Type: "data-exchange", Subject: "Real-time market data feed",
			Terms: feed{Symbols: 500, UpdateFrequencyMs: every, Region: "ap-southeast-1"},
		}))
	}
	switch body := m.Body().(type) {
	case *performatives.AcceptBody:
		if m.State() == session.Introduced {
			return offer("prop_020", 100)
		}
		return sent(s.Close(ctx, client.Closing{Summary: "The feed is agreed", Outcome: performatives.Completed}))
	case *performatives.RejectBody:
		if !body.Retryable {
			return sent(s.Close(ctx, client.Closing{Summary: "Proposal rejected without retry option", Outcome: performatives.Abandoned}))
		}
		return offer("prop_021", 500) // relaxed from 100 ms
	default:
		return nil
	}
}

// sellsFeed has no capacity for updates more often than every 500 ms.
func sellsFeed(ctx context.Context, _ *actor, m *client.Message) error {
	s := m.Session()
	if m.Act() != performatives.Propose {
		return nil
	}
	if !isInvitation(m) {
		asked, err := client.Terms[feed](m)
		if err != nil {
			return err
		}
		if asked.UpdateFrequencyMs < 500 {
			return sent(s.Reject(ctx, m.Ref(), client.Rejection{
				Code: client.CapacityUnavailable, Reason: "No capacity for updates more often than every 500 ms", Retryable: true,
			}))
		}
	}
	return sent(s.Accept(ctx, m.Ref()))
}
