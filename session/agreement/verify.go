package agreement

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
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
	Log    note.Verifier                             // whose checkpoints the position in the public log has; nil leaves it unchecked
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
}

// Proves says what a document without faults proves.
func (r Report) Proves() string {
	switch {
	case len(r.Signed) > 0:
		return "every party has signed the hash"
	case r.Document.Evidence != nil && r.Document.Evidence.Offer != nil:
		return "the entries of offer and acceptance make this agreement"
	default:
		return "the terms are those of the hash; who agreed to them is not proven"
	}
}

// Verify checks a document offline: its members, its digests and hash, the signatures, and
// the entries of offer and acceptance. White space and the order of members prove nothing, so
// any spelling will do. A document without faults proves what Report says.
func Verify(data []byte, trust Trust) Report {
	v := verifier{trust: trust}
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
	offer, offered := v.entry("/evidence/offer", said.Offer)
	acceptance, accepted := v.entry("/evidence/acceptance", said.Acceptance)
	if !offered || !accepted {
		return
	}
	keys := map[performatives.Agent][]performatives.Key{}
	for a, k := range said.Keys {
		keys[a] = []performatives.Key{k}
	}
	for a, k := range said.DIDKeys {
		keys[a] = append(keys[a], k)
	}
	made, err := Build(Accepted{Parties: v.parties(), Offer: offer, Acceptance: acceptance, Keys: keys, Inherited: Inherited{v.Document.CCC, v.Document.Obligations, said.DIDs}})
	switch {
	case err != nil:
		v.fault("/evidence/offer", "%v", err)
		return
	case acceptance.Message.Body.Refers() != offer.Message.Body.ID(offer.Message.ID):
		v.fault("/evidence/acceptance", "accepts another offer")
	case acceptance.Message.Session != offer.Message.Session, acceptance.Stamp.Sequence <= offer.Stamp.Sequence:
		v.fault("/evidence/acceptance", "does not follow the offer")
	}
	if act := acceptance.Message.Performative; act != performatives.Accept && act != performatives.Commit {
		v.fault("/evidence/acceptance", "is a %s, which accepts nothing", act)
	}
	if made.Hash != v.Document.Hash {
		v.fault("/agreement_hash", "the entries of offer and acceptance make another agreement")
	}
	if len(v.Document.Terms) < len(v.Document.Digests) {
		v.fault("/evidence/offer", "tells the terms that were taken out")
	}
	if !maps.Equal(made.Signatures, v.Document.Signatures) {
		v.fault("/signatures", "are not those of the entries")
	}
	accepter := sideOf(acceptance)
	commits := acceptance.Message.Performative == performatives.Commit // anybody may who is allowed to
	if sideOf(offer) != v.party(0) || !commits && (accepter == v.party(0) || !slices.Contains(v.parties(), accepter)) {
		v.fault("/parties", "are not those who made and accepted the offer")
	}
}

// entry checks one entry of the transcript as far as it stands alone.
func (v *verifier) entry(member string, data []byte) (transcript.Entry, bool) {
	e, err := transcript.Read(data)
	if err == nil {
		err = e.Message.DecodeBody()
	}
	if err != nil {
		v.fault(member, "%v", err)
		return e, false
	}
	if e.Recomputed != e.Stamp.Hash {
		v.fault(member, "its hash is not that of its bytes")
	}
	broker := v.trust.Broker
	if broker == "" {
		broker = e.Stamp.Receipt.Broker
	}
	if e.Stamp.Receipt.Broker != broker || e.Stamp.VerifyReceipt(broker) != nil {
		v.fault(member, "its receipt is not signed by the broker %s", broker)
	}
	sender, named := e.Message.Sender, v.Document.Evidence
	keys := []performatives.Key{named.Keys[sender]}
	trusted, known := v.trust.Keys[sender]
	if _, apart := named.DIDKeys[sender]; known && !apart { // else the trusted key signed the hash
		keys = append(keys, trusted)
	}
	for _, key := range keys {
		switch {
		case e.Message.Signature == "" && v.trust.Unsigned:
		case key == "":
			v.fault(member, "the key of %s is not known", sender)
		case e.Message.VerifySignature(key) != nil:
			v.fault(member, "%s did not sign it with the key %s", sender, key)
		}
	}
	return e, true
}

func sideOf(e transcript.Entry) performatives.Agent {
	if e.Stamp.OnBehalfOf != "" {
		return e.Stamp.OnBehalfOf
	}
	return e.Message.Sender
}

func (v *verifier) parties() []performatives.Agent {
	all := make([]performatives.Agent, len(v.Document.Parties))
	for i := range all {
		all[i] = v.party(i)
	}
	return all
}

func (v *verifier) party(i int) performatives.Agent {
	if i >= len(v.Document.Parties) {
		return ""
	}
	if e := v.Document.Evidence; e != nil {
		for a, did := range e.DIDs {
			if did == v.Document.Parties[i] {
				return a
			}
		}
	}
	a, err := v.Document.Parties[i].Agent()
	if err != nil {
		v.fault(fmt.Sprintf("/parties/%d", i), "is no DID of a principal")
	}
	return a
}

// signatures checks those over the hash: of every party, or of none.
func (v *verifier) signatures() {
	d := &v.Document
	if len(d.Signatures) == 0 {
		if d.Evidence != nil && len(d.Evidence.DIDKeys) > 0 {
			v.fault("/evidence/did_keys", "are keys of signatures that are not here")
		}
		return
	}
	for i, party := range d.Parties {
		signature, signed := d.Signatures[party]
		if !signed {
			v.fault("/signatures", "%s has not signed", party)
			continue
		}
		faults := len(v.Faults)
		for _, key := range v.signers(v.party(i)) {
			switch {
			case key == "":
				v.fault("/signatures/"+string(party), "the key of %s is not known", v.party(i))
			case strings.HasPrefix(string(party), didKey) && party != DIDKeyOf(key):
				v.fault("/signatures/"+string(party), "is of %s, which is another key", key)
			case !SignedBy(key, d.Hash, signature):
				v.fault("/signatures/"+string(party), "is not of the key %s", key)
			}
		}
		if len(v.Faults) == faults {
			v.Signed = append(v.Signed, party)
		}
	}
	if len(d.Signatures) > len(d.Parties) {
		v.fault("/signatures", "somebody signed who is no party")
	}
}

// signers are the keys that a party's signature has to be of: the one that the document
// names, and the trusted one. What is trusted takes no check away.
func (v *verifier) signers(party performatives.Agent) (keys []performatives.Key) {
	trusted, known := v.trust.Keys[party]
	if known {
		keys = append(keys, trusted)
	}
	if e := v.Document.Evidence; e != nil {
		return append(keys, cmp.Or(e.DIDKeys[party], e.Keys[party]))
	}
	if !known {
		keys = append(keys, "")
	}
	return keys
}

// SignedBy reports whether a signature in base64url is a key's over an agreement's hash.
func SignedBy(key performatives.Key, hash Digest, signature string) bool {
	raw, err := encoding.Strict().DecodeString(signature)
	return err == nil && key.Signed([]byte(hash), raw)
}

// Sign signs an agreement's hash.
func Sign(signer performatives.Signer, hash Digest) (string, error) {
	raw, err := signer.Sign([]byte(hash))
	return encoding.EncodeToString(raw), err
}
