package api

import (
	"testing"

	"github.com/go-json-experiment/json"
	"pgregory.net/rapid"

	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// What is sent of an acceptance is what the library would write.
func TestAcceptanceText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		phase, known := session.ParsePhase(rapid.SampledFrom([]string{"INVITED", "CONVERSING", "EXECUTING", "CLOSED", "FAILED"}).Draw(t, "state"))
		if !known {
			t.Fatal("no such state")
		}
		a := Acceptance{
			Accepted: rapid.Bool().Draw(t, "accepted"), Session: performatives.SessionID(rapid.String().Draw(t, "session")),
			Message: performatives.MessageID(rapid.String().Draw(t, "message")), Sequence: rapid.Uint64().Draw(t, "sequence"),
			Hash: performatives.Hash(rapid.String().Draw(t, "hash")), State: phase,
			AcceptedAt: rapid.String().Draw(t, "at"), Duplicate: rapid.Bool().Draw(t, "duplicate"),
		}
		want, err := json.Marshal(a, json.Deterministic(true))
		if err != nil {
			t.Fatal(err)
		}
		if got := a.Text(); string(got) != string(want) {
			t.Fatalf("%s; the library writes %s", got, want)
		}
	})
}
