package inbox

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/delegation"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session/transcript"
)

// checks is a page of what agents delegated to the reader.
type checks struct {
	Me     performatives.Agent
	Rows   []api.Check
	Tabs   []tab
	Status string
	Next   string // link to the next page
}

func (i *Inbox) checks(r *http.Request, who *person) (*checks, error) {
	q := api.ListChecks{Status: r.URL.Query().Get("status"), Cursor: r.URL.Query().Get("cursor"), Limit: queuePageSize}
	list, err := ask(r.Context(), i, who.Agent, api.CheckList, q)
	if err != nil {
		return nil, err
	}
	v := &checks{Me: who.Agent, Rows: list.Checks, Status: q.Status}
	for _, t := range []struct{ name, status string }{{"Open", ""}, {"Over", api.OverChecks}, {"All", api.AllChecks}} {
		v.Tabs = append(v.Tabs, tab{Name: t.name, Link: link("checks", values("status", t.status)), Chosen: q.Status == t.status})
	}
	if list.Next != "" {
		v.Next = link("checks", values("status", q.Status, "cursor", list.Next))
	}
	return v, nil
}

// values formats a URL query without empty values.
func values(pairs ...string) string {
	q := url.Values{}
	for n := 0; n < len(pairs); n += 2 {
		if pairs[n+1] != "" {
			q.Set(pairs[n], pairs[n+1])
		}
	}
	return q.Encode()
}

// A check is one delegation with everything that an answer needs.
type check struct {
	api.Check
	OfferByCounterparty bool
	Offered, Joined     bool
	Standing            bool
	Terms, MoreTerms    termTable
	Fields              []field // of a counter-offer
	Offer               string  // the terms at stake as JSON, for a counter-offer
	Conversation        []entry
	Next                *uint64
	Answer              *entry // what the reader reported last
	May                 map[string]bool
	Colleagues          []api.Card
	Authorities         []string // that the reader may pass on
	Now                 time.Time
	Me                  *person
}

func (i *Inbox) check(r *http.Request, who *person) (*check, error) {
	id := performatives.SessionID(r.PathValue("id"))
	c, err := ask(r.Context(), i, who.Agent, api.CheckGet, api.SessionRef{Session: id})
	if err != nil {
		return nil, err
	}
	ours := c.OnBehalfOf.Organisation()
	v := &check{
		Check: c, Offered: c.Status == delegation.Offered.String(), Joined: c.Status == delegation.Active.String(), Standing: c.Open(),
		May: map[string]bool{}, Now: i.Now(), Me: who,
	}
	for _, act := range c.Allows {
		v.May[act.String()] = true
	}
	if !v.Joined {
		return v, nil
	}
	messages, err := ask(r.Context(), i, who.Agent, api.SessionMessages, api.ListMessages{Session: id, Limit: api.MaxPage})
	if err != nil {
		return nil, err
	}
	t := i.newConversation(r.Context(), who, ours)
	v.Conversation, v.Next = t.all(messages.Messages, messages.Sealed), messages.Next
	if c.Result > 0 {
		if e, err := i.entry(r.Context(), who, id, c.Result); err == nil {
			shown := t.entry(e)
			v.Answer = &shown
		}
	}
	if c.Proposal != nil {
		item := &api.EscalationItem{Proposal: c.Proposal, Previous: c.Previous, Changes: c.Changes, Labels: c.Labels}
		v.Terms, v.MoreTerms = foldTerms(item)
		v.OfferByCounterparty = c.Proposal.By.Organisation() != ours
		for n := range v.Conversation {
			v.Conversation[n].Stake = v.Conversation[n].Number == c.Proposal.Sequence
		}
		if v.May["COUNTER"] {
			v.Fields = asFields(item)
			v.Offer = i.terms(r.Context(), who, id, c.Proposal.Sequence)
		}
	}
	if c.MaxDepth > 0 {
		if err := i.passOn(r.Context(), who, v); err != nil {
			return nil, err
		}
	}
	return v, nil
}

// passOn finds to whom, and with which authority, the reader may hand the check over.
func (i *Inbox) passOn(ctx context.Context, who *person, v *check) error {
	people, err := i.colleagues(ctx, who)
	if err != nil {
		return err
	}
	for _, card := range people {
		if !slices.Contains(v.Participants, card.Agent) {
			v.Colleagues = append(v.Colleagues, card)
		}
	}
	for _, a := range []delegation.Authority{delegation.Full, delegation.Limited, delegation.Advisory} {
		if a <= delegation.ParseAuthority(v.Authority) {
			v.Authorities = append(v.Authorities, a.String())
		}
	}
	return nil
}

// colleagues are the other humans of the reader's organisation, without auditors.
func (i *Inbox) colleagues(ctx context.Context, who *person) ([]api.Card, error) {
	people, err := ask(ctx, i, who.Agent, api.AgentList, api.ListAgents{Organization: organisation(who.Agent), Kind: performatives.KindHuman})
	return slices.DeleteFunc(people.Agents, func(c api.Card) bool { return c.Agent == who.Agent || c.Registry.Auditor }), err
}

// entry reads one entry of a transcript.
func (i *Inbox) entry(ctx context.Context, who *person, id performatives.SessionID, sequence uint64) (e transcript.Entry, err error) {
	one, err := ask(ctx, i, who.Agent, api.SessionMessages, api.ListMessages{Session: id, Since: sequence, Limit: 1})
	if err != nil || len(one.Messages) == 0 {
		return e, err
	}
	return transcript.ReadOpened(one.Messages[0], one.Sealed)
}

// maxCounter bounds the terms that a form holds.
const maxCounter = 64 << 10

// terms are those of an offer as JSON, "" if a form cannot hold them.
func (i *Inbox) terms(ctx context.Context, who *person, id performatives.SessionID, sequence uint64) string {
	e, err := i.entry(ctx, who, id, sequence)
	if err != nil || e.Message == nil {
		return ""
	}
	var body struct {
		Terms jsontext.Value `json:"terms"`
	}
	if json.Unmarshal(e.Message.RawBody, &body) != nil || len(body.Terms) > maxCounter {
		return ""
	}
	return string(body.Terms)
}
