package inbox

import (
	"cmp"
	"net/http"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/api/render"
	"github.com/parley-asp/parley/escalation"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// A deal is one negotiation in the state it is in.
type deal struct {
	api.SessionView
	View         api.Snapshot
	Title        string
	Status       string // the state as a sentence
	Tone         string // good, bad or warn; "" while nothing is special
	Top          *offered
	Waits        []waits
	Pictures     []picture
	Parties      []partyRow
	Delegations  []delegated
	Agreements   []api.AgreementRow
	Conversation []entry
	Next         *uint64
	Now          time.Time
}

// An offered is the offer on top of the page: what was agreed, else what is on the table.
type offered struct {
	api.SnapshotOffer
	Agreed       bool
	Counterparty bool // the other side made it
	Amount       *escalation.Amount
	Terms        []render.Term
	Until        time.Time
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

// A delegated is one delegation in the tree of them.
type delegated struct {
	api.GrantView
	Depth int
	Until time.Time
}

// deal reads the page of a session.
func (i *Inbox) deal(r *http.Request, who *person) (*deal, error) {
	id := performatives.SessionID(r.PathValue("id"))
	view, err := ask(r.Context(), i, who.Agent, api.SessionGet, api.GetSession{Session: id})
	if err != nil {
		return nil, err
	}
	snapshot, err := ask(r.Context(), i, who.Agent, api.SessionSnapshot, api.GetSnapshot{Session: id})
	if err != nil {
		return nil, err
	}
	messages, err := ask(r.Context(), i, who.Agent, api.SessionMessages, api.ListMessages{Session: id, Since: since(r), Limit: api.MaxPage})
	if err != nil {
		return nil, err
	}
	agreements, err := ask(r.Context(), i, who.Agent, api.AgreementList, api.ListAgreements{Session: id})
	if err != nil && !refused(err) {
		return nil, err
	}
	us := who.Agent.Organisation()
	read := i.newConversation(r.Context(), who, us)
	d := &deal{
		SessionView: view, View: snapshot, Title: cmp.Or(oneLine(view.Purpose), "Deal"), Agreements: agreements.Agreements,
		Conversation: read.all(messages.Messages, messages.Sealed), Next: messages.Next, Now: i.Now(),
	}
	labels := map[string]api.Label{}
	if n := len(view.Proposals); n > 0 {
		labels = read.Labels(view.Proposals[n-1].Schema)
	}
	d.Status, d.Tone = standing(view.State, view.Closing)
	d.Top = onTop(&snapshot, us, labels)
	for _, o := range snapshot.Open {
		d.Waits = append(d.Waits, waits{o.Kind, o.By, o.For, stamp(o.Due)})
	}
	d.Pictures = pictures(snapshot.Offers, view.Authorities, us, labels)
	for _, p := range view.Participants {
		d.Parties = append(d.Parties, partyRow{p, partOf(p)})
	}
	d.Delegations = tree(view.Delegations)
	return d, nil
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

// deadlines are what passes at a deadline, in words.
var deadlines = map[string]string{
	session.SessionTimeout: "The session ends", session.InvitationTimeout: "The invitation ends", session.EscalationExpired: "The escalation ends",
	session.ProposalExpired: "The offer expires", session.ResponseTimeout: "The answer is late", session.ParkedTurn: "The turn passes to a standby",
}

func deadline(code string) string { return cmp.Or(deadlines[code], oneLine(code)) }

// onTop returns what was agreed last, else the newest open offer, else the newest.
func onTop(v *api.Snapshot, us performatives.Organisation, labels map[string]api.Label) *offered {
	top := &offered{Agreed: v.Agreed != nil}
	switch open := slices.IndexFunc(v.Offers, func(o api.SnapshotOffer) bool { return o.Status == "open" }); {
	case v.Agreed != nil:
		top.SnapshotOffer = *v.Agreed
	case len(v.Offers) == 0:
		return nil
	case open >= 0:
		top.SnapshotOffer = v.Offers[open]
		for _, o := range v.Offers[open+1:] {
			if o.Status == "open" {
				top.SnapshotOffer = o
			}
		}
	default:
		top.SnapshotOffer = v.Offers[len(v.Offers)-1]
	}
	top.Counterparty = top.By.Organisation() != us
	top.Amount = amountOf(top.SnapshotOffer.Terms)
	top.Until = stamp(top.Expires)
	for _, c := range api.Compare(top.SnapshotOffer.Terms, nil, labels) {
		t := render.Term{Change: c, Note: labels[c.Path].Description, Stake: top.Amount != nil && top.Amount.Path == c.Path}
		t.Label = cmp.Or(c.Label, inWords(c.Path))
		for _, changed := range top.Changes {
			if changed.Path == c.Path {
				t.Kind, t.Before = api.Changed, changed.From
				if changed.From == nil {
					t.Kind = api.Added
				}
			}
		}
		top.Terms = append(top.Terms, t)
	}
	slices.SortStableFunc(top.Terms, func(a, b render.Term) int { return cmp.Compare(weight(a), weight(b)) })
	return top
}

// amountOf returns the highest amount that the terms of an offer name.
func amountOf(terms jsontext.Value) (highest *escalation.Amount) {
	body, err := json.Marshal(map[string]jsontext.Value{"terms": terms})
	if err != nil || len(terms) == 0 {
		return nil
	}
	found, _ := escalation.Amounts(body, nil, true)
	for n := range found {
		if highest == nil || found[n].Value > highest.Value {
			highest = &found[n]
		}
	}
	return highest
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

// tree orders delegations so that each stands below the one that it was given under.
func tree(all []api.GrantView) (ordered []delegated) {
	var below func(from performatives.Agent, depth int)
	used := map[int]bool{}
	below = func(from performatives.Agent, depth int) {
		for n, g := range all {
			if !used[n] && g.From == from {
				used[n] = true
				ordered = append(ordered, delegated{g, depth, stamp(g.ValidUntil)})
				below(g.To, depth+1)
			}
		}
	}
	for _, g := range all {
		if g.From == g.OnBehalfOf {
			below(g.From, 0)
		}
	}
	for _, g := range all {
		below(g.From, g.Depth)
	}
	return ordered
}

// transcript sends the entries as JSON lines, what parley session verify reads.
func (i *Inbox) transcript(w http.ResponseWriter, r *http.Request, who *person) {
	id := performatives.SessionID(r.PathValue("id"))
	var lines []byte
	for at := uint64(0); ; {
		page, err := ask(r.Context(), i, who.Agent, api.SessionMessages, api.ListMessages{Session: id, Since: at, Limit: api.MaxPage})
		if err != nil {
			i.trouble(w, r, who, err)
			return
		}
		for _, entry := range page.Messages {
			lines = append(append(lines, entry...), '\n')
		}
		if page.Next == nil {
			break
		}
		at = *page.Next
	}
	download(w, r, string(id)+".jsonl", "application/jsonl", lines)
}

// agreement sends the document of an agreement, what parley agreement verify reads.
func (i *Inbox) agreement(w http.ResponseWriter, r *http.Request, who *person) {
	document, err := ask(r.Context(), i, who.Agent, api.AgreementGet, api.GetAgreement{Session: performatives.SessionID(r.PathValue("id"))})
	if err != nil {
		i.trouble(w, r, who, err)
		return
	}
	data, err := json.Marshal(document, json.Deterministic(true))
	if err != nil {
		i.trouble(w, r, who, err)
		return
	}
	download(w, r, "agreement-"+r.PathValue("id")+".json", "application/json", data)
}

func download(w http.ResponseWriter, r *http.Request, name, kind string, data []byte) {
	h := w.Header()
	h.Set("Content-Type", kind)
	h.Set("Content-Disposition", `attachment; filename="`+name+`"`)
	send(w, r, http.StatusOK, data)
}
