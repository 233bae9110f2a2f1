package agreement

import (
	"fmt"

	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/session/transcript"
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
		d, err := Made(&state, a, entries[a.Offer], entries[a.Acceptance])
		if err != nil {
			return nil, fmt.Errorf("the agreement on %q: %w", a.Proposal, err)
		}
		all = append(all, d)
	}
	return all, nil
}

// Made is the agreement that two entries of a session have made.
func Made(state *session.State, a session.Agreement, offer, acceptance transcript.Entry) (Document, error) {
	made := Accepted{Parties: a.Parties, Offer: offer, Acceptance: acceptance, Keys: map[performatives.Agent][]performatives.Key{}, Inherited: InheritedOf(state)}
	for _, signer := range append([]performatives.Agent{offer.Message.Sender, acceptance.Message.Sender}, a.Parties...) {
		made.Keys[signer] = state.PinnedKeys(signer)
	}
	return Build(made)
}
