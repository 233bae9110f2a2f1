package demo

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/negotiator"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/render"
	"github.com/parley-asp/parley/tender"
	"github.com/parley-asp/parley/transcript"
)

// tenders are the sessions of one tender: a buyer and three sellers, each with a policy.
func tenders() []scene {
	const buyer = performatives.Agent("agent://cafe.example/buyer")
	const haggling = "PROPOSE → ACCEPT → PROPOSE → COUNTER → COUNTER → COUNTER → COUNTER → COUNTER → COUNTER → COUNTER → "
	of := func(name, title string, seller performatives.Agent, policy string) scene {
		return scene{
			name: name, title: title,
			cast: []role{
				{agent: buyer, name: "Café", kind: performatives.KindSystem},
				{agent: seller, name: title, kind: performatives.KindSystem, rules: toTheEnd(haggles(policy))},
			},
			drawn: "price", steps: haggling + "REJECT → CLOSE", outcome: performatives.Abandoned,
		}
	}
	chosen := of("tender-cup-maker", "Cup maker", "agent://cups.example/sales", cupMaker)
	chosen.steps, chosen.agreed, chosen.outcome = haggling+"ACCEPT → CLOSE", "offer-9", performatives.Completed
	return []scene{
		of("tender-pottery", "Pottery", "agent://pottery.example/sales", pottery), chosen,
		of("tender-print-shop", "Print shop", "agent://prints.example/sales", printShop),
	}
}

// toTheEnd reads on after the session is over.
func toTheEnd(decide rules) rules {
	return func(ctx context.Context, a *actor, m *client.Message) error {
		if err := decide(ctx, a, m); !errors.Is(err, errOver) {
			return err
		}
		return nil
	}
}

const tenderSchema = "demo-cups-v1"

var cups = map[string]any{
	"type": "object", "required": []string{"price", "deliveryDays"},
	"properties": map[string]any{"price": map[string]any{"type": "number"}, "deliveryDays": map[string]any{"type": "number"}},
}

// The policies: the buyer concedes late, each seller at its own pace and to its own limit.
const (
	asksForCups = `
issues: {price: {weight: 3, best: 400, worst: 700, step: 5}, deliveryDays: {best: 3, worst: 30, step: 1}}
aspiration: 0.95
reservation: 0.5
curve: 0.5
rounds: 4
`
	pottery = `
issues: {price: {weight: 3, best: 900, worst: 600, step: 5}, deliveryDays: {best: 30, worst: 14, step: 1}}
reservation: 0.3
rounds: 5
`
	cupMaker = `
issues: {price: {weight: 3, best: 800, worst: 450, step: 5}, deliveryDays: {best: 30, worst: 7, step: 1}}
reservation: 0.2
rounds: 5
`
	printShop = `
issues: {price: {weight: 3, best: 700, worst: 500, step: 5}, deliveryDays: {best: 21, worst: 5, step: 1}}
reservation: 0.4
curve: 0.5
rounds: 5
`
)

// tender plays the sessions of a tender side by side.
func (s *stage) tender(ctx context.Context, list []scene, p *printer) []played {
	if !p.quiet {
		p.heading("A tender (parley find --tender)")
		p.prose("One buyer asks three sellers for the same cups, by one terms schema, and answers each by its policy. No seller sees the others.")
	}
	ctx, cancel := context.WithTimeout(ctx, sceneTime)
	defer cancel()
	all := make([]played, len(list))
	fail := func(err error) []played {
		for i := range all {
			all[i].err = errors.Join(all[i].err, err)
		}
		return all
	}
	entered, err := s.enter(ctx, list[0].cast[0])
	if err != nil {
		return fail(err)
	}
	buyer := entered.Client
	defer s.leave(buyer)
	policy, err := negotiator.Parse([]byte(asksForCups))
	if err != nil {
		return fail(err)
	}
	if _, err := buyer.PutSchema(ctx, tenderSchema, cups); err != nil {
		return fail(err)
	}
	t, err := tender.New(buyer, tender.Request{Subject: "1,000 cups", Schema: tenderSchema})
	if err != nil {
		return fail(err)
	}
	t.Policy = policy
	var sellers []*actor
	var agents []performatives.Agent
	defer func() {
		for _, a := range sellers {
			s.leave(a.Client)
		}
	}()
	for i := range list {
		a, err := s.enter(ctx, list[i].cast[1])
		if err != nil {
			return fail(err)
		}
		sellers, agents = append(sellers, a), append(agents, a.Agent())
	}
	if err := t.Invite(ctx, agents, 0); err != nil {
		return fail(err)
	}
	bids, err := t.Bids(ctx)
	if err != nil {
		return fail(err)
	}
	// The sellers answer, and the buyer hears them, in each session; it decides over all.
	heard := make(chan struct{}, 1)
	records := make([]*record, len(list))
	cast := slices.Clone(sellers)
	for i := range list {
		all[i].id, records[i] = bids[i].Session, newRecord(func(transcript.Entry) {})
		cast = append(cast, &actor{Client: buyer})
	}
	cast = append(cast, &actor{Client: buyer})
	err = together(ctx, cast, func(ctx context.Context, i int) error {
		switch n := len(list); {
		case i < n:
			return cast[i].run(ctx, bids[i].Session, list[i].cast[1].rules, records[i].add)
		case i < 2*n:
			return hears(ctx, buyer.Session(bids[i-n].Session), records[i-n].add, heard)
		}
		return p.decides(ctx, buyer, t, heard)
	})
	if err != nil {
		return fail(err)
	}
	for i := range all {
		session := buyer.Session(all[i].id)
		all[i].received = records[i].entries
		if all[i].entries, all[i].err = session.Transcript(ctx); all[i].err == nil {
			all[i].view, all[i].err = session.View(ctx)
		}
	}
	return all
}

// hears reads a session until it is over.
func hears(ctx context.Context, s *client.Session, received func(transcript.Entry), heard chan<- struct{}) error {
	for m, err := range s.Messages(ctx) {
		if err != nil {
			return err
		}
		received(m.Entry)
		if err := m.Ack(); err != nil {
			return err
		}
		select {
		case heard <- struct{}{}:
		default: // it will look anyway
		}
	}
	return nil
}

// decides answers all offers of a round together, and accepts the best one when the policy
// has no better one to ask for.
func (p *printer) decides(ctx context.Context, buyer *client.Client, t *tender.Tender, heard <-chan struct{}) error {
	rule := tender.Rule{Policy: t.Policy}
	for round := 1; ; {
		bids, err := t.Bids(ctx)
		if err != nil {
			return err
		}
		if !tender.Settled(bids) { // the request goes at once to who has joined
			joined := slices.DeleteFunc(bids, func(b tender.Bid) bool { return b.Offers > 0 })
			if _, err := t.Advance(ctx, joined); err != nil {
				return err
			}
		} else {
			p.bids(round, bids, rule)
			round++
			said, err := t.Advance(ctx, bids)
			if err != nil {
				return err
			}
			if said == 0 {
				return p.accepts(ctx, buyer, t, rule, bids)
			}
		}
		select {
		case <-heard:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (p *printer) accepts(ctx context.Context, buyer *client.Client, t *tender.Tender, rule tender.Rule, bids []tender.Bid) error {
	best, found := rule.Best(bids)
	if !found {
		return errors.New("no offer came in")
	}
	p.remark("The café accepts the offer of " + string(best.Agent) + ", and then withdraws from the others.")
	p.print("\n")
	if err := t.Accept(ctx, best); err != nil {
		return err
	}
	_, err := buyer.Session(best.Session).Close(ctx, client.Closing{Outcome: performatives.Completed, Summary: "Ordered"})
	return err
}

// bids prints the offers of a round beside each other.
func (p *printer) bids(round int, bids []tender.Bid, rule tender.Rule) {
	if p.quiet {
		return
	}
	p.print(fmt.Sprintf("Round %d\n%s\n", round, render.Bids(rule.Rows(bids), p.style)))
}
