package api

import "github.com/parley-asp/parley/performatives"

// GetInsights is the request of insights.get. Times are RFC 3339; by default the last 7 days.
type GetInsights struct {
	Since string `json:"since,omitzero"`
	Until string `json:"until,omitzero"`
	Mode  string `json:"mode,omitzero"`

	// With counts only sessions with one of these agents, at most MaxNamed, and each agent's.
	With []performatives.Agent `json:"with,omitzero"`
}

// Insights say how the sessions of an organisation went that ended in a time: counts and
// times, no scores. Of a human who may decide, or an auditor, these are the organisation's
// sessions; of an agent its own; of an operator all.
type Insights struct {
	Since      string         `json:"since"`
	Until      string         `json:"until"`
	Sessions   int            `json:"sessions"` // that ended in this time
	Open       int            `json:"open"`     // that have not ended
	Ends       Ends           `json:"ends"`
	Modes      []ModeEnds     `json:"modes"`
	Types      []TypeEnds     `json:"types"`           // by the type of the first offer, the most frequent ones
	Scenarios  []ScenarioEnds `json:"scenarios"`       // between two, by the kinds of the agents
	Objections []Frequency    `json:"objections"`      // phrases and words of the reasons of COUNTER, REJECT and CLARIFY, once a session
	Agents     []AgentEnds    `json:"agents,omitzero"` // those of With
	Turns      []TurnCount    `json:"turns"`           // how many sessions took how many turns
	Agreed     Times          `json:"timeToAgreement"` // from the first entry to the agreement
	Terms      []Frequency    `json:"counteredTerms"`  // top-level terms that a COUNTER changed
	Rejects    []Frequency    `json:"rejectCodes"`
	Asked      []Frequency    `json:"clarifyFields"`
	Escalated  EscalationEnds `json:"escalations"` // of the caller's side
	Complete   bool           `json:"complete"`    // false: the broker is still reading; ask again
	Read       int            `json:"read"`        // sessions that it has read
	Of         int            `json:"of"`          // sessions that there are to read
}

// Ends count sessions by how they ended.
type Ends struct {
	Agreed   int `json:"agreed"` // an agreement was made
	Rejected int `json:"rejected"`
	Stalled  int `json:"stalled"` // time or turns ran out
	Failed   int `json:"failed"`
}

// ModeEnds are those of one mode.
type ModeEnds struct {
	Mode string `json:"mode"`
	Ends
}

// TypeEnds are those of one type of match.
type TypeEnds struct {
	Type string `json:"type"`
	Ends
}

// ScenarioEnds are those between agents of two kinds, such as system and personal.
type ScenarioEnds struct {
	Scenario string `json:"scenario"`
	Ends
	Turns []TurnCount `json:"turns"`
}

// AgentEnds are those with one agent.
type AgentEnds struct {
	Agent performatives.Agent `json:"agentId"`
	Open  int                 `json:"open"`
	Ends
}

// A TurnCount is one bar of a distribution.
type TurnCount struct {
	Turns    int `json:"turns"`
	Sessions int `json:"sessions"`
}

// Times are of several events, in milliseconds.
type Times struct {
	Count  int   `json:"count"`
	Median int64 `json:"medianMs"`
	P90    int64 `json:"p90Ms"`
}

// A Frequency is how often something was named.
type Frequency struct {
	Name  string `json:"name"`
	Count int    `json:"count"`
}

// EscalationEnds count escalations by what was decided.
type EscalationEnds struct {
	Approved int   `json:"approved"`
	Denied   int   `json:"denied"`
	Modified int   `json:"modified"`
	Guidance int   `json:"guidance"`
	Expired  int   `json:"undecided"`
	Time     Times `json:"timeToDecision"`
}
