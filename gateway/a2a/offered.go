package a2agateway

import (
	"slices"

	"github.com/parley-asp/parley/performatives"
)

// offeredSince are the offers that others have made since the caller spoke last, also those that are over: the caller
// may not have seen the newest. unanswered is one before them, if the caller has neither answered nor offered since.
func (s snapshot) offeredSince(caller performatives.Agent) (ids []string, unanswered string) {
	spoke, turned := uint64(0), uint64(0)
	for i, e := range s.entries {
		if i == 0 {
			turned = e.Sequence // what came before is not known
		}
		if e.From != caller {
			continue
		}
		if spoke = e.Sequence; slices.Contains(turns, performatives.Parse(e.Performative)) {
			turned = e.Sequence
		}
	}
	for _, o := range slices.Concat(s.view.Proposals, s.view.Commitments) {
		switch {
		case o.From == caller:
		case o.Sequence > spoke:
			ids = append(ids, id(o))
		case o.Sequence > turned:
			unanswered = id(o)
		}
	}
	return ids, unanswered
}

// turns are the acts that answer an offer, or make another.
var turns = []performatives.Performative{performatives.Propose, performatives.Counter, performatives.Accept, performatives.Reject}
