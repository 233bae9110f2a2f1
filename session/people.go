package session

import (
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
)

// A dispute that neither an arbiter nor the transcript decides goes to the humans of each party's
// organisation (COMMITMENTS.md C2). They answer it for their party, by INFORM reply or an ACCEPT of
// what the other side offers. It does not pause the session.

// urgencies of disputes, by their severity from 1.
var urgencies = [...]escalation.Urgency{escalation.Low, escalation.Low, escalation.Medium, escalation.High, escalation.Critical}

// asksPeople opens an item for each organisation of the parties of a dispute.
func (t *Command) asksPeople(d *Dispute) {
	claim, _ := json.Marshal(d.Claim)
	asked := map[performatives.Organisation]bool{}
	for _, side := range t.Sides() {
		org := side.Organisation()
		if asked[org] || !t.disputeOf(d, side) {
			continue
		}
		asked[org] = true
		item := &escalation.Item{
			ID: itemOf(t.Message.ID, org), By: t.From.Agent, Principal: side, Org: org, At: t.At, Due: t.wall(d.due, t.At), Sequence: t.Next, Dispute: d.DisputeID,
			Body: &performatives.EscalateBody{
				Reason: performatives.Dispute, Urgency: string(urgencies[min(max(d.Severity, 1), len(urgencies))-1]), Context: claim, ReferenceID: d.Commitment,
			},
		}
		d.people = append(d.people, item.ID)
		t.setItem(item)
		t.people = append(slices.Clip(t.people), item.ID)
		t.deciders = t.deciders.With(org, true)
	}
}

// itemOf is the id of an organisation's item of a dispute, in the form of a UUID (RFC 9562, version 8).
func itemOf(filed performatives.MessageID, org performatives.Organisation) escalation.ID {
	sum := sha256.Sum256([]byte(string(filed) + " " + string(org)))
	sum[6], sum[8] = sum[6]&0x0f|0x80, sum[8]&0x3f|0x80
	return escalation.ID(fmt.Sprintf("%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16]))
}

// answersFor is the party for which a human answers a dispute, "" if none is the human's to answer.
func (t *Command) answersFor(human performatives.Member) performatives.Agent {
	var id string
	if inform := t.inform(); inform != nil {
		r, _ := inform.Reply()
		id = r.DisputeID
	} else if t.Act == performatives.Accept {
		id, _ = t.remedies.Get(t.Message.Body.Refers())
	}
	d, ok := t.claims.Get(id)
	if !ok || !escalation.MayDecide(human, human.Agent.Organisation()) {
		return ""
	}
	for _, id := range d.people {
		if item, _ := t.items.Get(id); item.Org == human.Agent.Organisation() {
			return item.Principal
		}
	}
	return ""
}

// replied ends the item of an organisation whose human has replied to a dispute.
func (t *Command) replied(d *Dispute, position string) {
	if t.From.Role != Approver {
		return
	}
	for _, id := range d.people {
		if item, _ := t.items.Get(id); item.Open() && item.Principal == t.Side {
			t.endsItem(item, position)
		}
	}
}

// endsAsking ends the items of a dispute that has ended.
func (t *Command) endsAsking(d *Dispute, how string) {
	for _, id := range d.people {
		if item, _ := t.items.Get(id); item.Open() {
			t.endsItem(item, how)
		}
	}
}

func (t *Command) endsItem(open *escalation.Item, how string) {
	item := *open
	item.End = escalation.End{By: t.Message.Sender, How: how, At: t.At, Sequence: t.Next}
	t.setItem(&item)
	t.people = slices.DeleteFunc(slices.Clone(t.people), func(id escalation.ID) bool { return id == item.ID })
}

// setItem enters what has become of an item of a dispute.
func (t *Command) setItem(item *escalation.Item) {
	t.items = t.items.With(item.ID, item)
	t.Last.Disputes = append(t.Last.Disputes, item)
}

// DisputeItems are the open items of disputes, which pause nothing.
func (s *State) DisputeItems() (all []*escalation.Item) {
	for _, id := range s.people {
		item, _ := s.items.Get(id)
		all = append(all, item)
	}
	return all
}
