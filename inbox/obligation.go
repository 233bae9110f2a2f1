package inbox

import (
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
	You          api.SnapshotCaller
	Disputes     []disputeRow
	MayAccept    bool
	MayReject    bool
	MayDispute   bool
	Accepts      *float64 // the most that can be accepted; nil without a quantity
	Now          time.Time
	Me           *person
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
	o := &obligation{dueRow: newDueRow(&deal, *found), You: deal.You, Now: i.Now(), Me: who}
	for _, d := range deal.Disputes {
		if d.Commitment == found.Commitment && d.Obligation == found.ID {
			o.Disputes = append(o.Disputes, newDisputeRow(&deal, d))
		}
	}
	d := found.Delivery
	if d == nil {
		return o, nil
	}
	us := who.Agent.Organisation()
	o.Counterparty = d.By.Organisation() != us
	for _, m := range deal.Moves {
		o.MayAccept = o.MayAccept || m.Reference == d.Reference && m.Performative == performatives.Accept.String()
		o.MayReject = o.MayReject || m.Reference == d.Reference && m.Performative == performatives.Reject.String()
		o.MayDispute = o.MayDispute || files(m)
	}
	if o.Accepts = found.Remains; d.Quantity != nil {
		o.Accepts = d.Quantity
	}
	e, err := i.entry(r.Context(), who, id, d.Sequence)
	if err == nil && e.Message != nil {
		shown := i.newConversation(r.Context(), who, us).entry(e)
		o.Delivered, o.Shown = &shown, shown.Hash
	}
	return o, err
}

// files reports whether a move files a dispute.
func files(m api.Move) bool {
	var body struct {
		Type string `json:"type"`
	}
	return m.Performative == performatives.Inform.String() && json.Unmarshal(m.Body, &body) == nil && body.Type == performatives.Dispute
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
