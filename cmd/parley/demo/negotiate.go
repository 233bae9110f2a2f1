package demo

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/parley-asp/parley/api/render"
	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/client/negotiator"
	"github.com/parley-asp/parley/client/tender"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session/transcript"
)

// negotiate has the agents with a policy take the turns that wait for them, until the session
// is over. A script could not say what they say: that is the policies' to decide.
func (p *player) negotiate(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, a := range p.actors {
		if a.policy != "" {
			g.Go(func() error { return p.decide(ctx, a) })
		}
	}
	return g.Wait()
}

// decide takes the turns of one agent.
func (p *player) decide(ctx context.Context, a *actor) error {
	policy, err := negotiator.Parse([]byte(a.policy))
	if err != nil {
		return err
	}
	n := &negotiator.Agent{Self: a.Agent(), Policy: policy, Broker: a.Client, Worker: "demo"}
	for {
		var read uint64
		p.between(func() { read = p.received[a.Agent()] })
		for did := "none"; did != ""; {
			if did, err = n.Step(ctx); err != nil {
				return err
			}
		}
		over := false
		if err := p.until(ctx, func() bool {
			over = p.over()
			return over || p.received[a.Agent()] > read
		}); err != nil || over {
			return err
		}
	}
}

const tenderSchema = "demo-cups-v1"

var cups = map[string]any{
	"type": "object", "required": []string{"price", "deliveryDays"},
	"properties": map[string]any{"price": map[string]any{"type": "number"}, "deliveryDays": map[string]any{"type": "number"}},
}

// tender plays the sessions of a tender side by side: their scenes say who takes part, and by
// which policy.
func (s *stage) tender(ctx context.Context, list []scene, p *printer) []played {
	if !p.quiet {
		p.heading("A tender (parley find --tender)")
		p.prose("One buyer asks three sellers for the same cups, by one terms schema, and answers each by its policy. No seller sees the others.")
	}
	ctx, cancel := context.WithTimeout(ctx, sceneTime)
	defer cancel()
	happened := make(chan struct{}, 1)
	players, all := make([]*player, len(list)), make([]played, len(list))
	for i := range list {
		players[i] = s.player(func(transcript.Entry) {
			select {
			case happened <- struct{}{}:
			default: // the buyer will look anyway
			}
		}, p.remark)
	}
	defer func() {
		for _, p := range players {
			p.leave()
		}
	}()
	err := s.compete(ctx, list, players, func(ctx context.Context, buyer *actor, t *tender.Tender) error {
		return p.choose(ctx, buyer.Client, t, happened)
	})
	for i, p := range players {
		all[i] = p.result(ctx, err)
	}
	return all
}

// compete has each seller answer in its session, and the buyer choose over all.
func (s *stage) compete(ctx context.Context, list []scene, players []*player, choose func(context.Context, *actor, *tender.Tender) error) error {
	buyer, err := s.enter(ctx, &list[0].roles[0])
	if err != nil {
		return err
	}
	defer s.leave(buyer.Client)
	policy, err := negotiator.Parse([]byte(buyer.policy))
	if err != nil {
		return err
	}
	if _, err := buyer.PutSchema(ctx, tenderSchema, cups); err != nil {
		return err
	}
	t, err := tender.New(buyer.Client, tender.Request{Subject: "1,000 cups", Schema: tenderSchema})
	if err != nil {
		return err
	}
	t.Policy = policy
	var sellers []performatives.Agent
	for i, p := range players {
		if err := p.enter(ctx, list[i].roles[1:]); err != nil {
			return err
		}
		sellers = append(sellers, p.actors[0].Agent())
	}
	if err := t.Invite(ctx, sellers, 0); err != nil {
		return err
	}
	bids, err := t.Bids(ctx)
	if err != nil {
		return err
	}
	records := make([]*record, len(players))
	for i, p := range players {
		p.is(bids[i].Session)
		records[i] = p.record
	}
	inboxes := []inbox{func(ctx context.Context) error { return buyer.read(ctx, records...) }}
	for _, p := range players {
		inboxes = append(inboxes, func(ctx context.Context) error { return p.actors[0].read(ctx, p.record) })
	}
	return reading(ctx, inboxes, func(ctx context.Context) error {
		g, ctx := errgroup.WithContext(ctx)
		for _, p := range players {
			g.Go(func() error { return p.negotiate(ctx) })
		}
		g.Go(func() error { return choose(ctx, buyer, t) })
		return g.Wait()
	})
}

// choose answers all offers of a round together, and accepts the best one when the policy
// has no better one to ask for.
func (p *printer) choose(ctx context.Context, buyer *client.Client, t *tender.Tender, happened <-chan struct{}) error {
	rule := tender.Rule{Policy: t.Policy}
	for round := 1; ; {
		bids, err := t.Bids(ctx)
		if err != nil {
			return err
		}
		complete := tender.Complete(bids)
		ours := bids
		if complete {
			p.bids(round, bids, rule)
			round++
		} else { // the request goes at once to who has joined
			ours = slices.DeleteFunc(bids, func(b tender.Bid) bool { return b.Offers > 0 })
		}
		said, err := t.Advance(ctx, ours)
		switch {
		case err != nil:
			return err
		case complete && said == 0:
			return p.accept(ctx, buyer, t, rule, bids)
		}
		select {
		case <-happened:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (p *printer) accept(ctx context.Context, buyer *client.Client, t *tender.Tender, rule tender.Rule, bids []tender.Bid) error {
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
	if !p.quiet {
		p.print(fmt.Sprintf("Round %d\n%s\n", round, render.Bids(rule.Rows(bids), p.style)))
	}
}
