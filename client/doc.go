// Package client is what an agent is written with: it speaks ASP to a parley
// broker over NATS, signs, asks again when an answer is lost, and reads the
// durable inbox.
//
//	c, err := client.Connect(ctx, "nats://127.0.0.1:4222", "agent://acme.com/procurement/alpha", client.SeedFile("alpha.nk"))
//	if err != nil {
//		return err
//	}
//	defer c.Close()
//	s, err := c.Invite(ctx, client.Invitation{With: []performatives.Agent{beta}, Purpose: "log ingestion"})
//	if err != nil {
//		return err
//	}
//	for m, err := range s.Messages(ctx) {
//		if err != nil {
//			return err
//		}
//		switch body := m.Body().(type) {
//		case *performatives.CounterBody:
//			_, err = s.Accept(ctx, body.ProposalID)
//			if errors.Is(err, client.Refused(session.ProposalNotOpen)) { … }
//		}
//		m.Ack()
//	}
//
// # Answers
//
// Every act and every call has one of three ends. It was accepted: there is a
// [Receipt] or a reply. It was refused: the error is a [*session.Refusal] by
// errors.As, and errors.Is(err, [Refused](code)) matches its code. Or there was
// no answer: the error is what went wrong on the way, and of an act it is an
// [*Unanswered] by errors.As, because it may have been accepted all the same.
//
// An act is made once. A lost answer, a broker that is away and the refusals
// unavailable and rate_limited are met by sending the very same bytes again
// until the context ends; the broker knows them again and answers what it
// answered first, marked as a duplicate. Give a context that ends.
//
// # Messages
//
// The inbox is kept by the server: what is not acknowledged comes again, also
// to the next process. Within a client, a loop sees each entry once, and those
// of a session in the order of the transcript, also where the network delivered
// one twice, late or not at all. What a process took and did not acknowledge
// before it crashed comes when the broker's ack wait is over (30 s), which may
// be after newer entries; a [Client] that is closed gives it back at once.
//
// A Client is safe for use by several goroutines.
package client
