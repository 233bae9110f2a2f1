package tender

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/parley-asp/parley/client"
	"github.com/parley-asp/parley/client/negotiator"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// Advance says in each session what is ours to say: the request to who has accepted the
// invitation, and counter-offers by the policy. said is how many acts were accepted. A refusal
// in one session does not keep it from the others.
func (t *Tender) Advance(ctx context.Context, bids []Bid) (said int, err error) {
	if _, decided := Chosen(bids); decided {
		return 0, nil
	}
	var faults []error
	for _, b := range bids {
		did, err := t.advance(ctx, b)
		if did && err == nil {
			said++
		}
		if err != nil && !passed(err) {
			faults = append(faults, fmt.Errorf("%s: %w", b.Agent, err))
		}
	}
	return said, errors.Join(faults...)
}

func (t *Tender) advance(ctx context.Context, b Bid) (did bool, err error) {
	s := t.c.Session(b.Session)
	switch {
	case b.State != session.Introduced && b.State != session.Conversing:
		return false, nil
	case b.Offers == 0 && t.Request.Terms != nil:
		_, err = s.Propose(ctx, t.proposal(b, t.Request.Terms))
	case b.Offers == 0 && t.Policy != nil:
		_, err = s.Propose(ctx, t.proposal(b, t.Policy.Decide(negotiator.Situation{}).Terms))
	case b.Standing == Offered && t.Policy != nil && b.Terms != nil && len(b.Offer.Pending) == 0:
		ours := 0
		for _, o := range b.view.Proposals {
			if o.From != b.Agent {
				ours++
			}
		}
		rounds := t.Policy.Rounds
		d := t.Policy.Decide(negotiator.Situation{Offer: b.Terms, Time: float64(ours) / float64(rounds), Last: ours >= rounds})
		if d.Act != negotiator.Counter {
			return false, nil // the offer stands, and is compared with the others
		}
		_, err = s.Counter(ctx, b.Offer.Proposal, t.proposal(b, d.Terms), client.Because(d.Reason))
	default:
		return false, nil
	}
	return true, err
}

// proposal has an ID that is used once at a place, so that no crash makes it twice.
func (t *Tender) proposal(b Bid, terms map[string]any) client.Proposal {
	return client.Proposal{
		ID: fmt.Sprintf("offer-%d", b.view.Head.Next.Sequence), Type: t.Request.Type, Subject: t.Request.Subject, Terms: terms, Schema: t.Request.Schema,
	}
}

// passed reports whether a refusal means that the session has moved on since it was read.
func passed(err error) bool {
	refusal, is := errors.AsType[*session.Refusal](err)
	return is && slices.Contains(moved, refusal.Code)
}

var moved = []session.Code{session.WrongState, session.Duplicate, session.ProposalNotOpen, session.ClarificationPending, session.SessionEscalated}

// Complete reports whether nothing more is awaited, if Advance had nothing to say.
func Complete(bids []Bid) bool {
	for _, b := range bids {
		if b.Standing == Waiting || b.Standing == Paused {
			return false
		}
	}
	return true
}

// Chosen finds the bid that was accepted.
func Chosen(bids []Bid) (chosen Bid, found bool) {
	for _, b := range bids {
		if b.Standing == Accepted {
			return b, true
		}
	}
	return Bid{}, false
}

// ErrDecided means that another bid has been accepted.
var ErrDecided = errors.New("another offer is accepted")

// Accept withdraws our own offers to an agent, accepts its bid, and then withdraws from the other agents. After an error
// the same call goes on where it stopped.
func (t *Tender) Accept(ctx context.Context, b Bid) error {
	bids, err := t.Bids(ctx)
	if err != nil {
		return err
	}
	if chosen, decided := Chosen(bids); decided && chosen.Number != b.Number {
		return fmt.Errorf("%w: that of %s", ErrDecided, chosen.Agent)
	}
	if now := bids[b.Number-1]; now.Standing != Accepted && now.Standing != Agreed {
		if b.Offer == nil {
			return fmt.Errorf("%s has made no offer", b.Agent)
		}
		s := t.c.Session(b.Session)
		for _, o := range now.view.Proposals {
			if o.Status != "open" || o.From == b.Agent {
				continue
			}
			if _, err := s.Withdraw(ctx, o.Proposal, client.Because(chose)); err != nil { // such as that it was accepted meanwhile
				return err
			}
		}
		if _, err := s.Accept(ctx, b.Offer.Proposal); err != nil {
			return err
		}
	}
	return t.Withdraw(ctx, b.Number)
}

// Why is what the others are told.
const (
	chose = "We have accepted another offer. Thank you."
	ended = "We have ended this tender without accepting an offer. Thank you."
)

// Withdraw withdraws from all agents but one, 0 for none: it withdraws our offers, rejects
// theirs, and closes the session. It goes through all of them before it returns an error.
func (t *Tender) Withdraw(ctx context.Context, except int) error {
	bids, err := t.Bids(ctx)
	if err != nil {
		return err
	}
	why := chose
	if except == 0 {
		why = ended
	}
	var faults []error
	for _, b := range bids {
		if b.Number == except || b.State.Over() {
			continue
		}
		if err := t.withdraw(ctx, b, why); err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", b.Agent, err))
		}
	}
	return errors.Join(faults...)
}

func (t *Tender) withdraw(ctx context.Context, b Bid, why string) error {
	s := t.c.Session(b.Session)
	if invited := b.view.Invitation; b.State == session.Invited {
		var err error
		if invited.From == b.Agent {
			_, err = s.Reject(ctx, invited.Proposal, client.Rejection{Reason: why})
		} else {
			_, err = s.Withdraw(ctx, invited.Proposal, client.Because(why))
		}
		if err == nil || !passed(err) {
			return err
		} // it has answered in the meantime
	}
	for _, o := range b.view.Proposals {
		var err error
		switch {
		case o.Status != "open":
		case o.From == b.Agent:
			_, err = s.Reject(ctx, o.Proposal, client.Rejection{Reason: why})
		default:
			_, err = s.Withdraw(ctx, o.Proposal, client.Because(why))
		}
		if err != nil && !passed(err) {
			return err
		}
	}
	_, err := s.Close(ctx, client.Closing{Outcome: performatives.Abandoned, Reason: why})
	if err != nil && passed(err) {
		if view, unread := s.View(ctx); unread == nil && view.State.Over() {
			return nil // by the other side
		}
	}
	return err
}
