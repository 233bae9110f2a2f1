package inbox

import (
	"cmp"
	"net/http"
	"slices"
	"time"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/api/render"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// A deal is one negotiation in the state it is in, with the decision beside it where one is asked for.
type deal struct {
	api.SessionView
	Decision     *item // nil on the page of the deal alone
	Whole        bool  // the reader may read the session, not only the item
	Title        string
	Status       string // the state as a sentence
	Tone         string // good, bad or warn; "" while nothing is special
	Top          *offered
	Waits        []waits
	Owes         []dueRow
	Disputed     []disputeRow
	Ends         time.Time // when the session ends if nobody answers
	Pictures     []picture
	Parties      []partyRow
	Delegations  *graph
	Times        *times
	Agreements   []api.AgreementRow
	Conversation []entry
	Next         *uint64
	Now          time.Time
}

// A waits is what waits for an answer.
type waits struct {
	Kind string
	By   performatives.Agent
	For  []performatives.Agent
	Due  time.Time
}

// A partyRow is one party, and for whom it acts.
type partyRow struct {
	api.PartyView
	Does string
}

// deal reads the page of a session.
func (i *Inbox) deal(r *http.Request, who *person) (*deal, error) {
	id := performatives.SessionID(r.PathValue("id"))
	d, snapshot, err := i.negotiation(r, who, id)
	if err != nil {
		return nil, err
	}
	messages, err := ask(r.Context(), i, who.Agent, api.SessionMessages, api.ListMessages{Session: id, Since: since(r), Limit: api.MaxPage})
	if err != nil {
		return nil, err
	}
	us := who.Agent.Organisation()
	read := i.newConversation(r.Context(), who, us)
	labels := map[string]api.Label{}
	if n := len(d.Proposals); n > 0 {
		labels = read.Labels(d.Proposals[n-1].Schema)
	}
	d.Title, d.Conversation, d.Next = cmp.Or(oneLine(d.Purpose), "Deal"), read.all(messages.Messages, messages.Sealed), messages.Next
	d.Top = onTop(&snapshot, d.Proposals, us, labels)
	d.Top.accepted(d.Conversation)
	d.Pictures = pictures(snapshot.Offers, d, us, labels)
	return d, nil
}

// itemPage reads the page of a session with the decision that an escalation asks for.
func (i *Inbox) itemPage(r *http.Request, who *person) (*deal, error) {
	it, err := i.item(r, who)
	if err != nil {
		return nil, err
	}
	d, snapshot, err := i.negotiation(r, who, it.Session)
	if refused(err) { // the reader sees the item alone
		d, err = &deal{SessionView: api.SessionView{Session: it.Session, CCC: it.CCC, Publish: it.Publish}, Now: i.Now()}, nil
	}
	if err != nil {
		return nil, err
	}
	it.uses(snapshot.Offers)
	d.Decision, d.Title, d.Conversation, d.Next = it, it.Title, it.Conversation, it.Next
	if d.Top = atStake(it); d.Top == nil && d.Whole {
		d.Top = onTop(&snapshot, d.Proposals, it.Organisation, it.Labels)
	}
	d.Pictures = pictures(snapshot.Offers, d, it.Organisation, it.Labels)
	return d, nil
}

// negotiation reads what both pages show of a session, and its snapshot.
func (i *Inbox) negotiation(r *http.Request, who *person, id performatives.SessionID) (*deal, api.Snapshot, error) {
	view, err := ask(r.Context(), i, who.Agent, api.SessionGet, api.GetSession{Session: id})
	if err != nil {
		return nil, api.Snapshot{}, err
	}
	snapshot, err := ask(r.Context(), i, who.Agent, api.SessionSnapshot, api.GetSnapshot{Session: id})
	if err != nil {
		return nil, api.Snapshot{}, err
	}
	agreements, err := ask(r.Context(), i, who.Agent, api.AgreementList, api.ListAgreements{Session: id})
	if err != nil && !refused(err) {
		return nil, api.Snapshot{}, err
	}
	d := &deal{SessionView: view, Whole: true, Agreements: agreements.Agreements, Delegations: graphOf(view.Delegations, i.called), Now: i.Now()}
	d.Status, d.Tone = standing(view.State, view.Closing)
	for _, o := range snapshot.Open {
		d.Waits = append(d.Waits, waits{o.Kind, o.By, o.For, stamp(o.Due)})
	}
	for _, o := range snapshot.Obligations {
		d.Owes = append(d.Owes, dueRowIn(&snapshot, o))
	}
	for _, of := range snapshot.Disputes {
		d.Disputed = append(d.Disputed, disputeRowIn(&snapshot, of))
	}
	if w := snapshot.Waiting; w != nil {
		d.Ends = stamp(w.Deadline)
	}
	for _, p := range view.Participants {
		d.Parties = append(d.Parties, partyRow{p, partOf(p)})
	}
	d.Times = timeline(&view, d.Status, d.Now)
	return d, snapshot, nil
}

// standings are the states in words; "" is told by why the session is over.
var standings = map[session.Phase]string{
	session.Invited:    "Invited",
	session.Introduced: "Nothing is offered yet",
	session.Conversing: "Negotiating",
	session.Agreeing:   "A commitment is open",
	session.Executing:  "Agreed, being carried out",
	session.Escalated:  "Paused until a human decides",
}

// goodEnds are the reasons of sessions that ended as they should.
var goodEnds = []string{performatives.Completed, "accepted", "confirmed", "pending"}

// standing says in which state a session is, or how it ended.
func standing(state session.Phase, closing string) (text, tone string) {
	switch state {
	case session.Closed, session.Failed:
	case session.Escalated:
		return standings[state], "warn"
	case session.Executing:
		return standings[state], "good"
	default:
		return standings[state], ""
	}
	if state == session.Closed && slices.Contains(goodEnds, closing) {
		return render.Ending(closing), "good"
	}
	return render.Ending(closing), "bad"
}

// partOf says what a party is in the session.
func partOf(p api.PartyView) string {
	role := p.Role
	switch {
	case p.OnBehalfOf != "" && p.Authority != "":
		role += ", " + p.Authority + " authority"
	case p.Custody != "":
		role += ", key held by the installation"
	}
	if p.Status != "joined" && p.Status != "active" {
		role += ", " + p.Status
	}
	return role
}
