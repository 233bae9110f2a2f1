package vectors

import (
	"fmt"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/performatives"
	evidences "github.com/parley-asp/parley/session/evidence"
	"github.com/parley-asp/parley/session/transcript"
)

// A BrokerKeys is a history of a broker's keys, as broker.info has it.
type BrokerKeys struct {
	Name    string                   `json:"name"`
	About   string                   `json:"about"`
	Broker  performatives.Key        `json:"broker"` // that is trusted
	Keys    performatives.KeyHistory `json:"keys"`
	Refused bool                     `json:"refused,omitzero"`
}

// rotatedHistory has three keys, the second of which signs since a time.
func rotatedHistory(since time.Time) (h performatives.KeyHistory, signers []performatives.Signer, err error) {
	for _, name := range []string{"broker", "broker, rotated", "broker, rotated again"} {
		s, err := signerOf(name)
		if err != nil {
			return nil, nil, err
		}
		signers = append(signers, s)
	}
	for i, next := range signers[1:] {
		if h, err = h.Rotate(signers[i], next, since.AddDate(0, i, 0)); err != nil {
			return nil, nil, err
		}
	}
	return h, signers, nil
}

func brokerKeys() (all []BrokerKeys, err error) {
	whole, signers, err := rotatedHistory(start)
	if err != nil {
		return nil, err
	}
	other, err := signerOf("another broker")
	if err != nil {
		return nil, err
	}
	add := func(name, about string, refused bool, trusted performatives.Key, change func(h performatives.KeyHistory) performatives.KeyHistory) {
		all = append(all, BrokerKeys{name, about, trusted, change(slices.Clone(whole)), refused})
	}
	by := func(h performatives.KeyHistory, i int, previous, own performatives.Signer) performatives.KeyHistory {
		signed, signErr := h[i].SigningBytes()
		err = signErr
		h[i].Signature, _ = performatives.SignBytes(previous, signed)
		h[i].Proof, _ = performatives.SignBytes(own, signed)
		return h
	}
	same := func(h performatives.KeyHistory) performatives.KeyHistory { return h }
	first, middle := signers[0].Key(), signers[1].Key()
	add("trusts-first", "the first key is known", false, first, same)
	add("trusts-newest", "the newest key is known", false, whole.Newest(), same)
	add("untrusted", "another key is known", true, other.Key(), same)
	add("changed-time", "a time is not the one that was signed", true, middle, func(h performatives.KeyHistory) performatives.KeyHistory {
		h[1].Since = start.Add(time.Second).Format(performatives.TimeFormat)
		return h
	})
	add("gap", "a record is not there", true, first, func(h performatives.KeyHistory) performatives.KeyHistory { return slices.Delete(h, 1, 2) })
	add("out-of-order", "two records have changed places", true, first, func(h performatives.KeyHistory) performatives.KeyHistory {
		h[1], h[2] = h[2], h[1]
		return h
	})
	add("false-predecessor", "a key that the trusted one did not name puts itself before it", true, middle, func(h performatives.KeyHistory) performatives.KeyHistory {
		h[0].Key, h[1].Previous = other.Key(), other.Key()
		return by(h, 1, other, other)
	})
	add("false-successor", "a key that the newest did not name follows it", true, first, func(h performatives.KeyHistory) performatives.KeyHistory {
		h = append(h, performatives.KeyRecord{Key: other.Key(), Previous: h.Newest(), Since: start.AddDate(1, 0, 0).Format(performatives.TimeFormat)})
		return by(h, 3, other, other)
	})
	add("unwilling-successor", "another broker's key, which has not signed that it follows", true, first, func(h performatives.KeyHistory) performatives.KeyHistory {
		h = append(h, performatives.KeyRecord{Key: other.Key(), Previous: h.Newest(), Since: start.AddDate(1, 0, 0).Format(performatives.TimeFormat)})
		return by(h, 3, signers[2], signers[2])
	})
	add("no-later", "a record of the same time as the one before", true, first, func(h performatives.KeyHistory) performatives.KeyHistory {
		h[2].Since = h[1].Since
		return by(h, 2, signers[1], signers[2])
	})
	add("key-twice", "the first key comes back", true, first, func(h performatives.KeyHistory) performatives.KeyHistory {
		h = append(h, performatives.KeyRecord{Key: first, Previous: h.Newest(), Since: start.AddDate(1, 0, 0).Format(performatives.TimeFormat)})
		return by(h, 3, signers[2], signers[0])
	})
	return all, err
}

// rotatedAt is when the second key takes the place of the first in a table.
func rotatedAt(number int) time.Time { return start.Add(time.Duration(number) * time.Hour) }

// rotated is a deal during which the broker's key is replaced; the broker closes it.
func rotated(number int) (*table, error) {
	_, signers, err := rotatedHistory(rotatedAt(number))
	if err != nil {
		return nil, err
	}
	t := opened(number, fmt.Sprintf(`{"participants":[%q],"purpose":"buy cups"}`, seller))
	t.accept(seller, "invitation", "")
	t.say(seller, &performatives.ProposeBody{ProposalID: "offer_1", Type: "purchase", Subject: "cups", Terms: performatives.Object(`{"price":950}`)})
	t.broker = signers[1]
	t.accept(buyer, "offer_1", "")
	t.enters(time.Hour)
	return t, t.err
}

// rotatedEvidence is the bundle of a deal during which the broker's key was replaced; the public log has nothing of it.
func rotatedEvidence(number int) (b evidences.Bundle, err error) {
	t, err := rotated(number)
	if err != nil {
		return b, err
	}
	lines := make([]jsontext.Value, len(t.entries))
	for i, e := range t.entries {
		lines[i] = e.Bytes
	}
	if b, err = evidences.Make(lines, nil); err != nil {
		return b, err
	}
	b.BrokerKeys, _, err = rotatedHistory(rotatedAt(number))
	return b, err
}

// rotatedTranscripts are of a deal during which the broker's key was replaced.
func rotatedTranscripts(number int) (all []Transcript, err error) {
	t, err := rotated(number)
	if err != nil {
		return nil, err
	}
	history, signers, err := rotatedHistory(rotatedAt(number))
	if err != nil {
		return nil, err
	}
	late, _, err := rotatedHistory(rotatedAt(number).Add(time.Hour / 2))
	if err != nil {
		return nil, err
	}
	early, _, err := rotatedHistory(rotatedAt(number).Add(-performatives.KeySkew))
	if err != nil {
		return nil, err
	}
	add := func(name, about string, trusted performatives.Key, keys performatives.KeyHistory, faults ...Fault) {
		all = append(all, Transcript{
			Name: name, About: about, Broker: trusted, BrokerKeys: keys, Session: t.id, Head: t.entries[len(t.entries)-1].Stamp.Hash, Length: len(t.entries),
			Entries: t.lines(), Refused: faults,
		})
	}
	receipts := func(lines ...int) (faults []Fault) {
		for _, line := range lines {
			faults = append(faults, Fault{line, transcript.Receipt})
		}
		return faults
	}
	add("rotated", "the broker's key was replaced after the third entry; the first one is trusted", signers[0].Key(), history)
	add("rotated-newest", "the same; the newest key is trusted, which signed nothing here", history.Newest(), history)
	add("rotated-unknown", "the same, without the history: the entries by the new key are not the broker's", signers[0].Key(), nil,
		append(receipts(4, 5), Fault{5, transcript.Broker})...)
	add("rotated-late", "the old key signed more than 5 minutes after it was replaced", signers[0].Key(), early, receipts(1, 2, 3)...)
	add("rotated-early", "the new key signed more than 5 minutes before it took the place of the old one", signers[0].Key(), late, receipts(4)...)
	return all, nil
}
