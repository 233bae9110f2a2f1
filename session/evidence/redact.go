package evidence

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session/transcript"
)

// withheld is what is left of an entry that would tell what was redacted.
type withheld struct {
	Withheld struct {
		Hash    performatives.Hash    `json:"hash"`
		Receipt performatives.Receipt `json:"receipt"`
	} `json:"withheld"`
}

// Withheld are the numbers of the entries that are withheld.
func (b *Bundle) Withheld() (all []uint64) {
	for i, line := range b.Transcript {
		if isWithheld(line) {
			all = append(all, uint64(i))
		}
	}
	return all
}

func isWithheld(line jsontext.Value) bool { return bytes.HasPrefix(line, []byte(`{"withheld":`)) }

// Redact takes terms out, named as in "price" or "terms.price": out of the agreements, and with them
// each entry whose body has a member of this name, and the offer, of which the salts of all terms derive:
// with them one could try out what is missing. What people were asked and what they decided goes too, since it
// has terms in words, bounds of them and their hash, and so does all that is sealed. Of such an entry the hash
// and the receipt are left.
// What is said of obligations and disputes can then not be computed again, and is left out if it
// would tell them.
func (b Bundle) Redact(names ...string) (Bundle, error) {
	gone := map[string]bool{}
	for _, name := range names {
		name = strings.TrimPrefix(strings.ReplaceAll(strings.TrimPrefix(name, "/"), "/", "."), "terms.")
		name, _, _ = strings.Cut(name, ".")
		gone[name] = false
	}
	var offers []jsontext.Value // of redacted agreements
	b.Agreements = slices.Clone(b.Agreements)
	for i, d := range b.Agreements {
		keep := slices.DeleteFunc(slices.Collect(maps.Keys(d.Terms)), func(name string) bool {
			_, is := gone[name]
			if is {
				gone[name] = true
			}
			return is
		})
		if len(keep) < len(d.Terms) {
			if d.Evidence != nil {
				offers = append(offers, d.Evidence.Offer)
			}
			b.Agreements[i] = d.Redact(keep...)
			if b.Agreements[i].Log == nil && b.Receipts != nil { // its leaf is left out
				receipts := *b.Receipts
				receipts.Agreements = maps.Clone(receipts.Agreements)
				delete(receipts.Agreements, d.ID)
				b.Receipts = &receipts
			}
			if len(d.Signatures) == 0 {
				b.Agreements[i].Evidence = nil // its keys prove nothing without entries
			}
		}
	}
	b.Sealed = nil
	b.Transcript = slices.Clone(b.Transcript)
	for i, line := range b.Transcript {
		e, err := transcript.Read(line)
		if err != nil {
			return b, err
		}
		has := decides(e.Message) ||
			slices.ContainsFunc(offers, func(offer jsontext.Value) bool { return bytes.Equal(offer, line) })
		for name := range gone {
			gone[name] = gone[name] || isTerm(e.Message.RawBody, name)
			has = has || tells(e.Message.RawBody, name)
		}
		if !has {
			continue
		}
		var w withheld
		w.Withheld.Hash, w.Withheld.Receipt = e.Stamp.Hash, e.Stamp.Receipt
		if b.Transcript[i], err = json.Marshal(w); err != nil {
			return b, err
		}
	}
	if _, is := gone["obligations"]; is {
		b.Obligations = []Obligation{}
	}
	for name, found := range gone {
		if !found {
			return b, fmt.Errorf("there is no term %q", name)
		}
	}
	return b, nil
}

// decides reports whether an act asks people what its agent may do, or is their answer. An arbiter's is none.
func decides(m *performatives.Message) bool {
	var body struct {
		Type string `json:"type"`
		Data struct {
			Escalation string `json:"escalationId"`
		} `json:"data"`
	}
	return m.Performative == performatives.Escalate ||
		m.Performative == performatives.Inform && json.Unmarshal(m.RawBody, &body) == nil && body.Type == performatives.Resolution && body.Data.Escalation != ""
}

// isTerm reports whether a body has terms of which one has this name.
func isTerm(body jsontext.Value, name string) bool {
	var has struct {
		Terms map[string]jsontext.Value `json:"terms"`
	}
	if json.Unmarshal(body, &has) != nil {
		return false
	}
	_, is := has.Terms[name]
	return is
}

// tells reports whether a value has a member of this name, at any depth, or says something of the term by its path.
func tells(value jsontext.Value, name string) bool {
	d := jsontext.NewDecoder(bytes.NewReader(value))
	for {
		t, err := d.ReadToken()
		if err != nil {
			return false
		}
		if t.Kind() != '"' {
			continue
		}
		kind, n := d.StackIndex(d.StackDepth())
		switch of := d.StackPointer().LastToken(); {
		case kind == '{' && n%2 == 1 && t.String() == name:
			return true
		case n%2 == 0 && (of == "field" || of == "termPath"):
			if first, _, _ := strings.Cut(strings.TrimPrefix(t.String(), "terms."), "."); first == name {
				return true
			}
		}
	}
}

// chain checks a transcript of which entries are withheld: that each entry follows the one before, and
// that the broker accepted it. Signatures are checked of those that are there.
func (r *Report) chain(trust Trust) {
	b := &r.Bundle
	head, keys, before := performatives.NoHash, map[performatives.Agent]performatives.Key{}, ""
	if len(b.Sealed) > 0 {
		r.fault("/sealed", "goes with a whole transcript only")
	}
	for i, line := range b.Transcript {
		at := fmt.Sprintf("/transcript/%d", i)
		var stamp performatives.Stamp
		if isWithheld(line) {
			var w withheld
			if err := json.Unmarshal(line, &w, json.RejectUnknownMembers(true)); err != nil {
				r.fault(at, "%v", err)
				return
			}
			stamp.Hash, stamp.Receipt = w.Withheld.Hash, w.Withheld.Receipt
			r.Withheld++
		} else {
			e, err := transcript.Read(line)
			if err != nil {
				r.fault(at, "%v", err)
				return
			}
			if stamp = e.Stamp; stamp.PreviousHash != head || stamp.Sequence != uint64(i) || e.Recomputed != stamp.Hash || e.Message.Session != b.Session {
				r.fault(at, "does not follow the entry before")
			}
			for _, m := range stamp.Joined {
				keys[m.Agent] = m.Key
				if m.Custody == performatives.Hosted && !slices.Contains(r.Hosted, m.Agent) {
					r.Hosted = append(r.Hosted, m.Agent)
				}
			}
			if key := keys[e.Message.Sender]; key != "" && e.Message.Signature != "" && e.Message.VerifySignature(key) != nil {
				r.fault(at, "%s did not sign it", e.Message.Sender)
			}
		}
		var untimely *performatives.UntimelyError
		if err := trust.BrokerKeys.VerifyReceipt(&stamp); errors.As(err, &untimely) {
			r.fault(at, "%s", untimely)
		} else if err != nil {
			r.fault(at, "the broker did not sign that it accepted this hash")
		}
		if stamp.Receipt.AcceptedAt < before {
			r.fault(at, "was accepted before the entry before it")
		}
		if isWithheld(line) && (i+1 == len(b.Transcript) || isWithheld(b.Transcript[i+1])) {
			r.Unlinked++
		}
		head, before = stamp.Hash, stamp.Receipt.AcceptedAt
	}
	if head != b.Head {
		r.fault("/head", "is %s; the transcript ends with %s", b.Head, head)
	}
	if n := len(b.Transcript); n > 0 && stateAfter(b.Transcript[n-1]) != b.State.String() {
		r.fault("/state", "is %s; the receipt of the last entry says %s", b.State, stateAfter(b.Transcript[n-1]))
	}
}

// claims notes what is there only because the bundle says so.
func (r *Report) claims() {
	for i := range r.Bundle.Obligations {
		r.Claimed = append(r.Claimed, fmt.Sprintf("/obligations/%d", i))
	}
	for i := range r.Bundle.Disputes {
		r.Claimed = append(r.Claimed, fmt.Sprintf("/disputes/%d", i))
	}
}

// receiptOf is the receipt of an entry, withheld or not.
func receiptOf(line jsontext.Value) performatives.Receipt {
	var w withheld
	if isWithheld(line) && json.Unmarshal(line, &w) == nil {
		return w.Withheld.Receipt
	}
	_, stamp, _, err := performatives.ReadDelivered(line)
	if err != nil {
		return performatives.Receipt{}
	}
	return stamp.Receipt
}

func stateAfter(line jsontext.Value) string { return receiptOf(line).State }

// acceptedAt is when the last entry was accepted.
func acceptedAt(lines []jsontext.Value) string {
	if len(lines) == 0 {
		return ""
	}
	return receiptOf(lines[len(lines)-1]).AcceptedAt
}
