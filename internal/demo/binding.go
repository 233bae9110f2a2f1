package demo

import (
	"context"
	"time"

	"github.com/parley-asp/parley/agreement"
	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/internal/background"
	"github.com/parley-asp/parley/performatives"
)

// signedAgreement is a session in binding/1: OAP RFC-0002's offer of weather forecasts,
// countered once. Its acceptance is an agreement that both have signed.
func signedAgreement() scene {
	const (
		buyer  = performatives.Agent("agent://travel.example/planner")
		seller = performatives.Agent("agent://weather.example/forecasts")
	)
	return scene{
		name: "binding", title: "A signed agreement (binding/1)",
		shows: "Each offer is signed as the agreement that it would become; the first acceptance binds.",
		opening: client.Invitation{
			With: []performatives.Agent{seller}, Purpose: "Detailed forecasts for trip planning", Mode: "binding/1", MaxDuration: sessionTime,
			Policy: map[string]any{"categories": []string{"pricing"}, "maxRounds": 4},
		},
		cast: []role{
			{agent: buyer, name: "Trip planner", kind: performatives.KindSystem, signs: true, rules: buysForecasts(seller)},
			{agent: seller, name: "Forecasts", kind: performatives.KindSystem, signs: true, rules: sellsForecasts(buyer)},
		},
		steps:   "PROPOSE → ACCEPT → PROPOSE → COUNTER → ACCEPT",
		agreed:  "p2",
		outcome: "accepted",
	}
}

type forecasts struct {
	Action  string `json:"action"`
	Calls   int    `json:"calls_per_month"`
	Price   string `json:"price_per_call_eur"`
	Billing string `json:"billing_interval"`
}

// bind signs an offer that both parties keep for half a year, at the end of the transcript.
func bind(ctx context.Context, s *client.Session, with performatives.Agent) ([]client.ActOption, error) {
	begin := time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, 1)
	head, err := s.Head(ctx)
	return []client.ActOption{
		client.LinkTo(head), client.Bind(client.Agreement{With: with, From: begin, Until: begin.AddDate(0, 6, 0), Category: "pricing"}),
	}, err
}

func buysForecasts(seller performatives.Agent) rules {
	return func(ctx context.Context, _ *actor, m *client.Message) error {
		s := m.Session()
		switch m.Act() {
		case performatives.Accept:
			options, err := bind(ctx, s, seller)
			if err != nil {
				return err
			}
			return sent(s.Propose(ctx, client.Proposal{
				ID: "p1", Type: "service-agreement", Subject: "Forecasts",
				Terms: forecasts{Action: "weather.forecast.detailed", Calls: 100_000, Price: "0.0030", Billing: "month"},
			}, options...))
		case performatives.Counter:
			head, err := s.Head(ctx)
			if err != nil {
				return err
			}
			return sent(s.Accept(ctx, m.Ref(), client.LinkTo(head), client.Sign(m)))
		default:
			return nil
		}
	}
}

func sellsForecasts(buyer performatives.Agent) rules {
	return func(ctx context.Context, _ *actor, m *client.Message) error {
		s := m.Session()
		if isInvitation(m) {
			return sent(s.Accept(ctx, m.Ref()))
		}
		if m.Act() != performatives.Propose {
			return nil
		}
		offer, err := client.Terms[forecasts](m)
		if err != nil {
			return err
		}
		offer.Price = "0.0040"
		options, err := bind(ctx, s, buyer)
		if err != nil {
			return err
		}
		return sent(s.Counter(ctx, m.Ref(), client.Proposal{ID: "p2", Terms: offer}, options...))
	}
}

// logPoll is how often the demo asks whether an agreement is in the public log.
const logPoll = 50 * time.Millisecond

// logged is the agreement of a session, once the public log has it.
func logged(ctx context.Context, c *client.Client, id performatives.SessionID) (agreement.Document, error) {
	var wanted api.GetAgreement
	for row, err := range c.Agreements(ctx, api.ListAgreements{Session: id}) {
		if err != nil {
			return agreement.Document{}, err
		}
		wanted.Agreement = row.Agreement
	}
	for {
		d, err := c.Agreement(ctx, wanted)
		if err != nil || d.Log != nil {
			return d, err
		}
		if err := background.Pause(ctx, logPoll); err != nil {
			return d, err
		}
	}
}
