package client_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/session/transcript"
)

// An offer that is accepted as it is.
func Example() {
	broker, end := forExample()
	defer end()
	ctx := broker.Ctx

	buyer, err := client.Connect(ctx, broker.URL, alpha, client.Seed(broker.seed(alpha)), broker.login(alpha))
	check(err)
	defer buyer.Close()
	seller := broker.Client(beta)

	s := try(buyer.Invite(ctx, client.Invitation{
		With: []performatives.Agent{beta}, Purpose: "log ingestion for the observability platform",
	}))
	invitation := try(seller.Await(ctx, performatives.Propose))
	try(invitation.Session().Accept(ctx, invitation.Ref()))

	// The buyer.
	try(s.Await(ctx, performatives.Accept))
	p := try(s.Propose(ctx, client.Proposal{
		Type: "service-agreement", Subject: "ingest 5,000 events/s",
		Terms: map[string]any{"eventsPerSecond": 5000, "retentionDays": 30, "pricePerMonth": 900},
	}))

	// The seller.
	offer := try(invitation.Session().Await(ctx, performatives.Propose))
	fmt.Println(offer.From(), "offers", string(offer.Body().(*performatives.ProposeBody).Terms))
	try(invitation.Session().Accept(ctx, offer.Ref(), client.Because("within capacity")))

	// The buyer.
	answer := try(s.Await(ctx, performatives.Accept, performatives.Reject, performatives.Counter))
	fmt.Println(answer.From(), "says", answer.Act(), "to the offer:", answer.Body().(*performatives.AcceptBody).ReferenceID == p.ID)
	closed := try(s.Close(ctx, client.Closing{Outcome: performatives.Completed}))
	fmt.Println(closed.State)
	// Output:
	// agent://acme.com/procurement/alpha offers {"eventsPerSecond":5000,"pricePerMonth":900,"retentionDays":30}
	// agent://widgets.co/sales/beta says ACCEPT to the offer: true
	// CLOSED
}

// Two agents, each a loop over its inbox, that meet in the middle.
func ExampleSession_Counter() {
	broker, end := forExample()
	defer end()
	ctx, cancel := context.WithCancel(broker.Ctx)
	defer cancel()
	type terms struct {
		Price int `json:"pricePerImage"`
	}
	const most = 8 // what the buyer can pay

	// The seller comes down by 2 at a time.
	seller, sold := broker.Client(beta), make(chan error, 1)
	go func() {
		price := 14
		for m, err := range seller.Messages(ctx) {
			if err != nil {
				sold <- err
				return
			}
			s := m.Session()
			switch body := m.Body().(type) {
			case *performatives.ProposeBody:
				if body.Type == performatives.SessionInvitation {
					_, err = s.Accept(ctx, m.Ref())
					break
				}
				_, err = s.Counter(ctx, m.Ref(), client.Proposal{Terms: terms{price}})
			case *performatives.CounterBody:
				price -= 2
				_, err = s.Counter(ctx, m.Ref(), client.Proposal{Terms: terms{price}})
			case *performatives.CloseBody:
				sold <- m.Ack()
				return
			}
			if err != nil {
				sold <- err
				return
			}
			check(m.Ack()) // what was answered need not come again
		}
	}()

	buyer := broker.Client(alpha)
	s := try(buyer.Invite(ctx, client.Invitation{With: []performatives.Agent{beta}, Purpose: "image processing"}))
	for m, err := range s.Messages(ctx) {
		check(err)
		switch m.Body().(type) {
		case *performatives.AcceptBody:
			try(s.Propose(ctx, client.Proposal{Type: "service-agreement", Subject: "thumbnails", Terms: terms{5}}))
		case *performatives.CounterBody:
			asked := try(client.Terms[terms](m))
			fmt.Println("asked", asked.Price)
			if asked.Price <= most {
				try(s.Accept(ctx, m.Ref()))
				try(s.Close(ctx, client.Closing{Outcome: performatives.Completed}))
				break
			}
			try(s.Counter(ctx, m.Ref(), client.Proposal{Terms: terms{asked.Price - 5}}))
		}
		check(m.Ack())
	}
	check(<-sold)
	for _, p := range try(s.View(ctx)).Proposals {
		fmt.Println(p.From.Organisation(), string(p.Terms), p.Status)
	}
	// Output:
	// asked 14
	// asked 12
	// asked 10
	// asked 8
	// acme.com {"pricePerImage":5} countered
	// widgets.co {"pricePerImage":14} countered
	// acme.com {"pricePerImage":9} countered
	// widgets.co {"pricePerImage":12} countered
	// acme.com {"pricePerImage":7} countered
	// widgets.co {"pricePerImage":10} countered
	// acme.com {"pricePerImage":5} countered
	// widgets.co {"pricePerImage":8} accepted
}

// Questions about an offer, which cannot be accepted before they are answered.
func ExampleSession_Clarify() {
	broker, end := forExample()
	defer end()
	ctx := broker.Ctx
	buyers, sellers := broker.introduced(broker.Client(alpha), broker.Client(beta))

	p := try(sellers.Propose(ctx, client.Proposal{
		Type: "service-agreement", Subject: "replicated storage",
		Terms: map[string]any{"replicas": 3, "storageLimit": "2TB"},
	}))
	question := try(buyers.Clarify(ctx, p.ID, []client.Question{
		client.Ask("terms.storageLimit", "per replica or in total?", "per replica", "total"),
	}, client.Note("we count per replica")))

	_, err := buyers.Accept(ctx, p.ID)
	fmt.Println(errors.Is(err, client.Refused(session.ClarificationPending)))

	try(sellers.Await(ctx, performatives.Clarify))
	try(sellers.Answer(ctx, question.ID, map[string]any{"terms.storageLimit": "per replica"}))

	fact := try(buyers.Await(ctx, performatives.Inform))
	answers, _ := fact.Body().(*performatives.InformBody).Answers()
	for _, a := range answers.Answers {
		fmt.Println(a.Field, string(a.Answer))
	}
	fmt.Println(try(buyers.Accept(ctx, p.ID)).State)
	// Output:
	// true
	// terms.storageLimit "per replica"
	// CONVERSING
}

// An agent that has another act for it, and a transcript that names both.
func ExampleSession_Delegate() {
	broker, end := forExample()
	defer end()
	ctx := broker.Ctx
	buyer, lawyer := broker.Client(alpha), broker.Client(gamma)
	buyers, sellers := broker.introduced(buyer, broker.Client(beta))

	p := try(sellers.Propose(ctx, client.Proposal{
		Type: "data-exchange", Subject: "customer records", Terms: map[string]any{"region": "EU", "gdpr": true},
	}))
	try(buyers.Delegate(ctx, gamma, client.Delegation{Scope: "GDPR review", Authority: client.Full, For: p.ID}))

	task := try(lawyer.Await(ctx, performatives.Delegate))
	lawyers := task.Session()
	try(lawyers.Accept(ctx, task.Ref()))
	entries := try(lawyers.Transcript(ctx)) // it may read all that was said before
	fmt.Println(len(entries), "entries read")
	try(lawyers.Accept(ctx, p.ID, client.Because("compliant")))

	_, err := lawyers.Close(ctx, client.Closing{})
	fmt.Println(errors.Is(err, client.Refused(session.AuthorityExceeded)))

	try(sellers.Await(ctx, performatives.Accept)) // of the delegation
	m := try(sellers.Await(ctx, performatives.Accept))
	fmt.Println(m.From(), "accepts for", m.OnBehalfOf())
	// Output:
	// 5 entries read
	// true
	// agent://acme.com/legal/gamma accepts for agent://acme.com/procurement/alpha
}

// An agent at the limit of its authority, and the human who decides.
func ExampleSession_Escalate() {
	broker, end := forExample()
	defer end()
	ctx := broker.Ctx
	human := broker.Client(alice)
	buyers, sellers := broker.introduced(broker.Client(alpha), broker.Client(beta))

	p := try(sellers.Propose(ctx, client.Proposal{
		Type: "service-agreement", Subject: "annual plan", Terms: map[string]any{"total": 15000, "currency": "USD"},
	}))
	try(buyers.Escalate(ctx, client.Escalation{
		Reason: client.AuthorityLimit, Urgency: client.High, About: p.ID,
		Context: "The plan costs $15,000; I may agree to $10,000.", SuggestedAction: "approve",
	}))
	_, err := buyers.Accept(ctx, p.ID)
	fmt.Println(errors.Is(err, client.Refused(session.SessionEscalated)))

	for item, err := range human.Escalations(ctx, everything) {
		check(err)
		fmt.Println(item.By, "asks:", string(item.Context))
		limit := 15000.0
		try(human.Session(item.Session).Rule(ctx, string(item.ID), client.Ruling{
			Decision: performatives.Approved, Comment: "in the budget",
			Authority: &performatives.RulingsAuthority{MaxAmount: &limit, Currency: "USD", TermPath: "terms.total"},
		}))
	}

	m := try(buyers.Await(ctx, performatives.Inform))
	ruling, _ := m.Body().(*performatives.InformBody).Ruling()
	fmt.Println(m.From(), ruling.Decision)
	fmt.Println(try(buyers.Accept(ctx, p.ID)).State)
	// Output:
	// true
	// agent://acme.com/procurement/alpha asks: "The plan costs $15,000; I may agree to $10,000."
	// human://acme.com/alice approved
	// CONVERSING
}

// Whoever has the broker's key can tell whether a transcript is whole and genuine.
func ExampleClient_Transcript() {
	broker, end := forExample()
	defer end()
	ctx := broker.Ctx
	buyer := broker.Client(alpha)
	s, _ := broker.introduced(buyer, broker.Client(beta))
	try(s.Observe(ctx, "the weather", map[string]any{"sun": true}))

	verifier := transcript.NewVerifier(try(buyer.BrokerKey(ctx)), transcript.Expect{Session: s.ID()})
	for _, e := range try(s.Transcript(ctx)) {
		fmt.Println(e.Stamp.Sequence, e.Message.Performative, len(verifier.Add(e.Bytes)), "faults")
	}
	fmt.Println(len(verifier.End()), "faults in the whole")
	// Output:
	// 0 PROPOSE 0 faults
	// 1 ACCEPT 0 faults
	// 2 OBSERVE 0 faults
	// 0 faults in the whole
}
