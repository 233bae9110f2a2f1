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
	Broker   performatives.Key `json:"broker"` // whose receipts are expected; "" trusts none
	LogKey   string            `json:"logKey"` // of the public log, as a signed note has it; "" leaves its place unchecked
	Document jsontext.Value    `json:"document"`

	Keys map[performatives.Agent]performatives.Key `json:"keys,omitzero"` // that have to have signed

	Proves   string   `json:"proves,omitzero"`   // signatures, entries or digests: what an accepted one rests on
	Redacted []string `json:"redacted,omitzero"` // terms that were taken out
	Refused  []string `json:"refused,omitzero"`  // JSON Pointers to what is wrong, one of which every reader finds; none is accepted
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
	if err != nil {
		return nil, err
	}
	more, err := demanded(buying, simple)
	return append(all, more...), err
}

// demanded adds what a verifier demands of the keys that it trusts: a document that these have not signed proves nothing to it.
func demanded(t *table, d agreement.Document) (all []Agreement, err error) {
	own := d.Evidence.Keys[buyer]
	other, err := signerOf("another of the buyer's")
	if err != nil {
		return nil, err
	}
	add := func(name, about string, d agreement.Document, broker, trusted performatives.Key, refused ...string) {
		document, bytesErr := d.Bytes()
		err = errors.Join(err, bytesErr)
		v := Agreement{Name: name, About: about, Broker: broker, Document: document, Refused: refused}
		if trusted != "" {
			v.Keys = map[performatives.Agent]performatives.Key{buyer: trusted}
		}
		if len(refused) == 0 {
			v.Proves = "entries"
		}
		all = append(all, v)
	}
	d.Log = nil
	bare := d
	bare.Evidence = nil
	add("nothing-signed", "neither entries nor signatures, so a trusted key has signed nothing", bare, t.broker.Key(), own, "/signatures")
	add("no-receipts", "no entries, so the broker's key proves nothing", bare, t.broker.Key(), "", "/evidence")
	add("trusted-key", "the buyer's key has signed", d, "", own)

	evidence := *d.Evidence
	if evidence.Close, err = t.again(len(t.entries)-1, other); err != nil {
		return nil, err
	}
	evidence.Keys = maps.Clone(evidence.Keys)
	evidence.Keys[buyer] = other.Key()
	evidence.Rotated = map[performatives.Agent][]performatives.Key{buyer: {own}}
	two := d
	two.Evidence = &evidence
	add("second-key", "a second key signed for the buyer, and no broker's key shows that it may", two, "", own, "/evidence/rotated/"+string(buyer))
	add("replaced-key", "a second key signed for the buyer, which the broker accepted", two, t.broker.Key(), own)
	lent := *d.Evidence
	lent.Rotated = map[performatives.Agent][]performatives.Key{seller: {own}}
	two.Evidence = &lent
	add("lent-key", "the seller's second key signed as the buyer alone", two, t.broker.Key(), "", "/evidence/rotated/"+string(seller))
	return all, err
}

// again is an entry as the broker would have accepted it from its sender's other key.
func (t *table) again(sequence int, key performatives.Signer) (jsontext.Value, error) {
	e := t.entries[sequence]
	link := performatives.Link{Sequence: e.Stamp.Sequence, PreviousHash: e.Stamp.PreviousHash}
	draft := performatives.Draft{ID: e.Message.ID, Session: t.id, Sender: e.Message.Sender, Body: e.Message.Body, Timestamp: e.Message.Timestamp, Link: &link}
	submission, err := draft.Submission(key, salts(sequence)) //nolint:gosec // a table has few entries
	if err != nil {
		return nil, err
	}
	m, err := performatives.Read(submission)
	if err != nil {
		return nil, err
	}
	stamp := performatives.Stamp{Sequence: link.Sequence, PreviousHash: link.PreviousHash}
	line, _, err := m.Deliver(stamp, e.Message.Timestamp.Add(transit), e.Stamp.Receipt.State, t.broker)
	return line, err
}
