package demo

import (
	"context"

	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/negotiator"
	"github.com/parley-asp/parley/performatives"
)

// haggle is two negotiators, each with a policy, whose offers converge.
func haggle() scene {
	const (
		buyer  = performatives.Agent("agent://cafe.example/buyer")
		seller = performatives.Agent("agent://cups.example/sales")
	)
	return scene{
		name: "haggle", title: "Two negotiators haggle (parley negotiator)",
		shows:   "Each agent is a policy file: what a term is worth to it, how it concedes, and where it stops. Neither sees the other's.",
		opening: client.Invitation{With: []performatives.Agent{seller}, Purpose: "1,000 cups", Mode: "bilateral/1", MaxDuration: sessionTime},
		cast: []role{
			{agent: buyer, name: "Café", kind: performatives.KindSystem, rules: haggles(buysCups)},
			{agent: seller, name: "Cup maker", kind: performatives.KindSystem, rules: haggles(sellsCups)},
		},
		drawn:   "price",
		steps:   "PROPOSE → ACCEPT → PROPOSE → COUNTER → COUNTER → COUNTER → COUNTER → ACCEPT",
		agreed:  "offer-6",
		outcome: "pending",
	}
}

// The policies of the two: the buyer concedes late, the seller early.
const (
	buysCups = `
subject: 1,000 cups
issues: {price: {weight: 3, best: 400, worst: 700, step: 5}, deliveryDays: {weight: 1, best: 3, worst: 21, step: 1}, finish: {weight: 1, values: {matte: 1, glossy: 0.6}}}
fixed: {currency: EUR}
aspiration: 0.95
reservation: 0.35
curve: 0.4
rounds: 6
`
	sellsCups = `
subject: 1,000 cups
issues: {price: {weight: 3, best: 800, worst: 450, step: 5}, deliveryDays: {weight: 1, best: 30, worst: 7, step: 1}, finish: {weight: 1, values: {glossy: 1, matte: 0.8}}}
fixed: {currency: EUR}
aspiration: 0.95
reservation: 0.3
curve: 1.5
rounds: 6
`
)

// haggles answers by a policy: it takes the turns that wait when a message comes, until one
// of them has ended the session.
func haggles(policy string) rules {
	var n *negotiator.Agent
	return func(ctx context.Context, a *actor, m *client.Message) error {
		if n == nil {
			p, err := negotiator.Parse([]byte(policy))
			if err != nil {
				return err
			}
			n = &negotiator.Agent{Self: a.Agent(), Policy: p, Broker: a.Client, Worker: "demo"}
		}
		for {
			did, err := n.Step(ctx)
			if err != nil {
				return err
			}
			if did == "" {
				break
			}
		}
		view, err := m.Session().View(ctx)
		if err == nil && view.State.Over() {
			return errOver
		}
		return err
	}
}
