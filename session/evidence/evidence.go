// Package evidence makes one file of what was agreed and what has become of it, which proves itself
// without the broker (COMMITMENTS.md C3): the agreements, the transcript, and for each obligation and
// each dispute the entries that made it what it is.
package evidence

import (
	"errors"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/session/agreement"
	"github.com/parley-asp/parley/session/agreement/inclusion"
	"github.com/parley-asp/parley/session/modes"
	"github.com/parley-asp/parley/session/transcript"
)

// Format names the form of a bundle.
const Format = "parley-evidence/1"

// A Bundle is the file.
type Bundle struct {
	Format      string                                                `json:"format"`
	Session     performatives.SessionID                               `json:"sessionId"`
	Broker      performatives.Key                                     `json:"broker"` // whose receipts the transcript has
	Head        performatives.Hash                                    `json:"head"`   // of the last entry
	State       session.Phase                                         `json:"state"`
	Agreements  []agreement.Document                                  `json:"agreements"`
	Obligations []Obligation                                          `json:"obligations"`
	Disputes    []Dispute                                             `json:"disputes"`
	Transcript  []jsontext.Value                                      `json:"transcript"`
	Sealed      map[performatives.MessageID]performatives.SealedParts `json:"sealed,omitzero"`   // what the asker's side may open
	Ended       *inclusion.Proof                                      `json:"ended,omitzero"`    // where the public log has the end of the session
	Receipts    *Receipts                                             `json:"receipts,omitzero"` // of the leaves in the public log

	BrokerKeys performatives.KeyHistory `json:"brokerKeys,omitzero"` // of a broker that has rotated its key
}

// Receipts are COSE Receipts (RFC 9942) of leaves.
type Receipts struct {
	Key        string                  `json:"key"` // verifies them: Ed25519 as PEM
	Agreements map[agreement.ID][]byte `json:"agreements,omitzero"`
	Session    []byte                  `json:"session,omitzero"`
}

// An Obligation is where one stands, and the entries that say so.
type Obligation struct {
	Commitment string              `json:"commitmentId"`
	ID         string              `json:"obligation"`
	Party      performatives.Agent `json:"party"`
	Action     string              `json:"action"`
	Status     string              `json:"status"`
	Breaches   int                 `json:"breaches,omitzero"`
	Entries    []uint64            `json:"entries"`
}

// A Dispute is where one stands, and the entries that say so.
type Dispute struct {
	ID      string              `json:"disputeId"`
	By      performatives.Agent `json:"by"`
	Ground  string              `json:"ground"`
	Status  string              `json:"status"`
	Entries []uint64            `json:"entries"`
}

// Make makes the bundle of a transcript, which is taken to be genuine, without what the public log has.
func Make(entries []jsontext.Value, sealed map[performatives.MessageID]performatives.SealedParts) (Bundle, error) {
	read, state, err := replay(entries, sealed)
	if err != nil {
		return Bundle{}, err
	}
	documents, err := agreement.Of(read, modes.All())
	return Bundle{
		Format: Format, Session: state.ID, Broker: read[0].Stamp.Receipt.Broker, Head: state.Head, State: state.Phase, Agreements: documents,
		Obligations: obligations(&state), Disputes: disputes(&state), Transcript: entries, Sealed: sealed,
	}, err
}

// Logged adds what the public log has of the bundle, and receipts of it: found answers with both, or nil.
func (b *Bundle) Logged(key string, found func(kind inclusion.Kind, id string) (*inclusion.Proof, []byte, error)) error {
	r := Receipts{Key: key, Agreements: map[agreement.ID][]byte{}}
	for i := range b.Agreements {
		d := &b.Agreements[i]
		proof, receipt, err := found(inclusion.Agreement, string(d.ID))
		if err != nil {
			return err
		}
		if d.Log = proof; proof != nil {
			r.Agreements[d.ID] = receipt
		}
	}
	var err error
	if b.Ended, r.Session, err = found(inclusion.Session, string(b.Session)); err != nil {
		return err
	}
	if len(r.Agreements) > 0 || b.Ended != nil {
		b.Receipts = &r
	}
	return nil
}

// IsLogged reports whether the public log has all that it will have of the bundle as it is.
func (b *Bundle) IsLogged() bool {
	over := b.State == session.Closed || b.State == session.Failed
	return (b.Ended != nil || !over) && !slices.ContainsFunc(b.Agreements, func(d agreement.Document) bool { return d.Log == nil })
}

// Take adds entries to a bundle without a transcript, up to its head. It reports whether that is there.
func (b *Bundle) Take(entries []jsontext.Value, sealed map[performatives.MessageID]performatives.SealedParts) (whole bool) {
	for _, line := range entries {
		e, err := transcript.Read(line)
		if err != nil {
			return true // Verify says so
		}
		b.Transcript = append(b.Transcript, line)
		if parts := sealed[e.Message.ID]; len(parts) > 0 {
			if b.Sealed == nil {
				b.Sealed = map[performatives.MessageID]performatives.SealedParts{}
			}
			b.Sealed[e.Message.ID] = parts
		}
		if e.Stamp.Hash == b.Head {
			return true
		}
	}
	return false
}

// replay reads a transcript, and the state that it leads to.
func replay(lines []jsontext.Value, sealed map[performatives.MessageID]performatives.SealedParts) ([]transcript.Entry, session.State, error) {
	var all []transcript.Entry
	var state session.State
	for i, line := range lines {
		e, err := transcript.ReadOpened(line, sealed)
		if err != nil {
			return nil, state, fmt.Errorf("entry %d: %w", i, err)
		}
		if i == 0 {
			state = session.New(e.Message.Session, modes.All())
		}
		if state, err = session.Replay(state, e.Message, e.Stamp); err != nil {
			return nil, state, err
		}
		all = append(all, e)
	}
	if len(all) == 0 {
		return nil, state, errors.New("the transcript is empty")
	}
	return all, state, nil
}

func obligations(s *session.State) []Obligation {
	all := []Obligation{}
	for _, o := range s.Obligations() {
		all = append(all, Obligation{
			Commitment: o.Commitment, ID: o.ID, Party: o.Party, Action: o.Action, Status: o.Status(), Breaches: o.Breaches, Entries: s.EntriesOf(o),
		})
	}
	return all
}

func disputes(s *session.State) []Dispute {
	all := []Dispute{}
	for _, d := range s.Disputes() {
		one := Dispute{ID: d.DisputeID, By: d.Side, Ground: d.Ground, Status: d.Status, Entries: []uint64{d.Entry, d.Sequence}}
		for _, r := range d.Replies {
			one.Entries = append(one.Entries, r.Sequence)
		}
		if d.Decided > 0 {
			one.Entries = append(one.Entries, d.Decided)
		}
		slices.Sort(one.Entries)
		one.Entries = slices.Compact(one.Entries)
		all = append(all, one)
	}
	return all
}
