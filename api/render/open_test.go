package render_test

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/api/render"
	"github.com/parley-asp/parley/performatives"
)

// A commitment is said with what it promises, where it waits and where it is accepted; also that some of it is cut.
func TestPromises(t *testing.T) {
	t.Parallel()
	const seller = performatives.Agent("agent://widgets.co/seller")
	for _, cut := range []bool{false, true} {
		v := api.Snapshot{
			You: api.SnapshotCaller{Agent: seller, Role: "invitee"},
			Open: []api.OpenItem{{
				Kind: "commitment", ID: "c1", By: "agent://acme.com/buyer", For: []performatives.Agent{seller}, Truncated: cut,
				Body: jsontext.Value(`{"commitmentId":"c1","terms":{"obligations":[{"party":"` + string(seller) + `","action":"deliver cups","quantity":8,"unit":"box","deadline":"2030-01-02T03:04:05Z"}],"penalties":{"late":5}}}`),
			}},
			Moves: []api.Move{{Performative: "ACCEPT", Reference: "c1"}, {Performative: "REJECT", Reference: "c1"}},
		}
		render.Say(&v)
		const promised = "you: deliver cups (8 box) by 2030-01-02T03:04:05.000Z; with penalties"
		for _, text := range []string{v.Open[0].Text, v.Moves[0].Says} {
			if !strings.Contains(text, promised) || strings.Contains(text, "which is cut") != cut {
				t.Errorf("cut %v: %s", cut, text)
			}
		}
		if strings.Contains(v.Moves[1].Says, promised) {
			t.Error(v.Moves[1].Says)
		}
	}
}
