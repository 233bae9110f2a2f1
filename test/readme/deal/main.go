// Command deal is the Go snippet of docs/TOUR.md: two agents and one agreement.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/performatives"
)

const alpha, beta = "agent://acme.com/procurement/alpha", "agent://widgets.co/sales/beta"

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	buyer := check(client.Connect(ctx, os.Getenv("NATS_URL"), alpha, client.SeedFile("alpha.nk")))
	defer buyer.Close()
	seller := check(client.Connect(ctx, os.Getenv("NATS_URL"), beta, client.SeedFile("beta.nk")))
	defer seller.Close()

	s := check(buyer.Invite(ctx, client.Invitation{With: []performatives.Agent{beta}, Purpose: "log storage"}))
	invitation := check(seller.Await(ctx, performatives.Propose))
	theirs := invitation.Session()
	check(theirs.Accept(ctx, invitation.Ref()))

	check(s.Await(ctx, performatives.Accept))
	p := check(s.Propose(ctx, client.Proposal{
		Type: "service-agreement", Subject: "log storage", Terms: map[string]any{"pricePerMonth": 200},
	}))
	check(theirs.Accept(ctx, p.ID, client.Because("within capacity")))

	answer := check(s.Await(ctx, performatives.Accept, performatives.Reject, performatives.Counter))
	fmt.Println(answer.From(), "says", answer.Act())
	fmt.Println(check(s.Close(ctx, client.Closing{Outcome: performatives.Completed})).State)
}

func check[V any](v V, err error) V {
	if err != nil {
		log.Fatal(err) // a refusal has a code and a sentence: errors.Is(err, client.Refused(session.OwnProposal))
	}
	return v
}
