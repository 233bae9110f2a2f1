package inbox

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
)

const (
	agentsPageSize = 50 // agents of a page
	agentsEnded    = 30 // days in which sessions ended that are counted
)

// agents is a page of the registry: those whose cards have the words of a search.
type agents struct {
	Rows   []agentRow
	Search string
	More   string // link to the next page

	Days     int  // in which the sessions ended
	Counting bool // the broker has not read all of them yet
}

// An agentRow is one agent. What it says of itself is another's text.
type agentRow struct {
	api.Card
	Skilled      []string // capabilities, and names of skills
	Price, Queue string
	Online       bool
	LastSeen     time.Time
	Sessions     string // the reader's with it, by outcome
	Deals        string // link to them
}

func (i *Inbox) agents(r *http.Request, who *person) (*agents, error) {
	search := r.URL.Query().Get("search")
	found, err := ask(r.Context(), i, who.Agent, api.AgentSearch, api.SearchAgents{Query: search, Limit: agentsPageSize, Cursor: r.URL.Query().Get("cursor")})
	if err != nil {
		return nil, err
	}
	list := &agents{Search: search, Days: agentsEnded}
	ends := map[performatives.Agent]api.AgentEnds{}
	if len(found.Agents) > 0 {
		q := api.GetInsights{Since: api.Timestamp(i.Now().AddDate(0, 0, -agentsEnded))}
		for _, card := range found.Agents {
			q.With = append(q.With, card.Agent)
		}
		counted, err := ask(r.Context(), i, who.Agent, api.InsightsGet, q)
		if err != nil {
			return nil, err
		}
		for _, of := range counted.Agents {
			ends[of.Agent] = of
		}
		list.Counting = !counted.Complete
	}
	for _, card := range found.Agents {
		list.Rows = append(list.Rows, rowOfAgent(card, ends[card.Agent]))
	}
	if found.Next != "" {
		list.More = link("agents", url.Values{"search": {search}, "cursor": {found.Next}}.Encode())
	}
	return list, nil
}

func rowOfAgent(card api.Card, ends api.AgentEnds) agentRow {
	row := agentRow{Card: card, Deals: link("sessions", values("with", string(card.Agent))), Skilled: card.Capabilities, Price: price(card), Sessions: outcomes(ends)}
	row.Online, row.LastSeen = card.Available()
	for _, skill := range card.Skills {
		row.Skilled = append(row.Skilled, skill.Name)
	}
	var depth int
	if json.Unmarshal(card.QueueDepth, &depth) == nil && card.QueueDepth.Kind() == '0' {
		row.Queue = plural(depth, "task", "tasks")
	}
	return row
}

// outcomes counts sessions by outcome; "" for none.
func outcomes(ends api.AgentEnds) string {
	var parts []string
	for _, of := range []struct {
		count int
		what  string
	}{{ends.Open, "open"}, {ends.Agreed, "agreed"}, {ends.Rejected, "rejected"}, {ends.Stalled + ends.Failed, "ended otherwise"}} {
		if of.count > 0 {
			parts = append(parts, strconv.Itoa(of.count)+" "+of.what)
		}
	}
	return strings.Join(parts, ", ")
}

// price is what an agent says that it costs.
func price(card api.Card) string {
	var p struct {
		Amount   any    `json:"amount"`
		Currency string `json:"currency"`
		Per      string `json:"per"`
	}
	if card.Pricing.Kind() != '{' || json.Unmarshal(card.Pricing, &p) != nil {
		return oneLine(strings.Trim(string(card.Pricing), `"`))
	}
	text, is := p.Amount.(string)
	if !is {
		return ""
	}
	text += " " + p.Currency
	if p.Per != "" {
		text += " per " + p.Per
	}
	return oneLine(text)
}
