package bindugateway

import (
	"net/http"

	"github.com/google/uuid"

	"github.com/parley-asp/parley/discovery"
	"github.com/parley-asp/parley/performatives"
)

// What agents of Bindu's say of themselves, below Base and an agent's token.
const (
	cardPath = "/.well-known/agent.json"
	infoPath = "/agent/info"
)

// A shownSkill is a skill as an agent card of Bindu's has it.
type shownSkill struct {
	ID          string   `json:"id"`
	Name        string   `json:"name"`
	Description string   `json:"description,omitzero"`
	Tags        []string `json:"tags,omitzero"`
	InputModes  []string `json:"inputModes,omitzero"`
	OutputModes []string `json:"outputModes,omitzero"`
}

// An agentCard is one of Bindu's.
type agentCard struct {
	ID           string              `json:"id"` // a UUID that follows from the agent's URI
	Agent        performatives.Agent `json:"agentId"`
	Name         string              `json:"name"`
	Description  string              `json:"description"`
	URL          string              `json:"url"`
	Version      string              `json:"version"`
	Protocol     string              `json:"protocolVersion"`
	Kind         string              `json:"kind"`
	Skills       []shownSkill        `json:"skills"`
	Capabilities map[string]bool     `json:"capabilities"`
	InputModes   []string            `json:"defaultInputModes"`
	OutputModes  []string            `json:"defaultOutputModes"`
}

// show answers with an agent's card.
func (g *Gateway) show(w http.ResponseWriter, r *http.Request, agent performatives.Agent) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "Method Not Allowed", http.StatusMethodNotAllowed)
		return
	}
	card, known := g.o.Card(agent)
	if !known {
		refusal(http.StatusNotFound, "Agent not found").write(w)
		return
	}
	shown := agentCard{
		ID: uuid.NewSHA1(uuid.NameSpaceURL, []byte(agent)).String(), Agent: agent, Name: card.Name, Description: card.Description,
		URL: g.at(r) + Base + agent.Token(), Version: g.o.Version, Protocol: "1.0.0", Kind: "agent",
		Skills: make([]shownSkill, 0, len(card.Skills)), Capabilities: map[string]bool{"negotiation": true, "streaming": false, "pushNotifications": false},
		InputModes: modesOf(card.Skills, func(s discovery.Skill) []string { return s.InputModes }), OutputModes: modesOf(card.Skills, func(s discovery.Skill) []string { return s.OutputModes }),
	}
	if shown.Name == "" {
		shown.Name = string(agent)
	}
	for _, s := range card.Skills {
		shown.Skills = append(shown.Skills, shownSkill{s.ID, s.Name, s.Description, s.Tags, s.InputModes, s.OutputModes})
	}
	reply(http.StatusOK, shown).write(w)
}

// at is where others reach the gateway.
func (g *Gateway) at(r *http.Request) string {
	switch {
	case g.o.URL != "":
		return g.o.URL
	case r.TLS != nil:
		return "https://" + r.Host
	}
	return "http://" + r.Host
}

// modesOf are the types of all skills, each once; Bindu's default is text and JSON.
func modesOf(skills []discovery.Skill, of func(discovery.Skill) []string) []string {
	var all []string
	seen := map[string]bool{}
	for _, s := range skills {
		for _, mode := range of(s) {
			if !seen[mode] {
				seen[mode] = true
				all = append(all, mode)
			}
		}
	}
	if len(all) == 0 {
		return []string{"text/plain", "application/json"}
	}
	return all
}
