package agreement

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"golang.org/x/mod/sumdb/note"

	"github.com/parley-asp/parley/internal/ijson"
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session/transcript"
)

// A Fault is one thing that is wrong with a document, and where.
type Fault struct {
	Member string `json:"member"` // a JSON Pointer
	Why    string `json:"why"`
}

func (f Fault) String() string { return f.Member + ": " + f.Why }

// Trust is what a verifier takes as given.
type Trust struct {
	Keys   map[performatives.Agent]performatives.Key // of parties and delegates, besides those that the evidence names
	Broker performatives.Key                         // whose receipts the evidence has; "" takes the one that it names
	// BrokerKeys are all keys that the broker's receipts may have, where it has rotated its key. None are Broker alone.
	BrokerKeys performatives.TrustedKeys
	Log        note.Verifier   // whose checkpoints the position in the public log has; nil leaves it unchecked
	Witnesses  []note.Verifier // that must have cosigned these checkpoints
	// Unsigned accepts evidence of a broker that ran with --dev.
	Unsigned bool
}

// A Report is what was verified of a document.
type Report struct {
	Document Document
	Faults   []Fault
	Signed   []DID    // the parties whose signature over the hash is right
	Redacted []string // terms of which only the digest is there
	Logged   bool     // it is in the public log, by the log's key
	// Unchecked are the keys of its receipts if nobody said which one the broker has: anybody could have made them.
	Unchecked []performatives.Key

	receipts bool // of all entries are right
	signers  map[performatives.Agent][]performatives.Key
}

// Proves says what a document without faults proves.
func (r Report) Proves() string {
	switch {
	case len(r.Signed) > 0:
		return "every party has signed the hash"
	case r.receipts:
		return "the entries of offer and acceptance make this agreement"
	case r.Logged:
		return "the broker has logged the hash; who agreed to the terms is not proven"
	default:
		return "the terms are those of the hash; who agreed to them is not proven"
	}
}

// Verify checks a document offline: its members, its digests and hash, the signatures, and
// the entries that made it. White space and the order of members prove nothing, so
// any spelling will do. A document without faults proves what Report says.
func Verify(data []byte, trust Trust) Report {
	v := verifier{trust: trust}
	v.signers = map[performatives.Agent][]performatives.Key{}
	canonical, err := ijson.CanonicalWithin(data, maxDepth)
	if err == nil {
		err = json.Unmarshal(canonical, &v.Document, json.RejectUnknownMembers(true))
	}
	if err != nil {
		v.fault("", "is no agreement: %v", err)
		return v.Report
	}
	if form, err := v.Document.Bytes(); err != nil || !bytes.Equal(form, canonical) {
		v.fault("", "has more than an agreement has")
	}
	v.hashes()
	v.dates()
	v.evidence()
	v.signatures()
	v.log()
	return v.Report
}

// maxDepth is how deep a document may be nested: it holds whole entries.
const maxDepth = 2 * ijson.MaxDepth

type verifier struct {
	Report
	trust Trust
}

func (v *verifier) fault(member, why string, args ...any) {
	v.Faults = append(v.Faults, Fault{member, fmt.Sprintf(why, args...)})
}

func (v *verifier) hashes() {
	d := &v.Document
	for _, name := range slices.Sorted(maps.Keys(d.Digests)) {
		value, has := d.Terms[name]
		if !has {
			v.Redacted = append(v.Redacted, name)
			continue
		}
		if digest, err := digestOfTerm(d.Salts[name], name, value); err != nil || digest != d.Digests[name] {
			v.fault("/terms/"+name, "the term and its salt do not have the digest of terms_digests")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(d.Terms)) {
		if _, digested := d.Digests[name]; !digested {
			v.fault("/terms/"+name, "terms_digests has no such term")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(d.Salts)) {
		if _, has := d.Terms[name]; !has {
			v.fault("/salts/"+name, "terms has no such term")
		}
	}
	if hash, err := d.Core.Hash(); err != nil || hash != d.Hash {
		v.fault("/agreement_hash", "is not the hash of the agreement")
	}
	if len(d.Parties) < 2 {
		v.fault("/parties", "an agreement has two parties or more")
	}
}

func (v *verifier) dates() {
	from, err := time.Parse(time.RFC3339, v.Document.EffectiveFrom)
	if err != nil {
		v.fault("/effective_from", "is no date and time")
	}
	if v.Document.EffectiveUntil == "" {
		return
	}
	until, err := time.Parse(time.RFC3339, v.Document.EffectiveUntil)
	if err != nil || !until.After(from) {
		v.fault("/effective_until", "is not after effective_from")
	}
}

// evidence checks the two entries, and that this is the agreement that they make.
func (v *verifier) evidence() {
	said := v.Document.Evidence
	if said == nil || said.Offer == nil && said.Acceptance == nil {
		return
	}
	a := Accepted{Parties: v.parties(), Inherited: Inherited{v.Document.CCC, v.Document.Obligations, said.DIDs, v.Document.Negotiation.oap()}}
	complete := v.entry("/evidence/offer", said.Offer, &a.Offer)
	complete = v.entry("/evidence/acceptance", said.Acceptance, &a.Acceptance) && complete
	if said.Commitment != nil {
		complete = v.entry("/evidence/commitment", said.Commitment, &a.Commitment) && complete
	}
	if said.Close != nil {
		complete = v.entry("/evidence/close", said.Close, &a.Close) && complete
	}
	a.Confirmations = make([]transcript.Entry, len(said.Confirmed))
	for i, e := range said.Confirmed {
		complete = v.entry(fmt.Sprintf("/evidence/confirmations/%d", i), e, &a.Confirmations[i]) && complete
	}
	if !complete {
		return
	}
	v.receipts = true
	v.rotated()
	v.follows(&a)
	v.confirmed(a)
	keys := map[performatives.Agent][]performatives.Key{}
	for a, k := range said.Keys {
		keys[a] = []performatives.Key{k}
	}
	for a, k := range said.Rotated {
		keys[a] = append(keys[a], k...)
	}
	for a, k := range said.DIDKeys {
		keys[a] = append(keys[a], k)
	}
	a.Keys = keys
	made, err := Build(a)
	if err != nil {
		v.fault("/evidence/offer", "%v", err)
		return
	}
	if made.Hash != v.Document.Hash {
		v.fault("/agreement_hash", "the entries of offer and acceptance make another agreement")
	}
	if len(v.Document.Terms) < len(v.Document.Digests) {
		v.fault("/evidence/offer", "tells the terms that were taken out")
	}
	if a.Signatures = v.later(a); a.Signatures != nil {
		made, _ = Build(a) // it was made before
	}
	if !maps.Equal(made.Signatures, v.Document.Signatures) {
		v.fault("/signatures", "are not those of the entries")
	}
	v.agreedBy(a)
}

// follows checks that each entry is about the one before, and comes after it. It names the
// agreement by its commitment if that is what the document does.
func (v *verifier) follows(a *Accepted) {
	type step struct {
		member string
		entry  transcript.Entry
		of     string // what it has to refer to
	}
	id := func(e transcript.Entry) string { return e.Message.Body.ID(e.Message.ID) }
	accepted, steps := a.Offer, []step{}
	if a.Commitment.Message != nil {
		if act := a.Commitment.Message.Performative; act != performatives.Commit {
			v.fault("/evidence/commitment", "is a %s, which commits to nothing", act)
		}
		accepted, steps = a.Commitment, append(steps, step{"/evidence/commitment", a.Commitment, id(a.Offer)})
		if v.Document.ID == IDOf(a.Commitment.Message.Session, id(a.Commitment)) {
			a.Name = id(a.Commitment)
		}
	}
	steps = append(steps, step{"/evidence/acceptance", a.Acceptance, id(accepted)})
	if act := a.Acceptance.Message.Performative; act != performatives.Accept && act != performatives.Commit {
		v.fault("/evidence/acceptance", "is a %s, which accepts nothing", act)
	}
	if a.Close.Message != nil {
		body, closes := a.Close.Message.Body.(*performatives.CloseBody)
		if !closes || cmp.Or(body.Outcome, performatives.Completed) != performatives.Completed || a.Commitment.Message != nil {
			v.fault("/evidence/close", "is no CLOSE with the outcome completed")
		}
		steps = append(steps, step{"/evidence/close", a.Close, a.Close.Message.Body.Refers()})
	}
	before := a.Offer
	for _, s := range steps {
		switch {
		case s.entry.Message.Body.Refers() != s.of:
			v.fault(s.member, "is about another offer")
		case s.entry.Message.Session != before.Message.Session, s.entry.Stamp.Sequence <= before.Stamp.Sequence:
			v.fault(s.member, "does not follow the offer")
		}
		before = s.entry
	}
}

// confirmed checks that people of each party's organisation have confirmed what was accepted, if
// anybody has.
func (v *verifier) confirmed(a Accepted) {
	missing := map[performatives.Organisation]bool{}
	if len(a.Confirmations) > 0 {
		for _, party := range a.Parties {
			missing[party.Organisation()] = true
		}
	}
	before := a.Acceptance
	for i, e := range a.Confirmations {
		member := fmt.Sprintf("/evidence/confirmations/%d", i)
		var ruling performatives.RulingData
		inform, rules := e.Message.Body.(*performatives.InformBody)
		if rules {
			ruling, rules = inform.Ruling()
		}
		asked := performatives.MessageID(ruling.EscalationID)
		switch {
		case !rules || ruling.Decision != performatives.Approved || asked != a.Offer.Message.ID && asked != a.Acceptance.Message.ID:
			v.fault(member, "confirms nothing of this agreement")
		case e.Message.Session != before.Message.Session || e.Stamp.Sequence != before.Stamp.Sequence+1:
			v.fault(member, "does not follow the acceptance")
		}
		delete(missing, e.Message.Sender.Organisation())
		before = e
	}
	for _, org := range slices.Sorted(maps.Keys(missing)) {
		v.fault("/evidence/confirmations", "nobody of %s has confirmed it", org)
	}
}

// agreedBy checks that the parties are those who made and accepted the offer, and committed to it.
func (v *verifier) agreedBy(a Accepted) {
	parties, accepter := v.parties(), sideOf(a.Acceptance)
	made := sideOf(a.Offer)
	ok := made == v.party(0)
	if a.Commitment.Message != nil {
		made = sideOf(a.Commitment)
		ok = ok && slices.Contains(parties, made)
	}
	converged := a.Acceptance.Message.Performative == performatives.Commit // anybody may who is allowed to
	if !ok || !converged && (accepter == made || !slices.Contains(parties, accepter)) {
		v.fault("/parties", "are not those who made and accepted the offer")
	}
}

// entry checks one entry of the transcript as far as it stands alone.
func (v *verifier) entry(member string, data []byte, into *transcript.Entry) bool {
	e, err := transcript.Read(data)
	if err == nil {
		err = e.Message.DecodeBody()
	}
	if err != nil {
		v.fault(member, "%v", err)
		return false
	}
	*into = e
	if e.Recomputed != e.Stamp.Hash {
		v.fault(member, "its hash is not that of its bytes")
	}
	broker := v.trust.Broker
	if broker == "" {
		broker = e.Stamp.Receipt.Broker
		if v.trust.BrokerKeys.IsZero() && !slices.Contains(v.Unchecked, broker) {
			v.Unchecked = append(v.Unchecked, broker)
		}
	}
	var untimely *performatives.UntimelyError
	if err := v.trust.BrokerKeys.Or(broker).VerifyReceipt(&e.Stamp); errors.As(err, &untimely) {
		v.fault(member, "%s", untimely)
	} else if err != nil {
		v.fault(member, "its receipt is not signed by the broker %s", broker)
	}
	if e.Message.Signature == "" && v.trust.Unsigned {
		return true
	}
	sender, named := e.Message.Sender, v.Document.Evidence
	keys := append([]performatives.Key{named.Keys[sender]}, named.Rotated[sender]...)
	i := slices.IndexFunc(keys, func(k performatives.Key) bool { return k != "" && e.Message.VerifySignature(k) == nil })
	trusted, known := v.trust.Keys[sender]
	_, apart := named.DIDKeys[sender] // then the trusted key signed the hash
	switch {
	case keys[0] == "":
		v.fault(member, "the key of %s is not known: under --dev nobody signs", sender)
	case i < 0:
		v.fault(member, "%s did not sign it with the key %s", sender, keys[0])
	case known && !apart && !slices.Contains(keys, trusted):
		v.fault(member, "%s did not sign it with the key %s", sender, trusted)
	default:
		v.signers[sender] = append(v.signers[sender], keys[i])
	}
	return true
}
