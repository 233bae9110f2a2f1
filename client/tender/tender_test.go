package tender_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/client/negotiator"
	"github.com/parley-asp/parley/client/tender"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/test/testkit"
)

const buyer = performatives.Agent("agent://acme.com/buyer")

func sellers(n int) (all []performatives.Agent) {
	for i := range n {
		all = append(all, performatives.Agent(fmt.Sprintf("agent://s%d.example/sales", i+1)))
	}
	return all
}

// a play is a tender of a buyer, and the connections of all.
type play struct {
	*testkit.World
	buyer   *client.Client
	sellers []*client.Client
	tender  *tender.Tender
}

func start(t *testing.T, n int, r tender.Request) *play {
	t.Helper()
	p := &play{World: testkit.NewWorld(t, testkit.Options{})}
	p.buyer = p.Client(buyer)
	for _, a := range sellers(n) {
		p.sellers = append(p.sellers, p.Client(a))
	}
	var err error
	p.tender, err = tender.New(p.buyer, r)
	testkit.Must(t, err)
	testkit.Must(t, p.tender.Invite(p.Ctx, sellers(n), 0))
	return p
}

// joins accepts the invitation of a seller, from 1.
func (p *play) joins(n int) *client.Session {
	p.Helper()
	m, err := p.sellers[n-1].Await(p.Ctx, performatives.Propose)
	testkit.Must(p, err)
	_, err = m.Session().Accept(p.Ctx, m.Ref())
	testkit.Must(p, err)
	return m.Session()
}

func (p *play) offers(s *client.Session, id string, price any) {
	p.Helper()
	_, err := s.Propose(p.Ctx, client.Proposal{ID: id, Type: "service-agreement", Subject: "cups", Terms: map[string]any{"price": price}})
	testkit.Must(p, err)
}

func (p *play) bids() []tender.Bid {
	p.Helper()
	bids, err := p.tender.Bids(p.Ctx)
	testkit.Must(p, err)
	return bids
}

func (p *play) standings() string {
	p.Helper()
	var all []string
	for _, b := range p.bids() {
		all = append(all, string(b.Standing))
	}
	return strings.Join(all, "/")
}

// acts are the acts of a session, by the buyer in capitals.
func (p *play) acts(n int) string {
	p.Helper()
	var all []string
	entries, err := p.buyer.Transcript(p.Ctx, p.bids()[n-1].Session)
	testkit.Must(p, err)
	for _, e := range entries {
		act := e.Message.ActName
		if e.Message.Sender != buyer {
			act = strings.ToLower(act)
		}
		all = append(all, act)
	}
	return strings.Join(all, " ")
}

// at is when the buyer last said an act.
func (p *play) at(n int, act performatives.Performative) (at time.Time) {
	p.Helper()
	entries, err := p.buyer.Transcript(p.Ctx, p.bids()[n-1].Session)
	testkit.Must(p, err)
	for _, e := range entries {
		if e.Message.Performative == act && e.Message.Sender == buyer {
			at, err = e.Stamp.AcceptedAt()
			testkit.Must(p, err)
		}
	}
	return at
}

func (p *play) resume() {
	p.Helper()
	var err error
	p.tender, err = tender.Resume(p.Ctx, p.buyer, p.tender.ID)
	testkit.Must(p, err)
}

var cheapest = tender.Rule{Lowest: "price"}

// The same terms go to each; the best answer is accepted, and then the others are left.
func TestTender(t *testing.T) {
	t.Parallel()
	p := start(t, 4, tender.Request{Subject: "1,000 cups", Terms: map[string]any{"price": 300}})
	if got := p.standings(); got != "waiting/waiting/waiting/waiting" {
		t.Fatal(got)
	}
	one, two := p.joins(1), p.joins(2)
	p.resume() // as another process: the request is in the invitation
	said, err := p.tender.Advance(p.Ctx, p.bids())
	testkit.Must(t, err)
	if again, err := p.tender.Advance(p.Ctx, p.bids()); said != 2 || again != 0 || err != nil {
		t.Fatalf("said %d, then %d: %v", said, again, err)
	}
	for i, s := range []*client.Session{one, two} {
		m, err := s.Await(p.Ctx, performatives.Propose)
		testkit.Must(t, err)
		_, err = s.Counter(p.Ctx, m.Ref(), client.Proposal{Terms: map[string]any{"price": []any{420, "395.50"}[i]}})
		testkit.Must(t, err)
	}
	three := p.joins(3)
	p.offers(three, "dear", 900)
	if got := p.standings(); got != "offered/offered/offered/waiting" || tender.Complete(p.bids()) {
		t.Fatal(got)
	}
	best, found := cheapest.Best(p.bids())
	if value, _ := cheapest.Value(best); !found || best.Number != 2 || value != -395.5 {
		t.Fatalf("%+v", best)
	}
	testkit.Must(t, p.tender.Accept(p.Ctx, best))
	if got := p.standings(); got != "over/accepted/over/over" {
		t.Error(got)
	}
	for n, want := range []string{
		"PROPOSE accept PROPOSE counter REJECT CLOSE", "PROPOSE accept PROPOSE counter ACCEPT",
		"PROPOSE accept propose REJECT CLOSE", "PROPOSE WITHDRAW",
	} {
		if got := p.acts(n + 1); got != want {
			t.Errorf("session %d is %s, want %s", n+1, got, want)
		}
	}
	closed, err := one.Await(p.Ctx, performatives.Close)
	testkit.Must(t, err)
	if body := closed.Body().(*performatives.CloseBody); body.Outcome != performatives.Abandoned || !strings.Contains(body.Reason, "Thank you") {
		t.Errorf("%+v", body)
	}
	accepted := p.at(2, performatives.Accept)
	for _, n := range []int{1, 3} {
		if closed := p.at(n, performatives.Close); closed.Before(accepted) {
			t.Errorf("session %d was closed before the acceptance", n)
		}
	}
	if said, err := p.tender.Advance(p.Ctx, p.bids()); said != 0 || err != nil {
		t.Errorf("said %d after the decision: %v", said, err)
	}
}

// However often Accept is interrupted, one offer is accepted, before anybody is left, and
// the same call goes on.
func TestAcceptInterrupted(t *testing.T) {
	t.Parallel()
	p := start(t, 4, tender.Request{Subject: "cups"})
	for n := 1; n <= 3; n++ {
		p.offers(p.joins(n), "offer", 100*n)
	}
	best, _ := cheapest.Best(p.bids())
	for interrupted := 0; ; interrupted++ {
		ctx, cancel := context.WithCancel(p.Ctx)
		read := make(chan struct{})
		go func() { // somebody receives something: there the buyer stops
			defer close(read)
			done := make(chan struct{}, len(p.sellers))
			for _, s := range p.sellers {
				go func() {
					if _, err := s.Await(ctx, performatives.Accept, performatives.Reject, performatives.Close, performatives.Withdraw); err == nil {
						cancel()
					}
					done <- struct{}{}
				}()
			}
			for range p.sellers {
				<-done
			}
		}()
		err := p.tender.Accept(ctx, best)
		cancel()
		<-read
		states := p.standings()
		if accepted := strings.Count(states, "accepted"); accepted > 1 || accepted == 0 && strings.Contains(states, "over") {
			t.Fatalf("after %d interruptions: %s", interrupted, states)
		}
		p.resume()
		if err == nil {
			break
		}
		if strings.HasPrefix(states, "accepted") {
			if err := p.tender.Accept(p.Ctx, p.bids()[1]); !errors.Is(err, tender.ErrDecided) {
				t.Fatalf("a second acceptance: %v", err)
			}
		}
		if interrupted > 50 {
			t.Fatal("it does not end")
		}
	}
	if got := p.standings(); got != "accepted/over/over/over" {
		t.Error(got)
	}
}

// A refusal is said, and does not keep the rest.
func TestRefusals(t *testing.T) {
	t.Parallel()
	p := start(t, 3, tender.Request{Subject: "cups", Schema: "cups-v1", Terms: map[string]any{"price": "many"}})
	one, two := p.joins(1), p.joins(2)
	if said, err := p.tender.Advance(p.Ctx, p.bids()); said != 0 || err == nil || strings.Count(err.Error(), "schema_unsupported") != 2 || !strings.Contains(err.Error(), string(sellers(1)[0])) {
		t.Errorf("said %d: %v", said, err)
	}
	p.offers(one, "any", 5) // not by the schema: nothing to compare
	p.offers(two, "gone", 6)
	if best, found := cheapest.Best(p.bids()); found {
		t.Errorf("%+v", best)
	}
	bid := p.bids()[1]
	_, err := two.Withdraw(p.Ctx, "gone")
	testkit.Must(t, err)
	if err := p.tender.Accept(p.Ctx, bid); !errors.Is(err, &session.Refusal{Code: session.ProposalNotOpen}) {
		t.Errorf("an offer that was withdrawn: %v", err)
	}
	if got := p.standings(); got != "offered/waiting/waiting" {
		t.Errorf("after a refusal: %s", got)
	}
	if err := p.tender.Accept(p.Ctx, p.bids()[2]); err == nil || !strings.Contains(err.Error(), "no offer") {
		t.Errorf("no offer: %v", err)
	}
	_, err = one.Close(p.Ctx, client.Closing{Outcome: performatives.Abandoned})
	testkit.Must(t, err)
	testkit.Must(t, p.tender.Withdraw(p.Ctx, 0))
	testkit.Must(t, p.tender.Withdraw(p.Ctx, 0))
	if got := p.standings(); got != "over/over/over" {
		t.Error(got)
	}
	own, err := p.buyer.Invite(p.Ctx, client.Invitation{With: sellers(1), Purpose: "another thing"})
	testkit.Must(t, err)
	for _, id := range []performatives.SessionID{own.ID(), bid.Session, "x", "019478a3-0001-7def-8a12-000000000000"} {
		if _, err := tender.Resume(p.Ctx, p.buyer, id); !errors.Is(err, tender.ErrNone) {
			t.Errorf("%s: %v", id, err)
		}
	}
	if _, err := tender.Resume(p.Ctx, p.sellers[0], p.tender.ID); !errors.Is(err, tender.ErrNone) {
		t.Errorf("another's tender: %v", err)
	}
	if err := p.tender.Invite(p.Ctx, sellers(tender.Most), 0); err == nil {
		t.Error("too many agents")
	}
}

// With a policy offers are countered until it has no better one to make; what both agree on
// and what is offered are compared by their worth.
func TestPolicy(t *testing.T) {
	t.Parallel()
	buys, err := negotiator.Parse([]byte("subject: cups\nissues: {price: {best: 100, worst: 500, step: 1}}\naspiration: 0.9\nreservation: 0.2\nrounds: 3\n"))
	testkit.Must(t, err)
	p := start(t, 2, tender.Request{Subject: "cups"})
	p.tender.Policy = buys
	var sides []*negotiator.Agent
	for i, worst := range []string{"300", "200"} {
		sells, err := negotiator.Parse([]byte("subject: cups\nissues: {price: {best: 600, worst: " + worst + ", step: 1}}\nrounds: 3\n"))
		testkit.Must(t, err)
		sides = append(sides, &negotiator.Agent{Self: sellers(2)[i], Policy: sells, Broker: p.sellers[i], Worker: "n"})
	}
	for range 64 {
		busy := false
		for _, s := range sides {
			did, err := s.Step(p.Ctx)
			testkit.Must(t, err)
			busy = busy || did != ""
		}
		said, err := p.tender.Advance(p.Ctx, p.bids())
		testkit.Must(t, err)
		if said == 0 && !busy {
			break
		}
	}
	rule := tender.Rule{Policy: buys}
	best, found := rule.Best(p.bids())
	if !tender.Complete(p.bids()) || !found || best.Number != 2 || best.Offers < 4 {
		t.Fatalf("%s: %+v", p.standings(), best)
	}
	testkit.Must(t, p.tender.Accept(p.Ctx, best))
	if bids := p.bids(); bids[0].Standing != tender.Over || !bids[1].Open() && bids[1].Standing != tender.Accepted {
		t.Error(p.standings())
	}
}

// The best offer is one that the policy would agree to, whatever else it is compared by.
func TestBestByPolicy(t *testing.T) {
	t.Parallel()
	policy, err := negotiator.Parse([]byte("issues: {price: {best: 100, worst: 500}}\nfixed: {currency: EUR}\nescalate: [penalties]\nreservation: 0.5\n"))
	testkit.Must(t, err)
	for name, c := range map[string]struct {
		terms    map[string]any
		standing tender.Standing
		open     bool
	}{
		"suits":               {map[string]any{"price": 300.0, "currency": "EUR"}, tender.Offered, true},
		"is ours":             {map[string]any{"price": 100.0}, tender.Agreed, true},
		"below reservation":   {map[string]any{"price": 301.0, "currency": "EUR"}, tender.Offered, false},
		"beyond the mandate":  {map[string]any{"price": 501.0, "currency": "EUR"}, tender.Offered, false},
		"another currency":    {map[string]any{"price": 100.0, "currency": "USD"}, tender.Offered, false},
		"no currency":         {map[string]any{"price": 100.0}, tender.Offered, false},
		"a human's to decide": {map[string]any{"price": 100.0, "currency": "EUR", "penalties": "10000 a day"}, tender.Offered, false},
		"an unknown term":     {map[string]any{"price": 100.0, "currency": "EUR", "exclusive": true}, tender.Offered, false},
	} {
		for _, rule := range []tender.Rule{{Policy: policy}, {Policy: policy, Lowest: "price"}, {Policy: policy, Highest: "price"}} {
			if _, found := rule.Best([]tender.Bid{{Number: 1, Standing: c.standing, Terms: c.terms}}); found != c.open {
				t.Errorf("what %s is the best by %+v: %t", name, rule, found)
			}
		}
	}
}

// Numbers are compared in one currency, which is that of our offer.
func TestCurrencies(t *testing.T) {
	t.Parallel()
	bid := func(n int, terms map[string]any) tender.Bid {
		return tender.Bid{Number: n, Standing: tender.Offered, Terms: terms}
	}
	euros, dinars := bid(1, map[string]any{"price": 60.0, "currency": "EUR"}), bid(2, map[string]any{"price": 50.0, "currency": "KWD"})
	inside := bid(3, map[string]any{"price": map[string]any{"amount": "40", "currency": "EUR"}, "currency": "KWD"})
	above := bid(7, map[string]any{"cost": map[string]any{"currency": "KWD", "unit": map[string]any{"amount": 1.0}}, "currency": "EUR"})
	none := bid(4, map[string]any{"price": 30.0})
	for name, c := range map[string]struct {
		lowest string
		ours   map[string]any
		bids   []tender.Bid
		best   int
	}{
		"of our offer":      {"price", map[string]any{"price": 1.0, "currency": "EUR"}, []tender.Bid{euros, dinars, none}, 1},
		"we named none":     {"price", map[string]any{"price": 1.0}, []tender.Bid{euros, bid(5, map[string]any{"price": 50.0, "currency": "EUR"})}, 5},
		"they differ":       {"price", nil, []tender.Bid{euros, dinars}, 0},
		"all in one":        {"price", nil, []tender.Bid{dinars}, 2},
		"beside the number": {"price.amount", map[string]any{"currency": "EUR"}, []tender.Bid{inside}, 3},
		"on the way to it":  {"cost.unit.amount", map[string]any{"currency": "EUR"}, []tender.Bid{above}, 0},
		"no text":           {"price", nil, []tender.Bid{bid(6, map[string]any{"price": 1.0, "currency": 978.0})}, 0},
		"one without":       {"price", nil, []tender.Bid{euros, none}, 0},
	} {
		if best, _ := (tender.Rule{Lowest: c.lowest, Ours: c.ours}).Best(c.bids); best.Number != c.best {
			t.Errorf("%s: the best is %d, want %d", name, best.Number, c.best)
		}
	}
}

// An agent that accepts our offer and closes its session is bound, which decides the tender. A counter-offer about something
// else is not compared.
func TestAgreedAndClosed(t *testing.T) {
	t.Parallel()
	p := start(t, 3, tender.Request{Subject: "cups", Terms: map[string]any{"price": 10}})
	for n := 1; n <= 3; n++ {
		s := p.joins(n)
		_, err := p.tender.Advance(p.Ctx, p.bids())
		testkit.Must(t, err)
		offer := p.bids()[n-1].Offers
		if offer != 1 {
			t.Fatalf("%d offers", offer)
		}
		view, err := p.buyer.View(p.Ctx, s.ID())
		testkit.Must(t, err)
		ours := view.Proposals[0].Proposal
		if n == 1 {
			_, err = s.Counter(p.Ctx, ours, client.Proposal{ID: "p1", Subject: "plates", Terms: map[string]any{"price": 1}})
			testkit.Must(t, err)
			if best, found := cheapest.Best(p.bids()); found {
				t.Errorf("the best is of plates: %+v", best)
			}
			continue
		}
		_, err = s.Accept(p.Ctx, ours)
		testkit.Must(t, err)
		if n == 3 {
			_, err = s.Close(p.Ctx, client.Closing{})
			testkit.Must(t, err)
		}
	}
	chosen, decided := tender.Chosen(p.bids())
	if got := p.standings(); got != "offered/agreed/accepted" || !decided || chosen.Number != 3 || chosen.Offer == nil {
		t.Fatalf("%s: %+v", got, chosen)
	}
	testkit.Must(t, p.tender.Accept(p.Ctx, chosen))
	if got := p.standings(); got != "over/over/accepted" {
		t.Error(got)
	}
}

// An offer in a thread of its own is compared if it is about what we offered. Once it is accepted, ours is gone: the agent
// could accept both.
func TestOfferBesideOurs(t *testing.T) {
	t.Parallel()
	p := start(t, 1, tender.Request{Subject: "cups", Terms: map[string]any{"price": 10}})
	s := p.joins(1)
	_, err := p.tender.Advance(p.Ctx, p.bids())
	testkit.Must(t, err)
	view, err := p.buyer.View(p.Ctx, s.ID())
	testkit.Must(t, err)
	ours := view.Proposals[0]
	offers := func(id, subject string) {
		_, err := s.Propose(p.Ctx, client.Proposal{ID: id, Type: ours.Type, Subject: subject, Terms: map[string]any{"price": 9}})
		testkit.Must(t, err)
	}
	offers("n1", "one napkin")
	if best, found := cheapest.Best(p.bids()); found {
		t.Errorf("the best is a napkin: %+v", best)
	}
	_, err = s.Withdraw(p.Ctx, "n1")
	testkit.Must(t, err)
	offers("c1", ours.Subject)
	best, found := cheapest.Best(p.bids())
	if !found || best.Offer.Proposal != "c1" {
		t.Fatalf("the best is %+v, %t", best, found)
	}
	testkit.Must(t, p.tender.Accept(p.Ctx, best))
	if _, err := s.Accept(p.Ctx, ours.Proposal); !errors.Is(err, client.Refused(session.ProposalNotOpen)) {
		t.Errorf("our offer is accepted, too: %v", err)
	}
	testkit.Must(t, p.tender.Accept(p.Ctx, best))
}
