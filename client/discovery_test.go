package client_test

import (
	"context"
	"testing"

	"github.com/parley-asp/parley/api"
	"github.com/parley-asp/parley/discovery"
	"github.com/parley-asp/parley/test/testkit"
)

// An agent answers calls by its card, or as its program says.
func TestAssess(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t, testkit.Options{})
	buyer, seller := w.Client(alpha), w.Client(beta)
	_, err := buyer.Register(t.Context(), api.Card{Capabilities: []string{"buy"}})
	testkit.Must(t, err)
	_, err = seller.Register(t.Context(), api.Card{
		Capabilities: []string{"extract.pdf"}, Skills: []discovery.Skill{{ID: "pdf", Name: "PDF", Tags: []string{"pdf"}}},
	})
	testkit.Must(t, err)
	wait := api.MaxWait // the call ends as soon as all have answered
	find := func() discovery.Candidate {
		t.Helper()
		found, err := buyer.Find(t.Context(), api.CallForProposals{Task: discovery.Task{Summary: "pdf"}, Capability: "extract.pdf", WaitMs: &wait})
		testkit.Must(t, err)
		if found.Asked != 1 || found.Answered != 1 || len(found.Candidates) != 1 || found.Candidates[0].Source != discovery.ByAgent {
			t.Fatalf("%+v", found)
		}
		return found.Candidates[0]
	}
	stop, err := seller.Assess(t.Context(), nil)
	testkit.Must(t, err)
	if c := find(); !c.Accepted || c.Score != 1 || *c.QueueDepth != 0 {
		t.Errorf("%+v", c)
	}
	stop()
	stop, err = seller.Assess(t.Context(), func(_ context.Context, q api.CallNotice) (discovery.Assessment, bool) {
		return discovery.Assessment{Confidence: 0.5, Rejection: "on_holiday"}, q.From == alpha && q.Summary == "pdf"
	})
	testkit.Must(t, err)
	defer stop()
	if c := find(); c.Accepted || c.Rejection != "on_holiday" {
		t.Errorf("%+v", c)
	}
}
