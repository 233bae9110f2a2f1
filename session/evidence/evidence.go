// Package evidence makes one file of what was agreed and what has become of it, which proves itself
// without the broker (COMMITMENTS.md C3): the agreements, the transcript, and for each obligation and
// each dispute the entries that made it what it is.
package evidence

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/session/agreement"
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
	State       session.Phase                                         `json:"state"`
	Agreements  []agreement.Document                                  `json:"agreements"`
	Obligations []Obligation                                          `json:"obligations"`
	Disputes    []Dispute                                             `json:"disputes"`
	Transcript  []jsontext.Value                                      `json:"transcript"`
	Sealed      map[performatives.MessageID]performatives.SealedParts `json:"sealed,omitzero"` // what the asker's side may open
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

// Make makes the bundle of a transcript, which is taken to be genuine. The documents are those of its
// agreements, with their places in the public log; nil makes them of the transcript, without these.
func Make(entries [][]byte, sealed map[performatives.MessageID]performatives.SealedParts, documents []agreement.Document) (Bundle, error) {
	read, state, err := replay(entries, sealed)
	if err != nil {
		return Bundle{}, err
	}
	if documents == nil {
		if documents, err = agreement.Of(read, modes.All()); err != nil {
			return Bundle{}, err
		}
	}
	b := Bundle{
		Format: Format, Session: state.ID, Broker: read[0].Stamp.Receipt.Broker, State: state.Phase, Agreements: documents, Sealed: sealed,
		Obligations: obligations(&state), Disputes: disputes(&state),
	}
	for _, e := range entries {
		b.Transcript = append(b.Transcript, e)
	}
	return b, nil
}

// replay reads a transcript, and the state that it leads to.
func replay(lines [][]byte, sealed map[performatives.MessageID]performatives.SealedParts) ([]transcript.Entry, session.State, error) {
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

// A Fault is one thing that is wrong with a bundle, and where.
type Fault = agreement.Fault

// A Report is what was verified of a bundle.
type Report struct {
	Bundle Bundle
	Faults []Fault
	Logged int // agreements that are in the public log, by the log's key
}

// Verify checks a bundle offline: the transcript with its hashes, receipts and signatures, and that its
// replay leads to what the bundle says of state, agreements, obligations and disputes.
func Verify(data []byte, trust agreement.Trust) Report {
	r := Report{}
	fault := func(member, why string, args ...any) {
		r.Faults = append(r.Faults, Fault{Member: member, Why: fmt.Sprintf(why, args...)})
	}
	if err := json.Unmarshal(data, &r.Bundle, json.RejectUnknownMembers(true)); err != nil {
		fault("", "is no bundle of evidence: %v", err)
		return r
	}
	b := r.Bundle
	if b.Format != Format {
		fault("/format", "is %q, not %q", b.Format, Format)
		return r
	}
	if trust.Broker == "" {
		trust.Broker = b.Broker
	}
	if trust.Broker != b.Broker {
		fault("/broker", "is %s, not the broker %s", b.Broker, trust.Broker)
	}
	lines := make([][]byte, len(b.Transcript))
	for i, line := range b.Transcript {
		lines[i] = line
	}
	faults, err := transcript.Verify(bytes.NewReader(bytes.Join(lines, []byte("\n"))), trust.Broker, transcript.Expect{Session: b.Session, Length: len(lines), AllowUnsigned: trust.Unsigned})
	for _, f := range faults {
		fault(fmt.Sprintf("/transcript/%d", f.Line-1), "%s", f.Error())
	}
	if err != nil {
		fault("/transcript", "%v", err)
	}
	entries, state, err := replay(lines, b.Sealed)
	if err != nil {
		fault("/transcript", "does not replay: %v", err)
		return r
	}
	if state.ID != b.Session {
		fault("/sessionId", "is %q; the transcript is of %s", b.Session, state.ID)
	}
	if state.Phase != b.State {
		fault("/state", "is %s; the transcript leads to %s", b.State, state.Phase)
	}
	r.agreements(entries, trust, fault)
	same(fault, "/obligations", b.Obligations, obligations(&state))
	same(fault, "/disputes", b.Disputes, disputes(&state))
	return r
}

// agreements checks that the documents hold, and are those that the transcript makes.
func (r *Report) agreements(entries []transcript.Entry, trust agreement.Trust, fault func(member, why string, args ...any)) {
	made, err := agreement.Of(entries, modes.All())
	if err != nil {
		fault("/agreements", "%v", err)
		return
	}
	if len(made) != len(r.Bundle.Agreements) {
		fault("/agreements", "has %d; the transcript makes %d", len(r.Bundle.Agreements), len(made))
		return
	}
	for i, d := range r.Bundle.Agreements {
		at := fmt.Sprintf("/agreements/%d", i)
		unlogged := d
		unlogged.Log = nil
		says, err := unlogged.Bytes()
		is, err2 := made[i].Bytes()
		if err = errors.Join(err, err2); err != nil || !bytes.Equal(says, is) {
			fault(at, "is another agreement than the transcript makes")
		}
		data, err := d.Bytes()
		if err != nil {
			fault(at, "%v", err)
			continue
		}
		report := agreement.Verify(data, trust)
		for _, f := range report.Faults {
			fault(at+f.Member, "%s", f.Why)
		}
		if report.Logged {
			r.Logged++
		}
	}
}

// same compares what a bundle says with what its transcript says, item by item.
func same[T any](fault func(member, why string, args ...any), member string, says, is []T) {
	if len(says) != len(is) {
		fault(member, "has %d items; the transcript makes %d", len(says), len(is))
		return
	}
	for i := range says {
		one, err := json.Marshal(says[i], json.Deterministic(true))
		two, err2 := json.Marshal(is[i], json.Deterministic(true))
		if err = errors.Join(err, err2); err != nil || !bytes.Equal(one, two) {
			fault(fmt.Sprintf("%s/%d", member, i), "says %s; the transcript says %s", one, two)
		}
	}
}
