package evidence

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/parley-asp/parley/internal/ijson"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session/agreement"
	"github.com/parley-asp/parley/session/agreement/inclusion"
	"github.com/parley-asp/parley/session/modes"
	"github.com/parley-asp/parley/session/transcript"
)

// A Fault is one thing that is wrong with a bundle, and where.
type Fault = agreement.Fault

// Trust is what a verifier takes as given.
type Trust struct {
	agreement.Trust
	Receipts ed25519.PublicKey // verifies COSE Receipts; nil takes the key that the bundle names
}

// A Report is what was verified of a bundle.
type Report struct {
	Bundle   Bundle
	Faults   []Fault
	Logged   int    // agreements, and the session's end, that are in the public log, by the log's key
	Withheld int    // entries of which only the hash and the receipt are there
	Unlinked int    // of these, those that no entry after them names: they could be of another session
	AsOf     string // when the last entry was accepted
	// Claimed are pointers to the obligations and disputes that only the bundle says: of a transcript with
	// entries withheld nobody can compute them again.
	Claimed []string
	Hosted  []performatives.Agent // whose key the installation holds, as the transcript pins it

	LogUnchecked bool // since the log's key was not given
	// ReceiptsUnchecked: nobody said which key signs COSE Receipts, and the bundle's own was taken.
	ReceiptsUnchecked bool
	// Unchecked is the bundle's key if nobody said which one the broker has: anybody could have made it.
	Unchecked []performatives.Key
}

// fault notes one.
func (r *Report) fault(member, why string, args ...any) {
	r.Faults = append(r.Faults, Fault{Member: member, Why: fmt.Sprintf(why, args...)})
}

// Verify checks a bundle offline: the transcript with its hashes, receipts and signatures, and that its
// replay leads to what the bundle says of state, agreements, obligations and disputes. Of a redacted
// bundle it checks the chain, and what is there.
func Verify(data []byte, trust Trust) Report {
	r := Report{LogUnchecked: trust.Log == nil}
	says, err := ijson.CanonicalWithin(data, maxDepth) // white space and order prove nothing
	if err == nil {
		err = json.Unmarshal(says, &r.Bundle, json.RejectUnknownMembers(true))
	}
	if err != nil {
		r.fault("", "is no bundle of evidence: %v", err)
		return r
	}
	b := r.Bundle
	if b.Format != Format {
		r.fault("/format", "is %q, not %q", b.Format, Format)
		return r
	}
	if len(b.Transcript) == 0 {
		r.fault("/transcript", "is empty, so there is no session to tell of")
		return r
	}
	is, err := json.Marshal(b)
	if err == nil {
		is, err = ijson.CanonicalWithin(is, maxDepth)
	}
	if err != nil || !bytes.Equal(says, is) {
		r.fault("", "has more or less than a bundle has")
	}
	if trust.Broker == "" {
		if trust.BrokerKeys.IsZero() {
			r.Unchecked = []performatives.Key{b.Broker}
		}
		trust.Broker = b.Broker
	}
	if trust.BrokerKeys.IsZero() {
		if trust.BrokerKeys, err = b.BrokerKeys.Trust(trust.Broker); err != nil {
			r.fault("/brokerKeys", "%v", err)
		}
	}
	trust.BrokerKeys = trust.BrokerKeys.Or(trust.Broker)
	if !trust.BrokerKeys.Has(b.Broker) {
		r.anotherBroker(&trust)
	}
	r.AsOf = acceptedAt(b.Transcript)
	if len(b.Withheld()) > 0 {
		r.chain(trust)
		r.claims()
		r.documents(b.Agreements, trust)
	} else {
		r.replayed(trust)
	}
	r.logged(trust)
	return r
}

// anotherBroker says that the bundle is another broker's. If all its receipts are, it says so once, and the rest is
// checked by that broker's keys.
func (r *Report) anotherBroker(trust *Trust) {
	b := &r.Bundle
	for _, line := range b.Transcript {
		if trust.BrokerKeys.Has(receiptOf(line).Broker) {
			r.fault("/broker", "is %s, not the broker %s", b.Broker, trust.Broker)
			return
		}
	}
	r.fault("/broker", "is %s, not the broker %s: no receipt of the entries, %d in all, is by the trusted one", b.Broker, trust.Broker, len(b.Transcript))
	trust.Broker = b.Broker
	keys, err := b.BrokerKeys.Trust(b.Broker)
	if err != nil {
		r.fault("/brokerKeys", "%v", err)
	}
	trust.BrokerKeys = keys.Or(b.Broker)
}

// maxDepth is how deep a bundle may be nested: it holds documents, which hold entries.
const maxDepth = 3 * ijson.MaxDepth

// replayed checks a whole transcript, and that it leads to what the bundle says.
func (r *Report) replayed(trust Trust) {
	b := &r.Bundle
	lines := make([][]byte, len(b.Transcript))
	for i, line := range b.Transcript {
		lines[i] = line
	}
	faults, err := transcript.Verify(bytes.NewReader(bytes.Join(lines, []byte("\n"))), trust.Broker, transcript.Expect{
		Session: b.Session, Head: b.Head, Length: len(lines), AllowUnsigned: trust.Unsigned, BrokerKeys: trust.BrokerKeys,
	})
	for _, f := range faults {
		r.fault(fmt.Sprintf("/transcript/%d", f.Line-1), "%s", f.Error())
	}
	if err != nil {
		r.fault("/transcript", "%v", err)
	}
	entries, state, err := replay(b.Transcript, b.Sealed)
	if err != nil {
		r.fault("/transcript", "does not replay: %v", err)
		return
	}
	for _, id := range slices.Sorted(maps.Keys(b.Sealed)) {
		if !slices.ContainsFunc(entries, func(e transcript.Entry) bool { return e.Message.ID == id }) {
			r.fault("/sealed/"+string(id), "is of no entry that is here")
		}
	}
	if state.ID != b.Session {
		r.fault("/sessionId", "is %q; the transcript is of %s", b.Session, state.ID)
	}
	if state.Phase != b.State {
		r.fault("/state", "is %s; the transcript leads to %s", b.State, state.Phase)
	}
	for _, a := range state.Participants() {
		if p, _ := state.Party(a); p.Custody == performatives.Hosted {
			r.Hosted = append(r.Hosted, a)
		}
	}
	made, err := agreement.Of(entries, modes.All())
	if err != nil {
		r.fault("/agreements", "%v", err)
	}
	unlogged := slices.Clone(b.Agreements)
	for i := range unlogged {
		unlogged[i].Log = nil
	}
	same(r, "/agreements", unlogged, made)
	same(r, "/obligations", b.Obligations, obligations(&state))
	same(r, "/disputes", b.Disputes, disputes(&state))
	r.documents(b.Agreements, trust)
}

// documents checks each agreement by itself.
func (r *Report) documents(all []agreement.Document, trust Trust) {
	for i, d := range all {
		at := fmt.Sprintf("/agreements/%d", i)
		data, err := d.Bytes()
		if err != nil {
			r.fault(at, "%v", err)
			continue
		}
		if d.Evidence != nil {
			if e, err := transcript.Read(d.Evidence.Acceptance); err == nil && e.Message.Session != r.Bundle.Session {
				r.fault(at+"/evidence/acceptance", "is of another session")
			}
		}
		report := agreement.Verify(data, trust.Trust)
		for _, f := range report.Faults {
			r.fault(at+f.Member, "%s", f.Why)
		}
		if report.Logged {
			r.Logged++
		}
	}
}

// logged checks the leaf of the session's end, and the receipts.
func (r *Report) logged(trust Trust) {
	b := &r.Bundle
	if b.Ended != nil {
		leaf, err := inclusion.ReadLeaf(b.Ended.Leaf)
		if err != nil || leaf.Type != inclusion.Session || leaf.Hash != string(b.Head) || len(leaf.Terms) > 0 {
			r.fault("/ended/leaf", "is not the leaf of this session's end")
		} else if at := acceptedAt(b.Transcript); leaf.At != at {
			r.fault("/ended/leaf", "the session ended at %s", at)
		}
		if trust.Log == nil {
			// It is not checked.
		} else if err := b.Ended.VerifyCosigned(trust.Log, trust.Witnesses); err != nil {
			r.fault("/ended", "%v", err)
		} else {
			r.Logged++
		}
	}
	if b.Receipts == nil {
		if b.Ended != nil || slices.ContainsFunc(b.Agreements, func(d agreement.Document) bool { return d.Log != nil }) {
			r.fault("/receipts", "are missing")
		}
		return
	}
	key, err := inclusion.ParseReceiptKey(b.Receipts.Key)
	if err != nil {
		r.fault("/receipts/key", "%v", err)
		return
	}
	r.ReceiptsUnchecked = trust.Receipts == nil
	if trust.Receipts != nil && !trust.Receipts.Equal(key) {
		r.fault("/receipts/key", "is another key than the one given")
	}
	receipts := 0
	check := func(at string, p *inclusion.Proof, receipt []byte) {
		if (p == nil) != (receipt == nil) {
			r.fault(at, "a receipt goes with a position in the public log")
		} else if p != nil {
			if err := p.VerifyReceipt(receipt, key); err != nil {
				r.fault(at, "%v", err)
			}
		}
	}
	for _, d := range b.Agreements {
		receipt, has := b.Receipts.Agreements[d.ID]
		if has {
			receipts++
		}
		check("/receipts/agreements/"+string(d.ID), d.Log, receipt)
	}
	if receipts != len(b.Receipts.Agreements) {
		r.fault("/receipts/agreements", "has receipts of other agreements")
	}
	check("/receipts/session", b.Ended, b.Receipts.Session)
}

// same compares what a bundle says with what its transcript says, item by item.
func same[T any](r *Report, member string, says, is []T) {
	if len(says) != len(is) {
		r.fault(member, "has %d items; the transcript makes %d", len(says), len(is))
		return
	}
	for i := range says {
		one, err := json.Marshal(says[i], json.Deterministic(true))
		two, err2 := json.Marshal(is[i], json.Deterministic(true))
		if err = errors.Join(err, err2); err != nil || !bytes.Equal(one, two) {
			r.fault(fmt.Sprintf("%s/%d", member, i), "says %s; the transcript says %s", one, two)
		}
	}
}
