package session

import (
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
)

var _ = does(performatives.Commit, deed{refers: commits, happens: committed, agrees: commitsTo})

func commits(t *Command) error {
	body := t.Message.Body.(*performatives.CommitBody) //nolint:errcheck,forcetypeassert // its act says so
	if body.ReferenceID != "" && (t.Offer == nil || !t.Offer.IsProposal()) {
		return unknownReference(body.ReferenceID, "proposal")
	}
	if err := judge(t.Mode.Committing, t); err != nil {
		return err
	}
	t.offering = &Offer{
		ID: body.CommitmentID, Kind: aCommitment, Side: t.Side, By: t.From.Agent,
		Line: body.CommitmentID, Body: t.Message.RawBody, Supersedes: body.ReferenceID,
	}
	if err := t.newID(body.CommitmentID); err != nil {
		return err
	}
	if err := t.addresses(); err != nil {
		return err
	}
	if body.Terms == nil {
		return nil
	}
	for i, o := range body.Terms.Obligations {
		if p, ok := t.hasPart(o.Party); !ok || p.Role >= Approver {
			return RefuseSchema(Fault{
				Path: fmt.Sprintf("/terms/obligations/%d/party", i), Rule: "participant",
				Message: fmt.Sprintf("%s has no part in the session", o.Party),
			})
		}
	}
	if t.Before(7) {
		return nil
	}
	return t.promises(body.Terms.Obligations)
}

// promises judges the obligations of a COMMIT: they are of its parties, and no more than a session has.
func (t *Command) promises(promised []performatives.Obligation) error {
	all, err := identified(promised)
	if err != nil {
		return err
	}
	parties := t.Sides()
	if t.offering.To != "" {
		parties = []performatives.Agent{t.Side, t.offering.To}
		if t.Offer != nil {
			parties = append(parties, t.Offer.Side)
		}
	}
	if err := ofParties(all, parties); err != nil {
		return err
	}
	t.offering.promises = len(all)
	total := t.promised + len(all)
	for _, o := range t.live.All() {
		total += o.promises
	}
	if total > MostObligations {
		return RefuseSchema(tooManyObligations(total))
	}
	return nil
}

// commitsTo limits a COMMIT by its own body and the proposal that it carries out;
// that there is none is judged later.
func commitsTo(t *Command, _ *escalation.Bound) (escalation.Pledge, bool) {
	body := t.Message.Body.(*performatives.CommitBody) //nolint:errcheck,forcetypeassert // its act says so
	if body.Outcome == outcomeRejected || body.ReferenceID != "" && t.Offer == nil {
		return escalation.Pledge{}, false
	}
	return t.pledge(&Offer{Kind: aCommitment, Body: t.Message.RawBody, Supersedes: body.ReferenceID}), true
}

const outcomeRejected = "rejected"

// commitsToNothing reports whether a commitment's outcome is a rejection.
func commitsToNothing(o *Offer) bool {
	var body struct {
		Outcome string `json:"outcome"`
	}
	return json.Unmarshal(o.Body, &body) == nil && body.Outcome == outcomeRejected
}

func committed(t *Command) {
	t.openCommitments++
	t.put(t.offering)
}
