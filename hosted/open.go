package hosted

import (
	"cmp"
	"maps"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/performatives"
)

// An Opening is what a hosted agent opens a session with.
type Opening struct {
	With       []performatives.Agent     `json:"with"`
	Purpose    string                    `json:"purpose"`
	Subject    string                    `json:"subject,omitzero"` // by default the purpose
	Mode       string                    `json:"mode,omitzero"`
	Terms      map[string]jsontext.Value `json:"terms,omitzero"`
	ValidUntil string                    `json:"validUntil,omitzero"`
}

// Invitation is the PROPOSE that opens the session.
func (o Opening) Invitation() (s Said, err error) {
	terms := maps.Clone(o.Terms)
	if terms == nil {
		terms = map[string]jsontext.Value{}
	}
	if terms["purpose"], err = json.Marshal(o.Purpose); err != nil {
		return s, err
	}
	if o.Mode != "" {
		if terms["mode"], err = json.Marshal(o.Mode); err != nil {
			return s, err
		}
	}
	if terms["participants"], err = json.Marshal(o.With); err != nil {
		return s, err
	}
	body := map[string]any{
		"proposalId": "invitation", "type": performatives.SessionInvitation, "subject": cmp.Or(o.Subject, o.Purpose), "terms": terms,
	}
	if o.ValidUntil != "" {
		body["validUntil"] = o.ValidUntil
	}
	raw, err := json.Marshal(body, json.Deterministic(true))
	return Said{Performative: performatives.Propose.String(), Body: raw}, err
}
