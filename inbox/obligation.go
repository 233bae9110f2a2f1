package inbox

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// An obligation is what was promised, with what is said to be delivered of it. What the reader may send is
// what the broker says. An ACCEPT or REJECT names the delivery that is shown: while it waits, what was
// promised cannot be amended, and one that another delivery has replaced is refused.
type obligation struct {
	dueRow
	Delivered    *entry // what waits for an answer
	Counterparty bool   // the other side delivers
	Shown        performatives.Hash
	About        uint64 // the entry that a dispute is about: the delivery, else the breach
	You          api.SnapshotCaller
	Disputes     []disputeRow
	Changes      []amendment
	May          mayDo
	Accepts      *float64 // the most that can be accepted; nil without a quantity
	Promised     string   // what an amendment replaces, as JSON
	Now          time.Time
	Me           *person
}

// mayDo is what the reader may do with an obligation.
type mayDo struct{ Any, Accept, Reject, Dispute, Deliver, Waive, Amend bool }

// An amendment would replace the obligation, and waits for an answer.
type amendment struct {
	ID             string
	By             performatives.Agent
	Entries        []entry // one: the amendment
	Accept, Reject bool    // the reader may
}

func (i *Inbox) obligation(r *http.Request, who *person) (*obligation, error) {
	id, q := performatives.SessionID(r.PathValue("id")), r.URL.Query()
	deal, err := ask(r.Context(), i, who.Agent, api.SessionSnapshot, api.GetSnapshot{Session: id})
	if err != nil {
		return nil, err
	}
	found, err := i.owed(r.Context(), who, &deal, q.Get("commitment"), q.Get("obligation"))
	if err != nil {
		return nil, err
	}
	o := &obligation{dueRow: dueRowIn(&deal, *found), You: deal.You, Now: i.Now(), Me: who}
	for _, d := range deal.Disputes {
		if d.Commitment == found.Commitment && d.Obligation == found.ID {
			o.Disputes = append(o.Disputes, disputeRowIn(&deal, d))
		}
	}
	us := who.Agent.Organisation()
	o.About = found.Breach
	if d := found.Delivery; d != nil {
		o.About, o.Counterparty, o.Accepts = d.Sequence, d.By.Organisation() != us, cmp.Or(d.Quantity, found.Remains)
	}
	o.may(deal.Moves)
	read := i.newConversation(r.Context(), who, us)
	if o.About > 0 {
		e, err := i.entry(r.Context(), who, id, o.About)
		if err != nil {
			return nil, err
		}
		if e.Message != nil {
			shown := read.entry(e)
			if o.Shown = shown.Hash; found.Delivery != nil {
				o.Delivered = &shown
			}
		}
	}
	if o.May.Amend {
		o.Promised = promised(found)
	}
	o.Changes, err = i.amendments(r.Context(), who, &deal, found, read)
	return o, err
}

// may notes what the moves of the reader let it do with the obligation.
func (o *obligation) may(moves []api.Move) {
	defer func() { o.May.Any = o.May != mayDo{} }()
	name := o.Commitment + "/" + o.ID
	for _, m := range moves {
		kind := kindOf(m)
		switch act := performatives.Parse(m.Performative); {
		case o.Delivery != nil && m.Reference == o.Delivery.Reference:
			o.May.Accept = o.May.Accept || act == performatives.Accept
			o.May.Reject = o.May.Reject || act == performatives.Reject
		case act == performatives.Inform && kind == performatives.Dispute:
			o.May.Dispute = o.About > 0
		case act == performatives.Inform && m.Reference == name:
			o.May.Deliver = o.May.Deliver || kind == performatives.Result
			o.May.Waive = o.May.Waive || kind == performatives.Waiver
		case act == performatives.Propose && kind == performatives.Amendment && m.Reference == o.Commitment:
			o.May.Amend = o.Delivery == nil && !o.Over && !o.Truncated
		}
	}
}

// kindOf is the type of an INFORM or PROPOSE that a move says.
func kindOf(m api.Move) string {
	var body struct {
		Type string `json:"type"`
	}
	if json.Unmarshal(m.Body, &body) != nil {
		return ""
	}
	return body.Type
}

// promised is what is still due of an obligation, as the terms of an amendment have it.
func promised(o *api.ObligationView) string {
	terms := performatives.Obligation{
		ID: o.ID, Party: o.Party, Action: o.Action, Quantity: o.Remains, Unit: o.Unit, Amount: o.Amount, VerificationMethod: o.VerificationMethod, AcceptanceWindowMs: o.Window,
	}
	if at := stamp(o.Deadline); !at.IsZero() {
		terms.Deadline = &at
	}
	raw, err := json.Marshal(terms, json.Deterministic(true))
	if err != nil {
		return "" // it came from JSON
	}
	return string(raw)
}

// amendments are those of an obligation that wait for an answer.
func (i *Inbox) amendments(ctx context.Context, who *person, deal *api.Snapshot, o *api.ObligationView, read *conversation) (all []amendment, err error) {
	if !slices.ContainsFunc(deal.Open, func(item api.OpenItem) bool { return item.Kind == "offer" }) {
		return nil, nil
	}
	view, err := ask(ctx, i, who.Agent, api.SessionGet, api.GetSession{Session: deal.Session})
	if err != nil {
		return nil, err
	}
	for _, p := range view.Proposals {
		var terms performatives.CommitmentTerms
		named := func(of performatives.Obligation) bool { return of.ID == o.ID }
		if p.Reference != o.Commitment || p.Status != session.Open.String() || json.Unmarshal(p.Terms, &terms) != nil || !slices.ContainsFunc(terms.Obligations, named) {
			continue
		}
		c := amendment{ID: p.Proposal, By: p.From}
		for _, m := range deal.Moves {
			c.Accept = c.Accept || m.Reference == c.ID && m.Performative == performatives.Accept.String()
			c.Reject = c.Reject || m.Reference == c.ID && m.Performative == performatives.Reject.String()
		}
		e, err := i.entry(ctx, who, deal.Session, p.Sequence)
		if err != nil {
			return nil, err
		}
		if e.Message != nil {
			c.Entries = []entry{read.entry(e)}
		}
		all = append(all, c)
	}
	return all, nil
}

// owed finds an obligation of a deal: in its snapshot, which has the most urgent ones, or in the list of all.
func (i *Inbox) owed(ctx context.Context, who *person, deal *api.Snapshot, commitment, id string) (*api.ObligationView, error) {
	find := func(all []api.ObligationView) *api.ObligationView {
		at := slices.IndexFunc(all, func(o api.ObligationView) bool { return o.Commitment == commitment && o.ID == id })
		if at < 0 {
			return nil
		}
		return &all[at]
	}
	if found := find(deal.Obligations); found != nil && !found.Truncated {
		return found, nil
	}
	for q := (api.GetSession{Session: deal.Session, Part: "obligations", Limit: api.MaxPage}); ; {
		page, err := ask(ctx, i, who.Agent, api.SessionGet, q)
		if err != nil {
			return nil, err
		}
		if found := find(page.Owed); found != nil {
			return found, nil
		}
		if q.Cursor = page.Next; q.Cursor == "" {
			return nil, session.Refuse(session.UnknownSession, "the deal has no such obligation")
		}
	}
}
