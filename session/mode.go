package session

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/performatives"
)

// A Mode is a way to hold a session: a value made of small rules. It narrows
// the lifecycle and says what answering an offer means; it never widens what
// is allowed (PROTOCOL.md §8).
type Mode struct {
	Name     string // with its version, such as "asp/1"
	Min, Max int    // how many principals

	// Open reads the invitation's policy and makes the mode's own state. Nil
	// for a mode without parameters.
	Open func(t *Command, policy jsontext.Value) (own any, err error)

	// Rules judge every act once its state and authority are right.
	Rules []Rule
	// Offering rules judge a PROPOSE and the offer that a COUNTER makes.
	Offering []Rule
	// Answering rules judge an ACCEPT, REJECT, COUNTER or CLARIFY of an offer
	// that is known.
	Answering []Rule

	// Committing rules judge what a COMMIT refers to.
	Committing []Rule

	// Effects replace what an act on a proposal, or an INFORM that is no ruling,
	// does by default.
	Effects map[performatives.Performative]func(*Command)
	// After follows every accepted act. It may carry the session further.
	After func(*Command)

	// Retires says whether a PROPOSE supersedes what is open in its thread. Nil is no.
	Retires func(*State) bool
	// Confirms says that an ACCEPT of a proposal waits for humans, by Command.Confirm. Nil
	// waits for nobody.
	Confirms func(*State) bool
	// Binds is the format since which an ACCEPT of a proposal makes an agreement; 0 is never.
	Binds int
	// Commits says that since format 4 an agreement waits for the COMMIT that carries the
	// proposal out, or for a CLOSE with the outcome completed.
	Commits bool
	// Signed says that an offer and its ACCEPT carry the parties' signatures of the agreement.
	Signed bool
	// Validity is how long an offer is valid that does not say; nil is for ever.
	Validity func(*State) time.Duration
	// Duration is how long a session lasts at least by default; nil is no more
	// than the broker's own default.
	Duration func(*State) time.Duration
	// Deadlines are the mode's own, on the session's clock.
	Deadlines func(*State) []Deadline
	// Ended is told when a deadline, the mode's own or not, ended the session.
	Ended func(*Command, Deadline)
	// Turn is the turn that waits for a side; nil asks the offers.
	Turn func(s *State, side performatives.Agent, at time.Time) (Turn, bool)
	// Needs are members that an act needs here besides those of its schema, with a sample of each.
	Needs func(s *State, act performatives.Performative, reference string) map[string]any
	// View is what the mode adds to the view of a session: a struct of JSON
	// members that the view does not have. Nil adds nothing.
	View func(s *State, at time.Time) any
}

// A Rule judges an act: nil, or a *Refusal. It changes nothing.
type Rule func(*Command) error

// Modes are the modes that a session may be held in, by name.
type Modes map[string]*Mode

// DefaultMode is the one of an invitation that picks none.
const DefaultMode = "asp/1"

func judge(rules []Rule, t *Command) error {
	for _, rule := range rules {
		if err := rule(t); err != nil {
			return err
		}
	}
	return nil
}

// The rules below are asp/1's; other modes pick from them.

// ForAnother reports whether the sender acts for another: it is a delegate or a standby.
func (t *Command) ForAnother() bool { return t.Side != t.From.Agent }

// NotOwn refuses who answers an offer of its own side.
func NotOwn(t *Command) error {
	if t.Offer.Side != t.Side {
		return nil
	}
	if t.ForAnother() {
		return Refuse(OwnProposal, "%q is the offer of %s, for whom you act; the other side answers it", t.Offer.ID, t.Side)
	}
	return Refuse(OwnProposal, "%q is your own offer; the other side answers it, and WITHDRAW takes it back", t.Offer.ID)
}

// Addressed refuses who answers an offer that was addressed to another.
func Addressed(t *Command) error {
	if t.Offer.To == "" || t.Offer.To == t.Side {
		return nil
	}
	return Refuse(Unauthorized, "%q is addressed to %s, who answers it", t.Offer.ID, t.Offer.To)
}

// StillOpen refuses an answer to an offer that is no longer open.
func StillOpen(t *Command) error {
	now := t.Offer.StatusAt(t.Now)
	if now == Open {
		if _, already := t.Offer.acceptedBy.Get(t.Side); already {
			return notOpen(t.Offer, "accepted by you already")
		}
		return nil
	}
	if t.Act == performatives.Clarify && now == Accepted && (t.Phase == Agreeing || t.Phase == Executing) && (t.Before(7) || t.Offer.Kind != anInvitation) {
		return nil // what was agreed may still be asked about while it is carried out
	}
	return notOpen(t.Offer, now.String())
}

func notOpen(o *Offer, how string) error {
	return Refuse(ProposalNotOpen, "%q is not open: it is %s", o.ID, how).
		With(map[string]string{"referenceId": o.ID, "status": how})
}

// NothingPending refuses ACCEPT and REJECT of an offer with open questions.
func NothingPending(t *Command) error {
	if p := t.Message.Performative; p != performatives.Accept && p != performatives.Reject {
		return nil
	}
	fields := t.OpenFields(t.Offer)
	if len(fields) == 0 {
		return nil
	}
	return Refuse(ClarificationPending, "%q waits for answers about %v; its author's INFORM fact gives them, or the asker withdraws the question", t.Offer.ID, fields).
		With(map[string]any{"referenceId": t.Offer.ID, "openFields": fields})
}

// NotRepeated refuses a PROPOSE whose terms equal those of an open offer of
// the same side.
func NotRepeated(t *Command) error {
	if t.Message.Performative != performatives.Propose {
		return nil
	}
	if same, found := t.sameTerms(t.Side, t.offering.Terms); found {
		return Refuse(Duplicate, "%q, still open, offers the same terms", same).With(map[string]string{"proposalId": same})
	}
	return nil
}

// CommitmentTerms refuses a COMMIT that names no obligations.
func CommitmentTerms(t *Command) error {
	if body, ok := t.Message.Body.(*performatives.CommitBody); ok && body.Terms == nil {
		return RefuseSchema(Fault{Path: "/terms", Rule: "required", Message: "terms is required in mode " + t.Mode.Name})
	}
	return nil
}

// AcceptedFirst refuses a COMMIT that names a proposal which is not accepted.
func AcceptedFirst(t *Command) error {
	if t.Message.Performative != performatives.Commit || t.Offer == nil || t.Offer.Status == Accepted {
		return nil
	}
	return Refuse(ProposalNotOpen, "a COMMIT on %q needs it accepted; it is %s", t.Offer.ID, t.Offer.StatusAt(t.Now)).
		With(map[string]string{"referenceId": t.Offer.ID, "status": t.Offer.StatusAt(t.Now).String()})
}
