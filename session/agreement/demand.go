package agreement

import (
	"fmt"
	"maps"
	"slices"

	"github.com/parley-asp/parley/performatives"
)

// Demand makes it a fault that a trusted key has signed nothing, or that the broker's, if no other is trusted, has not. That
// a party has replaced its key is the broker's word: without a key of the broker, it signs with the trusted one alone.
func (r *Report) Demand(t Trust) {
	broker := t.Broker != "" || !t.BrokerKeys.IsZero()
	for _, a := range slices.Sorted(maps.Keys(t.Keys)) {
		other := func(k performatives.Key) bool { return k != t.Keys[a] }
		switch e := r.Document.Evidence; {
		case !slices.Contains(r.signers[a], t.Keys[a]):
			r.Faults = append(r.Faults, Fault{"/signatures", fmt.Sprintf("%s has not signed with the key %s", a, t.Keys[a])})
		case !broker && !r.Logged && e != nil && e.DIDKeys[a] == "" && slices.ContainsFunc(r.signers[a], other):
			r.Faults = append(r.Faults, Fault{"/evidence/rotated/" + string(a), "another key has signed, too, and only the broker's key can show that it may"})
		}
	}
	if broker && len(t.Keys) == 0 && !r.receipts && !r.Logged {
		r.Faults = append(r.Faults, Fault{"/evidence", "has no entries with receipts, so the broker's key proves nothing"})
	}
}
