package agreement

import (
	"bytes"

	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session/agreement/inclusion"
)

// log checks the position in the public log: that the leaf is of this agreement, and, by
// the log's key, that the log has it.
func (v *verifier) log() {
	p := v.Document.Log
	if p == nil {
		if v.trust.Log != nil {
			v.fault("/log", "the agreement has no position in the log")
		}
		return
	}
	leaf, err := inclusion.ReadLeaf(p.Leaf)
	switch {
	case err != nil:
		v.fault("/log/leaf", "is no leaf of the log: %v", err)
	case leaf.Type != inclusion.Agreement || leaf.Hash != string(v.Document.Hash):
		v.fault("/log/leaf", "is of something else")
	}
	if acceptedAt, known := v.acceptedAt(); known && leaf.At != acceptedAt {
		v.fault("/log/leaf", "the agreement was made at %s", acceptedAt)
	}
	for name, value := range leaf.Terms {
		if term, has := v.Document.Terms[name]; has && !bytes.Equal(term, value) {
			v.fault("/log/leaf", "the term %s is another", name)
		}
	}
	if v.trust.Log == nil {
		return
	}
	if err := p.VerifyCosigned(v.trust.Log, v.trust.Witnesses); err != nil {
		v.fault("/log", "%v", err)
		return
	}
	v.Logged = true
}

// acceptedAt is when the entry that made the agreement was accepted, if the document has it.
func (v *verifier) acceptedAt() (at string, known bool) {
	if e := v.Document.Evidence; e != nil && e.Acceptance != nil {
		made := e.Acceptance
		if n := len(e.Confirmed); n > 0 {
			made = e.Confirmed[n-1]
		}
		if e.Close != nil {
			made = e.Close
		}
		_, stamp, _, err := performatives.ReadDelivered(made)
		return stamp.Receipt.AcceptedAt, err == nil
	}
	return "", false
}
