package agreement

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session/transcript"
)

// later are the signatures of parties that have made none with the offer or the acceptance.
func (v *verifier) later(a Accepted) (signatures map[performatives.Agent]string) {
	offer, binds := a.Offer.Message.Body.(performatives.Binder)
	accept, accepts := a.Acceptance.Message.Body.(*performatives.AcceptBody)
	if !binds || !accepts || len(a.Parties) != 2 || len(v.Document.Signatures) == 0 {
		return nil
	}
	signatures = map[performatives.Agent]string{}
	for i, entry := range []string{offer.Binds().AgreementSignature, accept.AgreementSignature} {
		if entry == "" {
			signatures[a.Parties[i]] = v.Document.Signatures[v.Document.Parties[i]]
		}
	}
	return signatures
}

// rotated checks that each further key of a signer has signed one of the entries.
func (v *verifier) rotated() {
	for a, keys := range v.Document.Evidence.Rotated {
		for _, key := range keys {
			if !slices.Contains(v.signers[a], key) {
				v.fault("/evidence/rotated/"+string(a), "%s signed no entry", key)
			}
		}
	}
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
		keys := v.mustSign(v.party(i))
		for _, key := range keys {
			switch {
			case key == "":
				v.fault("/signatures/"+string(party), "the key of %s is not known: under --dev nobody signs", v.party(i))
			case strings.HasPrefix(string(party), didKey) && party != DIDKeyOf(key):
				v.fault("/signatures/"+string(party), "is of %s, which is another key", key)
			case !SignedBy(key, d.Hash, signature):
				v.fault("/signatures/"+string(party), "is not of the key %s", key)
			}
		}
		if len(v.Faults) == faults {
			v.Signed = append(v.Signed, party)
			v.signers[v.party(i)] = append(v.signers[v.party(i)], keys...)
		}
	}
	if len(d.Signatures) > len(d.Parties) {
		v.fault("/signatures", "somebody signed who is no party")
	}
}

// mustSign are the keys that a party's signature has to be of: the one that the document
// names, and the trusted one. What is trusted takes no check away.
func (v *verifier) mustSign(party performatives.Agent) (keys []performatives.Key) {
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
