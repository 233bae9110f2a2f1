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
	if err := t.keepsTerms(); err != nil {
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
	if err := t.obligesItself(promised); err != nil {
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

// keepsTerms refuses a COMMIT that has another value for a term of the proposal which it carries out. In a mode in which
// nobody accepts a COMMIT it has no other terms at all.
func (t *Command) keepsTerms() error {
	if t.Offer == nil || t.event.Replayed {
		return nil
	}
	var agreed map[string]jsontext.Value
	var body struct {
		Terms    map[string]jsontext.Value `json:"terms"`
		Deadline jsontext.Value            `json:"deadline"`
		Escrow   jsontext.Value            `json:"escrow"`
	}
	if json.Unmarshal(t.Offer.Terms, &agreed) != nil || json.Unmarshal(t.Message.RawBody, &body) != nil {
		return nil //nolint:nilerr // a commitment, and what is no object, has no terms to keep
	}
	var faults []Fault
	refuse := func(path, name string) {
		why := fmt.Sprintf("%q was accepted with another %q, which a COMMIT cannot change", t.Offer.ID, name)
		if agreed[name] == nil {
			why = fmt.Sprintf("%q was accepted without %q, and nobody accepts a COMMIT here", t.Offer.ID, name)
		}
		if len(faults) < mostFaults {
			faults = append(faults, Fault{Path: path + name, Rule: "agreed", Message: why})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(body.Terms)) {
		switch is, has := agreed[name]; {
		case name == "obligations", has && bytes.Equal(is, body.Terms[name]):
		case !t.Mode.Commits, has && name != "penalties":
			refuse("/terms/", name)
		}
	}
	if body.Deadline != nil && !t.Mode.Commits && !bytes.Equal(agreed["deadline"], body.Deadline) {
		refuse("/", "deadline")
	}
	if body.Escrow != nil && !t.Mode.Commits && !bytes.Equal(agreed["escrow"], body.Escrow) {
		refuse("/", "escrow")
	}
	if len(faults) == 0 {
		return nil
	}
	return RefuseSchema(faults...)
}

// obligesItself refuses, in a mode in which nobody accepts a COMMIT, to leave out an obligation that was agreed, or to
// add one of somebody else.
func (t *Command) obligesItself(promised []performatives.Obligation) error {
	if t.Mode.Commits || t.Offer == nil || t.event.Replayed {
		return nil
	}
	var agreed performatives.CommitmentTerms
	if _, err := obligationsIn(t.Offer.Terms); err != nil || json.Unmarshal(t.Offer.Terms, &agreed) != nil {
		agreed.Obligations = nil // the offer promises nothing
	}
	left := agreed.Obligations
	for i, o := range promised {
		same := slices.IndexFunc(left, func(a performatives.Obligation) bool { return sameObligation(a, o) })
		switch {
		case same >= 0:
			left = slices.Delete(slices.Clone(left), same, same+1)
		case o.Party != t.Side:
			return RefuseSchema(Fault{
				Path: fmt.Sprintf("/terms/obligations/%d", i), Rule: "agreed",
				Message: fmt.Sprintf("%s has accepted no such obligation in %q, and nobody accepts a COMMIT here: it adds obligations of its sender only", o.Party, t.Offer.ID),
			})
		}
	}
	if len(left) > 0 {
		return RefuseSchema(Fault{
			Path: "/terms/obligations", Rule: "agreed",
			Message: fmt.Sprintf("an obligation of %s was agreed with %q: a COMMIT that names obligations names all of them", left[0].Party, t.Offer.ID),
		})
	}
	return nil
}

// sameObligation compares obligations as they were written: one without an id has its place for one.
func sameObligation(a, b performatives.Obligation) bool {
	if a.Deadline != nil && b.Deadline != nil && a.Deadline.Equal(*b.Deadline) {
		a.Deadline, b.Deadline = nil, nil
	}
	return reflect.DeepEqual(a, b)
}

// commitsTo limits a COMMIT by its own body and the proposal that it carries out;
// that there is none is judged later.
func commitsTo(t *Command, _ *escalation.Bound) (escalation.Pledge, bool) {
	body := t.Message.Body.(*performatives.CommitBody) //nolint:errcheck,forcetypeassert // its act says so
	if body.Outcome == outcomeRejected || body.ReferenceID != "" && t.Offer == nil {
		return escalation.Pledge{}, false
	}
	return t.pledgeOf(&Offer{Kind: aCommitment, Body: t.Message.RawBody, Supersedes: body.ReferenceID}), true
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
