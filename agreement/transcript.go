package agreement

import (
	"fmt"

	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/transcript"
)

// Of are the agreements that a transcript has made, in its order. The transcript is
// taken to be genuine: transcript.Verify tells.
func Of(entries []transcript.Entry, modes session.Modes) ([]Document, error) {
	if len(entries) == 0 {
		return nil, nil
	}
	state := session.New(entries[0].Message.Session, modes)
	for _, e := range entries {
		var err error
		if state, err = session.Replay(state, e.Message, e.Stamp); err != nil {
			return nil, err
		}
	}
	var all []Document
	for _, a := range state.Agreements() {
		accepted := Accepted{
			Parties: a.Parties, Offer: entries[a.Offer], Acceptance: entries[a.Acceptance],
			Keys: map[performatives.Agent]performatives.Key{},
		}
		for _, signer := range append([]performatives.Agent{accepted.Offer.Message.Sender, accepted.Acceptance.Message.Sender}, a.Parties...) {
			if key := state.PartyKey(signer); key != "" {
				accepted.Keys[signer] = key
			}
		}
		d, err := Build(accepted)
		if err != nil {
			return nil, fmt.Errorf("the agreement on %q: %w", a.Proposal, err)
		}
		all = append(all, d)
	}
	return all, nil
}
