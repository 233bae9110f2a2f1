package agreement

import (
	"fmt"
	"slices"

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
		d, err := Made(&state, a, func(sequence uint64) (transcript.Entry, error) { return entries[sequence], nil })
		if err != nil {
			return nil, fmt.Errorf("the agreement on %q: %w", a.Name, err)
		}
		all = append(all, d)
	}
	return all, nil
}

// Made is an agreement of a session, of the entries that have made it.
func Made(state *session.State, a session.Agreement, entry func(sequence uint64) (transcript.Entry, error)) (Document, error) {
	made := Accepted{Name: a.Name, Signatures: a.Signatures, Parties: a.Parties, Keys: map[performatives.Agent][]performatives.Key{}, Inherited: InheritedOf(state)}
	signers := slices.Clone(a.Parties)
	for _, of := range []struct {
		entry    *transcript.Entry
		sequence uint64
	}{{&made.Offer, a.Offer}, {&made.Commitment, a.Commit}, {&made.Acceptance, a.Acceptance}, {&made.Close, a.Close}} {
		if of.sequence == 0 { // the invitation's: there is none
			continue
		}
		var err error
		if *of.entry, err = entry(of.sequence); err != nil {
			return Document{}, err
		}
		signers = append(signers, of.entry.Message.Sender)
	}
	for _, sequence := range a.Confirmations() {
		e, err := entry(sequence)
		if err != nil {
			return Document{}, err
		}
		made.Confirmations, signers = append(made.Confirmations, e), append(signers, e.Message.Sender)
	}
	for _, signer := range signers {
		made.Keys[signer] = state.PinnedKeys(signer)
	}
	return Build(made)
}
