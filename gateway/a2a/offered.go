package a2agateway

import (
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/parley-asp/parley/gateway"
	"github.com/parley-asp/parley/performatives"
)

// offeredSince are the offers that others have made since the caller spoke last, also those that are over: the caller
// may not have seen the newest. unanswered is the one before them, unless the caller has answered it.
func (s snapshot) offeredSince(caller performatives.Agent) (ids []string, unanswered string) {
	spoke, answered := uint64(0), map[string]bool{}
	for _, e := range s.entries {
		if e.From != caller {
			continue
		}
		var body struct {
			Reference string `json:"referenceId"`
		}
		spoke = e.Sequence
		if gateway.Answers(performatives.Parse(e.Performative)) && e.Performative != performatives.Clarify.String() && json.Unmarshal(e.Body, &body) == nil {
			answered[body.Reference] = true
		}
	}
	before := uint64(0)
	for _, o := range slices.Concat(s.view.Proposals, s.view.Commitments) {
		switch {
		case o.From == caller:
		case o.Sequence > spoke:
			ids = append(ids, id(o))
		case o.Sequence > before:
			if before, unanswered = o.Sequence, id(o); answered[unanswered] {
				unanswered = ""
			}
		}
	}
	return ids, unanswered
}
