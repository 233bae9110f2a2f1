package inbox

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"sync"

	"github.com/go-json-experiment/json"
	"golang.org/x/sync/errgroup"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// The bounds of what the page of disputes reads.
const (
	carriedReads  = 1_000 // deals, those that began last
	carriedAtOnce = 8
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
	api.DisputeView
	Session        performatives.SessionID
	Title          string // of the deal
	For            []performatives.Agent
	Standing, Tone string
}

// Link leads to the dispute.
func (d *disputeRow) Link() string {
	return link("sessions/"+string(d.Session)+"/dispute", values("dispute", d.ID))
}

// Open reports whether nothing has ended it.
func (d *disputeRow) Open() bool { return d.Status == session.DisputeOpen }

func (i *Inbox) disputes(r *http.Request, who *person) (*disputes, error) {
	status := r.URL.Query().Get("status")
	if status != "" && status != "all" {
		return nil, session.Refuse(session.SchemaInvalid, "status is all or absent")
	}
	deals, cut, err := i.carriedOut(r.Context(), who.Agent)
	if err != nil {
		return nil, err
	}
	v := &disputes{All: status == "all", Cut: cut}
	for _, t := range []tab{{Name: "Open"}, {Name: "All", Link: "all"}} {
		v.Tabs = append(v.Tabs, tab{Name: t.Name, Link: link("disputes", values("status", t.Link)), Chosen: t.Link == status})
	}
	for n := range deals {
		for _, d := range deals[n].Disputes {
			row := newDisputeRow(&deals[n], d)
			switch {
			case !v.All && !row.Open():
			case len(v.Rows) == dueRows:
				v.Cut = true
			default:
				v.Rows = append(v.Rows, row)
			}
		}
	}
	return v, nil
}

// carriedOut reads the deals of a caller that are carried out, and reports whether there are more.
func (i *Inbox) carriedOut(ctx context.Context, as performatives.Agent) (deals []api.Snapshot, cut bool, err error) {
	var ids []performatives.SessionID
	for _, state := range []session.Phase{session.Executing, session.Escalated} {
		q := api.ListSessions{State: state.String(), Limit: api.MaxPage}
		for looked := 0; ; {
			page, err := ask(ctx, i, as, api.SessionList, q)
			if err != nil {
				return nil, false, err
			}
			looked += len(page.Sessions)
			for _, s := range page.Sessions {
				if s.Agreed { // else it was escalated while it is negotiated
					ids = append(ids, s.Session)
				}
			}
			if q.Cursor = page.Next; q.Cursor == "" || looked >= carriedReads {
				cut = cut || q.Cursor != "" || len(ids) > carriedReads
				break
			}
		}
	}
	ids = ids[:min(len(ids), carriedReads)]
	work, ctx := errgroup.WithContext(ctx)
	work.SetLimit(carriedAtOnce)
	var mu sync.Mutex
	for _, id := range ids {
		work.Go(func() error {
			deal, err := ask(ctx, i, as, api.SessionSnapshot, api.GetSnapshot{Session: id})
			if err != nil && !notReadable(err) {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			if len(deal.Disputes) > 0 {
				deals = append(deals, deal)
			}
			return nil
		})
	}
	err = work.Wait()
	slices.SortFunc(deals, func(a, b api.Snapshot) int { return cmp.Compare(b.Session, a.Session) }) // newest first
	return deals, cut, err
}

// notReadable reports whether a session that was just listed cannot be read: it has ended, or so has a
// delegation.
func notReadable(err error) bool {
	return isCode(err, session.UnknownSession) || isCode(err, session.AuthorityExceeded)
}

func newDisputeRow(deal *api.Snapshot, d api.DisputeView) disputeRow {
	row := disputeRow{DisputeView: d, Session: deal.Session, Title: cmp.Or(oneLine(deal.Purpose), "Deal")}
	for _, o := range deal.Open {
		if o.Kind == "dispute" && o.ID == d.ID {
			row.For = o.For
		}
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

// grounds are those of a dispute in words.
var grounds = map[string]string{
	performatives.NonDelivery: "nothing was delivered", performatives.LateDelivery: "it was late", "mismatch": "it is not what was promised",
	"unauthorized-change": "it was changed without authority", "escrow": "what is held in escrow", "other": "something else",
}

// Why is the dispute's ground in words.
func (d *disputeRow) Why() string { return cmp.Or(grounds[d.Ground], oneLine(d.Ground)) }

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
	d := &dispute{disputeRow: newDisputeRow(&deal, all[at]), Arbiter: view.Arbiter, You: deal.You, Counterparty: all[at].By.Organisation() != us}
	if about := d.DisputeView.Obligation; about != "" {
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
