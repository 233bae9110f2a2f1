package api

import (
	"strings"

	"github.com/parley-asp/parley/discovery"
	"github.com/parley-asp/parley/performatives"
)

// Bounds of discovery.
const (
	MaxSkills      = 100      // of a card
	MaxOfSkill     = 200      // of each list of a skill, such as its tags
	MaxCapability  = 128      // bytes of a capability
	MaxCardBytes   = 64 << 10 // of a card
	MaxAnswerBytes = 16 << 10 // of an agent's answer to a call
	MaxWait        = 10_000   // milliseconds that a call waits for answers
	DefaultWait    = 500      // of them, if the call does not say
	MaxAsked       = 2_000    // agents that a call asks, those with the most trust first
	MaxNamed       = 200      // agents that a call names
	MaxProbed      = 20       // URLs that a call names
	ProbeWait      = 2_000    // milliseconds, if a call with URLs does not say
)

// AnyCapability is the last part of the subject of a call that names no single capability.
const AnyCapability = "any"

// Discovery is the subject on which agents with a capability are told of calls. The dots of a
// capability stay; what a subject cannot hold is written as = and two hexadecimal digits.
func Discovery(capability string) string {
	if capability == "" || strings.HasSuffix(capability, ".*") {
		capability = AnyCapability
	}
	const hexadecimal = "0123456789ABCDEF"
	var subject strings.Builder
	subject.WriteString("asp.discovery.")
	for i := range len(capability) {
		c := capability[i]
		plain := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' ||
			c == '.' && i > 0 && i < len(capability)-1 && capability[i-1] != '.'
		if plain {
			subject.WriteByte(c)
			continue
		}
		subject.WriteString("=" + string(hexadecimal[c>>4]) + string(hexadecimal[c&15]))
	}
	return subject.String()
}

// HasCapability reports whether one of an agent's capabilities is the one wanted: exactly,
// or below a prefix as in data.*.
func HasCapability(capabilities []string, wanted string) bool {
	prefix, below := strings.CutSuffix(wanted, "*")
	for _, c := range capabilities {
		if c == wanted || below && strings.HasSuffix(prefix, ".") && strings.HasPrefix(c, prefix) {
			return true
		}
	}
	return wanted == ""
}

// SearchAgents is the request of agent.search; agents come by URI.
type SearchAgents struct {
	Capability   string  `json:"capability,omitzero"` // exact, or a prefix as in data.*
	Query        string  `json:"query,omitzero"`      // words that are all in the card
	Schema       string  `json:"schema,omitzero"`     // a terms schema that the agent knows
	MinTrust     float64 `json:"minTrust,omitzero"`
	Verified     bool    `json:"domainVerified,omitzero"` // only those whose domain vouches for their key
	Kind         string  `json:"kind,omitzero"`
	Organization string  `json:"organization,omitzero"` // the URI's host
	Limit        int     `json:"limit,omitzero"`
	Cursor       string  `json:"cursor,omitzero"`
}

// CallForProposals is the request of discovery.call.
type CallForProposals struct {
	discovery.Task
	Capability string                `json:"capability,omitzero"` // exact, or a prefix as in data.*
	Agents     []performatives.Agent `json:"agents,omitzero"`     // only these
	URLs       []string              `json:"urls,omitzero"`       // of agents elsewhere that answer as Bindu's do, at most 20; they are asked too
	MinTrust   float64               `json:"minTrust,omitzero"`
	WaitMs     *int                  `json:"waitMs,omitzero"` // 500, with urls 2,000; at most 10,000; 0 asks nobody, and assesses cards
	Rank       string                `json:"rank,omitzero"`   // best, cheapest, queue, trust, or weights
	Limit      int                   `json:"limit,omitzero"`  // of candidates: 20, at most 200
}

// A CallNotice is what agents receive of a call for proposals, on Discovery of its capability.
type CallNotice struct {
	ID         string              `json:"callId"`
	From       performatives.Agent `json:"from,omitzero"` // who asks; absent is an operator
	Capability string              `json:"capability,omitzero"`
	Until      string              `json:"until"` // a later answer does not count
	discovery.Task
}

// Proposals is the reply of discovery.call.
type Proposals struct {
	ID         string                `json:"callId"`
	Candidates []discovery.Candidate `json:"candidates"`         // best first
	Asked      int                   `json:"asked"`              // agents that match
	Answered   int                   `json:"answered"`           // of them, by themselves and in time
	Warnings   []string              `json:"warnings,omitzero"`  // what could not be done, such as a URL that does not answer
	Truncated  bool                  `json:"truncated,omitzero"` // there are more candidates than the reply has
}

// AnswerCall is the request of discovery.answer.
type AnswerCall struct {
	ID string `json:"callId"`
	discovery.Assessment
}

// Answered is the reply of discovery.answer.
type Answered struct {
	ID      string `json:"callId"`
	Counted bool   `json:"counted"` // not late, not the second, and from who was asked
}

// SearchText is what people read of a card, in lower case, for a search.
func (c Card) SearchText() string {
	texts := append([]string{string(c.Agent), c.Name, c.Description, c.Organization}, c.Capabilities...)
	for _, skill := range c.Skills {
		texts = append(append(texts, skill.ID, skill.Name, skill.Description), skill.Tags...)
	}
	return strings.ToLower(strings.Join(texts, "\n"))
}
