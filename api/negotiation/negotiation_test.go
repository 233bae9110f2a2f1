package negotiation_test

import (
	"slices"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/api/negotiation"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/session/modes"
)

// What answers the invitation, a commitment or a delegation is no turn.
func TestTurns(t *testing.T) {
	t.Parallel()
	const assessed = `,"assessment":{"reasoning":"r"}`
	said := []string{
		"ACCEPT", `{"referenceId":"invitation"` + assessed + `}`,
		"INFORM", `{"type":"fact","data":{"referenceId":"invitation","answers":[{"field":"terms","answer":1}]}}`,
		"CLARIFY", `{"referenceId":"p0"` + assessed + `}`,
		"PROPOSE", `{"proposalId":"p1"` + assessed + `}`,
		"ACCEPT", `{"referenceId":"delegation-1"` + assessed + `}`,
		"INFORM", `{"type":"fact","data":{"referenceId":"p0","answers":[{"field":"terms","answer":1}]}}`,
		"INFORM", `{"type":"fact","data":{"referenceId":"p0","answers":[{}]}}`,
		"COUNTER", `{"proposalId":"p2","referenceId":"p1"` + assessed + `}`,
		"ACCEPT", `{"referenceId":"p2"` + assessed + `}`,
		"CLARIFY", `{"referenceId":"commitment-1"` + assessed + `}`,
		"REJECT", `{"referenceId":"commitment-1"` + assessed + `}`,
	}
	entries := []api.TurnEntry{}
	for of := range slices.Chunk(said, 2) {
		entries = append(entries, api.TurnEntry{Performative: of[0], Body: jsontext.Value(of[1])})
	}
	want := []string{"question", "propose", "counter", "counter", "accept"}
	for _, mode := range []string{session.DefaultMode, modes.Bilateral.Name} {
		view := &api.SessionView{Mode: mode, Invitation: api.OfferView{Proposal: "invitation"}, Proposals: []api.OfferView{{Proposal: "p0"}}}
		actions := []string{}
		for _, taken := range negotiation.Turns(entries, "", view) {
			actions = append(actions, taken.Action)
		}
		if !slices.Equal(actions, want) {
			t.Errorf("in %s the turns are %s, want %s", mode, actions, want)
		}
	}
}

// An offer of which only a part is seen is not countered: the counter would drop terms.
func TestCounterOfACutOffer(t *testing.T) {
	t.Parallel()
	for _, cut := range []bool{false, true} {
		view := api.SessionView{
			State: session.Conversing, Mode: modes.Bilateral.Name, ModePart: jsontext.Value(`{"turn":{"next":"agent://acme.com/a"}}`),
			Proposals: []api.OfferView{{Proposal: "p1", From: "agent://widgets.co/b", Terms: jsontext.Value(`{"price":5}`), Truncated: cut}},
		}
		d := negotiation.Decision{Action: "counter", Assessment: jsontext.Value(`{"reasoning":"r","suggestedRoles":{"ownUser":"peer","otherUser":"peer"}}`)}
		if _, err := d.Response("agent://acme.com/a", view); (err != nil) != cut {
			t.Errorf("cut %t: %v", cut, err)
		}
	}
}
