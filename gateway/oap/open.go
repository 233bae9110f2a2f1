package oapgateway

import (
	"cmp"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/gateway"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/session/agreement"
	"github.com/parley-asp/parley/session/modes"
)

// An opening is the body of open.
type opening struct {
	To       string                    `json:"to"` // a DID or an agent's URI
	Category string                    `json:"category"`
	Policy   map[string]jsontext.Value `json:"policy"` // as in the manifest, or as in terms.policy
}

// How long a negotiation may take, and wait for a party that accepts invitations itself.
const (
	longest    = session.LongestDuration
	invitation = 24 * time.Hour
)

// open opens a session, and accepts the invitation for a party that is hosted: OAP knows no
// invitations, and one that is accepted binds nobody.
func (c *call) open() (int, any, error) {
	data, _, err := c.read()
	if err != nil {
		return 0, nil, err
	}
	var o opening
	if err := performatives.Unmarshal(data, &o, ""); err != nil {
		return 0, nil, bad("%s", err)
	}
	to, err := c.g.party(o.To)
	if err != nil {
		return 0, nil, err
	}
	terms, err := o.terms()
	if err != nil {
		return 0, nil, err
	}
	key, err := gateway.KeyIn(c.r.Header)
	if err != nil {
		return 0, nil, err
	}
	said, err := gateway.Opening{
		With: []performatives.Agent{to}, Purpose: cmp.Or(o.Category, "negotiation"), Mode: modes.Binding.Name, Terms: terms,
	}.Invitation()
	if err != nil {
		return 0, nil, err
	}
	said.Key = key
	made, err := c.Say(c.r.Context(), said)
	if err == nil {
		err = c.introduce(made.Session, to)
	}
	if err != nil {
		return 0, nil, err
	}
	v, err := c.view(made.Session)
	return http.StatusCreated, negotiation{ID: negotiationID(made.Session), State: v.part.Status}, err
}

// party is whom a DID or an agent's URI names.
func (g *Gateway) party(name string) (performatives.Agent, error) {
	if a, registered := g.o.AgentOf(name); registered {
		return a, nil
	}
	a, err := performatives.ParseAgent(name)
	if err != nil {
		a, err = agreement.DID(name).Agent()
	}
	if err != nil {
		return "", bad("to is the DID or the URI of an agent")
	}
	return a, nil
}

// terms are the invitation's. Its policy has the names of binding/1.
func (o opening) terms() (map[string]jsontext.Value, error) {
	p := map[string]jsontext.Value{}
	for name, value := range o.Policy {
		switch name {
		case "max_rounds":
			name = "maxRounds"
		case "withdrawal_penalty_terms":
			name = "withdrawalPenaltyTerms"
		case "default_validity_minutes":
			var minutes float64
			if json.Unmarshal(value, &minutes) != nil || minutes != float64(int64(minutes)) || minutes < 1 || minutes > longest.Minutes() {
				return nil, bad("policy.default_validity_minutes is a whole number of minutes, at least 1")
			}
			name, value = "defaultValidityMs", milliseconds(time.Duration(minutes)*time.Minute)
		}
		p[name] = value
	}
	var narrowed []string
	all, given := p["categories"]
	if given && json.Unmarshal(all, &narrowed) != nil {
		return nil, bad("policy.categories is a list of categories")
	}
	for _, category := range append([]string{cmp.Or(o.Category, categories[0])}, narrowed...) {
		if !slices.Contains(categories, category) {
			return nil, bad("there is no category %.100q; the manifest has %q", category, categories)
		}
	}
	if o.Category != "" {
		if given && !slices.Contains(narrowed, o.Category) {
			return nil, bad("policy.categories does not have %.100q", o.Category)
		}
		p["categories"], _ = json.Marshal([]string{o.Category}) // a text
	}
	if _, given := p["ids"]; !given {
		p["ids"] = jsontext.Value(`"` + agreement.OAPIDs + `"`)
	}
	policy, err := json.Marshal(p, json.Deterministic(true))
	return map[string]jsontext.Value{"policy": policy, "maxDuration": milliseconds(longest), "invitationTimeoutMs": milliseconds(invitation)}, err
}

func milliseconds(d time.Duration) jsontext.Value {
	return strconv.AppendInt(nil, d.Milliseconds(), 10)
}

// introduce accepts the invitation for another party of OAP's. Everybody else accepts as ever.
func (c *call) introduce(id performatives.SessionID, to performatives.Agent) error {
	if !c.g.o.Party(to) {
		return nil
	}
	_, err := c.g.o.Service.As(to).Say(c.r.Context(), api.Say{
		Session: id, Key: "invitation " + string(id), Performative: performatives.Accept.String(), Body: jsontext.Value(`{"referenceId":"invitation","inAdvance":true}`),
	})
	if errors.Is(err, &session.Refusal{Code: session.Unauthorized}) || errors.Is(err, &session.Refusal{Code: session.ModeViolation}) {
		return nil // it signs for itself, or its context forbids the session, which is nobody else's business
	}
	return err
}
