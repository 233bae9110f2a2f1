package inbox

import (
	"cmp"
	"net/http"
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// disputes are those of the deals in which the reader is a party, decides, or is the arbiter.
type disputes struct {
	Rows []disputeRow
	Tabs []tab
	All  bool // those that are over, too
	Cut  bool // there are more
}

// A disputeRow is one dispute.
type disputeRow struct {
	api.DisputeRow
	Title          string // of the deal
	Standing, Tone string
	Link           string
	Why            string // the ground in words
	Open           bool   // nothing has ended it
}

func (i *Inbox) disputes(r *http.Request, who *person) (*disputes, error) {
	status := r.URL.Query().Get("status")
	if status != "" && status != api.AllDisputes {
		return nil, session.Refuse(session.SchemaInvalid, "status is all or absent")
	}
	v := &disputes{All: status == api.AllDisputes}
	for _, t := range []tab{{Name: "Open"}, {Name: "All", Link: api.AllDisputes}} {
		v.Tabs = append(v.Tabs, tab{Name: t.Name, Link: link("disputes", values("status", t.Link)), Chosen: t.Link == status})
	}
	for q := (api.ListDisputes{Status: status, Limit: api.MaxObligations}); ; {
		page, err := ask(r.Context(), i, who.Agent, api.DisputeList, q)
		if err != nil {
			return nil, err
		}
		for _, d := range page.Disputes {
			v.Rows = append(v.Rows, newDisputeRow(d))
		}
		if q.Cursor = page.Next; q.Cursor == "" || len(v.Rows) >= dueRows {
			v.Cut = q.Cursor != "" || len(v.Rows) > dueRows
			v.Rows = v.Rows[:min(len(v.Rows), dueRows)]
			return v, nil
		}
	}
}

// disputeRowIn is a dispute of a deal.
func disputeRowIn(deal *api.Snapshot, d api.DisputeView) disputeRow {
	row := api.DisputeRow{Session: deal.Session, Purpose: deal.Purpose, DisputeView: d}
	for _, o := range deal.Open {
		if o.Kind == "dispute" && o.ID == d.ID {
			row.For = o.For
		}
	}
	return newDisputeRow(row)
}

func newDisputeRow(d api.DisputeRow) disputeRow {
	row := disputeRow{
		DisputeRow: d, Title: cmp.Or(oneLine(d.Purpose), "Deal"), Link: disputeLink(d.Session, d.ID),
		Why: cmp.Or(grounds[d.Ground], oneLine(d.Ground)), Open: d.Status == session.DisputeOpen,
	}
	switch d.Status {
	case session.DisputeOpen:
		row.Standing, row.Tone = "Open", "warn"
	case performatives.Upheld, performatives.Unresolved:
		row.Standing, row.Tone = sentence(d.Status), "bad"
	default:
		row.Standing, row.Tone = sentence(oneLine(d.Status)), "good"
	}
	return row
}

func disputeLink(id performatives.SessionID, dispute string) string {
	return link("sessions/"+string(id)+"/dispute", values("dispute", dispute))
}

// grounds are those of a dispute in words.
var grounds = map[string]string{
	performatives.NonDelivery: "nothing was delivered", performatives.LateDelivery: "it was late", "mismatch": "it is not what was promised",
	"unauthorized-change": "it was changed without authority", "escrow": "what is held in escrow", "other": "something else",
}

// A dispute is one dispute with everything that was said of it. What the reader may send is what the
// broker says.
type dispute struct {
	disputeRow
	Obligation   *dueRow // that it is about
	Counterparty bool    // the other side filed it
	Entries      []entry // what it is about, the dispute, the replies, and what ended it
	Left         int     // replies that are left out
	Arbiter      performatives.Agent
	Positions    []string // in which the reader may reply
	Decisions    []string // that the reader may take, as the arbiter
	Offer        *api.DisputeReplyView
	You          api.SnapshotCaller
}

// mostReplies are the replies that a page shows: the newest.
const mostReplies = 20

func (i *Inbox) dispute(r *http.Request, who *person) (*dispute, error) {
	id := performatives.SessionID(r.PathValue("id"))
	deal, err := ask(r.Context(), i, who.Agent, api.SessionSnapshot, api.GetSnapshot{Session: id})
	if err != nil {
		return nil, err
	}
	view, err := ask(r.Context(), i, who.Agent, api.SessionGet, api.GetSession{Session: id})
	if err != nil {
		return nil, err
	}
	all := slices.Concat(deal.Disputes, view.Disputes)
	at := slices.IndexFunc(all, func(d api.DisputeView) bool { return d.ID == r.URL.Query().Get("dispute") })
	if at < 0 {
		return nil, session.Refuse(session.UnknownSession, "the deal has no such dispute")
	}
	us := who.Agent.Organisation()
	d := &dispute{disputeRow: disputeRowIn(&deal, all[at]), Arbiter: view.Arbiter, You: deal.You, Counterparty: all[at].By.Organisation() != us}
	if about := d.DisputeRow.Obligation; about != "" {
		if o, err := i.owed(r.Context(), who, &deal, d.Commitment, about); err == nil {
			row := dueRowIn(&deal, *o)
			d.Obligation = &row
		}
	}
	d.moves(deal.Moves)
	entries := []uint64{d.Entry, d.Sequence}
	d.Left = max(0, len(d.Replies)-mostReplies)
	for _, reply := range d.Replies[d.Left:] {
		entries = append(entries, reply.Sequence)
	}
	if d.Decided > 0 {
		entries = append(entries, d.Decided)
	}
	t := i.newConversation(r.Context(), who, us)
	for _, n := range entries {
		e, err := i.entry(r.Context(), who, id, n)
		if err != nil {
			return nil, err
		}
		if e.Message != nil {
			d.Entries = append(d.Entries, t.entry(e))
		}
	}
	return d, nil
}

// moves are what the reader may say of the dispute.
func (d *dispute) moves(all []api.Move) {
	for _, m := range all {
		if m.Performative == performatives.Accept.String() {
			for n, reply := range d.Replies {
				if reply.Reference == m.Reference {
					d.Offer = &d.Replies[n] // the newest: it comes last
				}
			}
		}
		var body struct {
			Type string `json:"type"`
			Data struct {
				Dispute  string `json:"disputeId"`
				Position string `json:"position"`
				Decision string `json:"decision"`
			} `json:"data"`
		}
		if m.Performative != performatives.Inform.String() || json.Unmarshal(m.Body, &body) != nil || body.Data.Dispute != d.ID {
			continue
		}
		switch body.Type {
		case performatives.Reply:
			d.Positions = append(d.Positions, body.Data.Position)
		case performatives.Resolution:
			d.Decisions = append(d.Decisions, body.Data.Decision)
		}
	}
}
