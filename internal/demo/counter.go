package demo

import (
	"context"

	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// counterLoop is pattern 2.
func counterLoop() scene {
	const (
		buyer  = performatives.Agent("agent://acme.example/media/buyer")
		seller = performatives.Agent("agent://pixels.example/sales/capacity")
	)
	return scene{
		name: "counter-loop", title: "Counter loop",
		shows:   "The terms nearly fit: each COUNTER replaces the previous offer with a new one, until one is accepted.",
		opening: client.Invitation{With: []performatives.Agent{seller}, Purpose: "Image processing capacity", MaxDuration: sessionTime},
		cast: []role{
			{agent: buyer, name: "Media buyer", kind: performatives.KindSystem, rules: buysImages()},
			{agent: seller, name: "Capacity desk", kind: performatives.KindSystem, rules: sellsImages},
		},
		steps:   "PROPOSE → ACCEPT → PROPOSE → COUNTER → COUNTER → ACCEPT → CLOSE",
		agreed:  "prop_012",
		outcome: performatives.Completed,
	}
}

type images struct {
	Concurrency     int     `json:"concurrency"`
	MaxLatencyMs    int     `json:"maxLatencyMs"`
	PricePerRequest float64 `json:"pricePerRequest"`
	Final           bool    `json:"final,omitzero"`
}

// buysImages accepts an offer that is cheap and fast enough. The protocol does not
// limit the number of counters, so the agent does: its second offer is its last.
func buysImages() rules {
	const maxRounds = 2
	rounds := 0
	return func(ctx context.Context, _ *actor, m *client.Message) error {
		s := m.Session()
		switch body := m.Body().(type) {
		case *performatives.AcceptBody:
			if m.State() == session.Introduced {
				return sent(s.Propose(ctx, client.Proposal{
					ID: "prop_010", Type: "service-agreement", Subject: "Image processing capacity",
					Terms: images{Concurrency: 100, MaxLatencyMs: 200, PricePerRequest: 0.005},
				}))
			}
			return sent(s.Close(ctx, client.Closing{Summary: "Agreed on " + body.ReferenceID, Outcome: performatives.Completed}))
		case *performatives.CounterBody:
			offer, err := client.Terms[images](m)
			if err != nil {
				return err
			}
			rounds++
			switch {
			case offer.PricePerRequest <= 0.004 && offer.MaxLatencyMs <= 400:
				return sent(s.Accept(ctx, m.Ref()))
			case rounds >= maxRounds:
				return sent(s.Reject(ctx, m.Ref(), client.Rejection{Reason: "That was the final offer"}))
			default:
				return sent(s.Counter(ctx, m.Ref(), client.Proposal{
					ID: "prop_012", Terms: images{Concurrency: 75, MaxLatencyMs: 350, PricePerRequest: 0.004, Final: true},
				}, client.Because("Need latency under 400 ms")))
			}
		default:
			return nil
		}
	}
}

// sellsImages offers 350 ms up to 75 concurrent requests, else 500 ms.
func sellsImages(ctx context.Context, _ *actor, m *client.Message) error {
	s := m.Session()
	if isInvitation(m) {
		return sent(s.Accept(ctx, m.Ref()))
	}
	if m.Act() != performatives.Propose && m.Act() != performatives.Counter {
		return nil
	}
	asked, err := client.Terms[images](m)
	if err != nil {
		return err
	}
	latency := 500
	if asked.Concurrency <= 75 {
		latency = 350
	}
	if asked.MaxLatencyMs >= latency {
		return sent(s.Accept(ctx, m.Ref()))
	}
	return sent(s.Counter(ctx, m.Ref(), client.Proposal{
		ID: "prop_011", Terms: images{Concurrency: asked.Concurrency, MaxLatencyMs: latency, PricePerRequest: 0.004},
	}, client.Because("Can't do 200 ms at that concurrency")))
}
