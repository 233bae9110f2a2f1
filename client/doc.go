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
// [Client.Messages] and [Client.Await] read the principal's shared inbox: each
// message goes to one of the processes that read it. It is for workers that each
// can handle any session, and for invitations. [Session.Messages] and
// [Session.Await] read one session through a consumer of its own (session.consumer,
// PROTOCOL.md §9): processes that read different sessions take nothing from each
// other, and those that read the same one share it. What one of them acknowledges
// is still in the shared inbox for other processes. A session that nobody has read
// for 10 minutes starts from its first message again.
//
// What is not acknowledged comes again, also to the next process. Within a client,
// a loop sees each entry once, whichever way it came, and those of a session in
// the order of the transcript, also where the network delivered one twice, late or
// not at all. What a process took and did not acknowledge before it crashed comes
// when the broker's ack wait is over (30 s), which may be after newer entries; a
// [Client] that is closed gives it back at once. While the body of a loop runs, its
// message is kept from coming again, however long that takes.
//
// # Writing an agent
//
// An agent is a loop over Messages with a switch on [Message.Body], whose types are
// those of package performatives; [Message.Ref] is what an answer refers to, and
// [Terms] reads the terms of an offer. Session has a method for each act:
//
//	invitation    Client.Invite, Accept, Reject, Withdraw
//	offers        Propose, Counter, Accept, Reject, Withdraw
//	questions     Clarify and Answer about an offer; Query and Inform about anything
//	commitments   Commit, Accept, Reject, Counter, Withdraw
//	delegates     Delegate; the delegate's Accept, or any act that it may send
//	humans        Escalate; the human's Rule
//	the rest      Observe, Close
//
// [Session.View] tells where the session stands, and whose answer is awaited. [Do]
// asks any verb of package api, also those that have no method here. The
// package's examples are whole agents, and run as tests.
//
// A Client is safe for use by several goroutines.
package client
