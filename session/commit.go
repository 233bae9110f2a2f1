package session

import (
	"bytes"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

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
	if err := t.keepsTerms(); err != nil {
		return err
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
	if err := t.promisesForItself(all); err != nil {
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

// keepsTerms refuses a COMMIT that has another value for a term of the proposal which it carries out.
func (t *Command) keepsTerms() error {
	if t.Offer == nil || t.event.Replayed {
		return nil
	}
	var agreed map[string]jsontext.Value
	var body struct {
		Terms map[string]jsontext.Value `json:"terms"`
	}
	if json.Unmarshal(t.Offer.Terms, &agreed) != nil || json.Unmarshal(t.Message.RawBody, &body) != nil {
		return nil //nolint:nilerr // a commitment, and what is no object, has no terms to keep
	}
	var faults []Fault
	for _, name := range slices.Sorted(maps.Keys(body.Terms)) {
		is, has := agreed[name]
		if name == "obligations" || name == "penalties" || !has || bytes.Equal(is, body.Terms[name]) || len(faults) == mostFaults {
			continue
		}
		faults = append(faults, Fault{
			Path: "/terms/" + name, Rule: "agreed",
			Message: fmt.Sprintf("%q agrees to another %q: a COMMIT adds obligations and penalties, and changes no other term", t.Offer.ID, name),
		})
	}
	if len(faults) == 0 {
		return nil
	}
	return RefuseSchema(faults...)
}

// promisesForItself refuses, in a mode in which nobody accepts a COMMIT, to leave out an obligation that was agreed, or
// to add one of somebody else.
func (t *Command) promisesForItself(promised []performatives.Obligation) error {
	if t.Mode.Commits || t.Offer == nil || t.event.Replayed {
		return nil
	}
	agreed, err := obligationsIn(t.Offer.Terms)
	if err != nil {
		agreed = nil // the offer promises nothing
	}
	among := func(all []performatives.Obligation, o performatives.Obligation) bool {
		return slices.ContainsFunc(all, func(p performatives.Obligation) bool { return reflect.DeepEqual(o, p) })
	}
	for i, o := range promised {
		if o.Party != t.Side && !among(agreed, o) {
			return RefuseSchema(Fault{
				Path: fmt.Sprintf("/terms/obligations/%d", i), Rule: "agreed",
				Message: fmt.Sprintf("%s has accepted no such obligation in %q, and nobody accepts a COMMIT here: it adds obligations of its sender only", o.Party, t.Offer.ID),
			})
		}
	}
	for _, o := range agreed {
		if !among(promised, o) {
			return RefuseSchema(Fault{
				Path: "/terms/obligations", Rule: "agreed",
				Message: fmt.Sprintf("the obligation %q of %s was agreed with %q: a COMMIT with obligations has all of them", o.ID, o.Party, t.Offer.ID),
			})
		}
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
