package session

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/performatives"
)

// ofExecution drafts what may be said of what is carried out.
func (s *State) ofExecution(you performatives.Agent) []draft {
	if !s.executing {
		return nil
	}
	var all []draft
	for _, o := range s.soonest() {
		all = append(all, s.ofObligation(o)...)
	}
	for i, c := range s.carried {
		if i == mostMoved {
			break
		}
		obligation := members{"party": you, "action": sample}
		all = append(all, draft{
			act: performatives.Propose, reference: c.ID, kind: performatives.Amendment, free: true,
			body:  members{"proposalId": s.fresh("amendment"), "type": performatives.Amendment, "referenceId": c.ID, "subject": "other obligations"},
			fill:  members{"terms": members{"obligations": []members{with(obligation, members{"party": c.Parties[0], "id": s.fresh("obligation")})}}},
			paths: []string{"terms.obligations"},
		})
	}
	dispute := members{"disputeId": s.fresh("dispute"), "subject": s.Head}
	all = append(all, draft{
		act: performatives.Inform, kind: performatives.Dispute, body: members{"type": performatives.Dispute, "data": dispute},
		fill:  members{"data": with(dispute, members{"ground": "other", "claim": sample, "severity": 1})},
		paths: []string{"data.claim", "data.ground", "data.severity"},
		oneOf: map[string][]jsontext.Value{"data.ground": texts("non-delivery", "late", "mismatch", "unauthorized-change", "escrow", "other"), "data.severity": {jsontext.Value("1"), jsontext.Value("2"), jsontext.Value("3"), jsontext.Value("4"), jsontext.Value("5")}},
	})
	for _, d := range s.Disputes() {
		if d.Status == DisputeOpen {
			all = append(all, s.ofDispute(d)...)
		}
	}
	return all
}

// soonest are obligations that are not over, those that are due first before the others.
func (s *State) soonest() []*Obligation {
	var all []*Obligation
	add := func(key string) bool {
		o, _ := s.obligations.Get(key)
		all = append(all, o)
		return len(all) < mostMoved
	}
	for _, key := range s.toAnswer.All() {
		if !add(key) {
			return all
		}
	}
	for it := s.dues.Iterator(); ; {
		_, due, ok := it.Next()
		if o, is := s.obligations.Get(due.obligation); is && o.StillDue() && !add(due.obligation) || !ok {
			break
		}
	}
	for _, key := range s.obliged {
		if o, _ := s.obligations.Get(key); o.StillDue() && o.due.IsZero() && !add(key) {
			break
		}
	}
	return all
}

// ofObligation drafts what its party and the other side may say of an obligation.
func (s *State) ofObligation(o *Obligation) []draft {
	named := members{"commitmentId": o.Commitment, "obligation": o.ID}
	says := func(kind string, more members, paths ...string) draft {
		d := draft{act: performatives.Inform, reference: o.Name(), kind: kind, body: members{"type": kind, "data": named}}
		if len(more) > 0 {
			d.fill, d.paths = members{"data": with(named, more)}, paths
		}
		return d
	}
	all := []draft{
		says(performatives.Result, nil),
		says(performatives.Progress, members{"data": members{"note": sample}}, "data.data"),
		says(performatives.Waiver, members{"reason": sample}, "data.reason"),
	}
	if d := o.Delivery; d != nil {
		all = append(all, draft{act: performatives.Accept, reference: d.ID, body: members{"referenceId": d.ID}}, rejection(d.ID))
	}
	return all
}

// ofDispute drafts what the other sides and the arbiter may say of a dispute.
func (s *State) ofDispute(d *Dispute) []draft {
	var all []draft
	for _, position := range []string{performatives.Concede, performatives.Deny, performatives.OfferOf} {
		data := members{"disputeId": d.DisputeID, "position": position}
		reply := draft{act: performatives.Inform, reference: d.DisputeID, kind: position, body: members{"type": performatives.Reply, "data": data}}
		if position == performatives.OfferOf {
			reply.fill, reply.paths = members{"data": with(data, members{"remedy": sample})}, []string{"data.remedy"}
		}
		all = append(all, reply)
	}
	for _, decision := range []string{performatives.Upheld, performatives.Dismissed, performatives.Split} {
		data := members{"disputeId": d.DisputeID, "decision": decision}
		all = append(all, draft{
			act: performatives.Inform, reference: d.DisputeID, kind: decision, body: members{"type": performatives.Resolution, "data": data},
			fill: members{"data": with(data, members{"reason": sample})}, paths: []string{"data.reason"},
		})
	}
	for _, r := range d.Replies {
		if r.Position == performatives.OfferOf {
			all = append(all, draft{act: performatives.Accept, reference: r.ID, body: members{"referenceId": r.ID}})
		}
	}
	return all
}
