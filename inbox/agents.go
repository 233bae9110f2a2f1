package inbox

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// agentsPageSize is how many agents a page has.
const agentsPageSize = 50

// agents is a page of the registry: those whose cards have the words of a search.
type agents struct {
	Rows   []agentRow
	Search string
	More   string // link to the next page
}

// An agentRow is one agent. What it says of itself is text of a stranger.
type agentRow struct {
	Agent              performatives.Agent
	Name, About        string
	Does               []string
	Price, Queue       string
	Online, Verified   bool
	LastSeen           time.Time
	Open, Ended, Fails int // of the reader's sessions
}

func (i *Inbox) agentsPage(w http.ResponseWriter, r *http.Request, who *person) {
	list, err := i.agents(r, who)
	if err != nil {
		i.trouble(w, r, who, err)
		return
	}
	p := i.page(r, who, "agents", "Agents")
	p.Agents = list
	i.show(w, r, http.StatusOK, "page", p)
}

func (i *Inbox) agentsPart(w http.ResponseWriter, r *http.Request, who *person) {
	list, err := i.agents(r, who)
	if err != nil {
		i.trouble(w, r, who, err)
		return
	}
	i.show(w, r, http.StatusOK, "agentlist", list)
}

func (i *Inbox) agents(r *http.Request, who *person) (*agents, error) {
	search := r.URL.Query().Get("search")
	found, err := ask(r.Context(), i, who.Agent, api.AgentSearch, api.SearchAgents{Query: search, Limit: agentsPageSize, Cursor: r.URL.Query().Get("cursor")})
	if err != nil {
		return nil, err
	}
	own, err := ask(r.Context(), i, who.Agent, api.SessionList, api.ListSessions{Limit: api.MaxPage})
	if err != nil {
		return nil, err
	}
	list := &agents{Search: search}
	for _, card := range found.Agents {
		list.Rows = append(list.Rows, rowOfAgent(card, own.Sessions))
	}
	if found.Next != "" {
		list.More = link("agents", url.Values{"search": {search}, "cursor": {found.Next}}.Encode())
	}
	return list, nil
}

func rowOfAgent(card api.Card, own []api.SessionSummary) agentRow {
	row := agentRow{Agent: card.Agent, Name: oneLine(card.Name), About: oneLine(card.Description), Verified: card.DomainVerified, Price: price(card)}
	row.Online, row.LastSeen = card.Available()
	for _, does := range card.Capabilities {
		row.Does = append(row.Does, oneLine(does))
	}
	for _, skill := range card.Skills {
		row.Does = append(row.Does, oneLine(skill.Name))
	}
	var depth int
	if json.Unmarshal(card.QueueDepth, &depth) == nil && card.QueueDepth.Kind() == '0' {
		row.Queue = plural(depth, "task", "tasks")
	}
	for _, s := range own {
		switch {
		case !slices.Contains(s.Parties, card.Agent):
		case s.State == session.Failed:
			row.Fails++
		case s.State == session.Closed:
			row.Ended++
		default:
			row.Open++
		}
	}
	return row
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
