package vectors

import (
	"errors"
	"maps"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session/agreement"
	"github.com/parley-asp/parley/session/modes"
)

// An Agreement is a document as agreement.get answers it.
type Agreement struct {
	Name     string            `json:"name"`
	About    string            `json:"about"`
	Broker   performatives.Key `json:"broker"` // whose receipts are expected
	LogKey   string            `json:"logKey"` // of the public log, as a signed note has it
	Document jsontext.Value    `json:"document"`
	Proves   string            `json:"proves,omitzero"`   // signatures, entries or digests: what an accepted one rests on
	Redacted []string          `json:"redacted,omitzero"` // terms that were taken out
	Refused  []string          `json:"refused,omitzero"`  // JSON Pointers to what is wrong, one of which every reader finds; none is accepted
}

// agreed is the one agreement of a session, with its place in the log.
func agreed(t *table, log *publicLogOf) (d agreement.Document, err error) {
	all, err := agreement.Of(t.entries, modes.All())
	if err == nil && len(all) != 1 {
		err = errors.New("the session makes not one agreement")
	}
	if err != nil {
		return d, err
	}
	d = all[0]
	if log != nil {
		proof := log.proofs[string(d.Hash)]
		d.Log = &proof
	}
	return d, nil
}

func agreements(buying, binding *table, log *publicLogOf) (all []Agreement, err error) {
	simple, err := agreed(buying, log)
	if err != nil {
		return nil, err
	}
	signed, err := agreed(binding, log)
	if err != nil {
		return nil, err
	}
	other, err := newLog(binding)
	if err != nil {
		return nil, err
	}
	textOf := func(d agreement.Document) string {
		data, bytesErr := d.Bytes()
		err = errors.Join(err, bytesErr)
		return string(data)
	}
	add := func(name, about, document, proves string, refused ...string) *Agreement {
		all = append(all, Agreement{Name: name, About: about, Broker: buying.broker.Key(), LogKey: log.key, Document: jsontext.Value(document), Proves: proves, Refused: refused})
		return &all[len(all)-1]
	}
	asp, bound := textOf(simple), textOf(signed)
	add("asp", "of asp/1: offer and acceptance are its evidence", asp, "entries")
	add("binding", "of binding/1: both parties have signed the hash", bound, "signatures")
	add("redacted", "the price was taken out; hash, signatures and log hold", textOf(signed.Redact("currency", "quantity")), "signatures").Redacted = []string{"price"}

	dearer := signed
	dearer.Terms = maps.Clone(signed.Terms)
	dearer.Terms["price"] = jsontext.Value("88.5")
	add("changed-term", "the price is another", textOf(dearer), "", "/terms/price")
	add("changed-date", "it begins on another day", strings.Replace(bound, `"effective_from":"2026-04-01T00:00:00Z","effective_until"`, `"effective_from":"2026-05-01T00:00:00Z","effective_until"`, 1), "", "/agreement_hash")
	swapped := signed
	swapped.Signatures = map[agreement.DID]string{signed.Parties[0]: signed.Signatures[signed.Parties[1]], signed.Parties[1]: signed.Signatures[signed.Parties[0]]}
	add("swapped-signatures", "each party's signature stands at the other", textOf(swapped), "", "/signatures", "/signatures/"+string(signed.Parties[0]), "/signatures/"+string(signed.Parties[1]))
	offer := string(simple.Evidence.Offer)
	add("changed-evidence", "the entry of the offer has another price", strings.Replace(asp, offer, strings.Replace(offer, "89.5", "88.5", 1), 1), "", "/evidence/offer", "/agreement_hash")
	foreign := simple
	evidence := *simple.Evidence
	evidence.Acceptance, foreign.Evidence = signed.Evidence.Acceptance, &evidence
	add("foreign-acceptance", "the acceptance is of another session", textOf(foreign), "", "/evidence/acceptance", "/evidence/close", "/parties")
	misplaced := simple
	misplaced.Log = signed.Log
	add("other-leaf", "its place in the log is another agreement's", textOf(misplaced), "", "/log/leaf")
	shortened := simple
	proof := *simple.Log
	proof.Path, shortened.Log = proof.Path[:len(proof.Path)-1], &proof
	add("short-proof", "a hash of the proof is missing", textOf(shortened), "", "/log")
	unlogged := simple
	unlogged.Log = nil
	add("not-logged", "it has no place in the log", textOf(unlogged), "", "/log")
	elsewhere, place := signed, other.proofs[string(signed.Hash)]
	place.Checkpoint, elsewhere.Log = signed.Log.Checkpoint, &place
	add("other-tree", "the proof leads to the root of another checkpoint", textOf(elsewhere), "", "/log")
	return all, err
}
