package performatives

import (
	"crypto/ed25519"
	"sync"
	"sync/atomic"
)

// Keys that sign often are kept ready: decoded, and from the third signature on
// as a comb, which takes as long to make as three checks save. At most
// 2*familiarKeys are kept, with 20 KB each; the others are checked by the
// standard library.
const (
	familiarKeys   = 1024
	familiarChecks = 3
)

type familiarKey struct {
	public ed25519.PublicKey
	checks atomic.Uint32
	comb   atomic.Pointer[comb]
}

// A familiarity has two ages: what is not asked for while the younger one fills
// is forgotten.
type familiarity struct {
	sync.Mutex
	young, old map[Key]*familiarKey
}

var familiar familiarity

// of is nil for what is no key.
func (f *familiarity) of(k Key) *familiarKey {
	f.Lock()
	defer f.Unlock()
	if key, ok := f.young[k]; ok {
		return key
	}
	key, ok := f.old[k]
	if !ok {
		public := k.public()
		if public == nil {
			return nil
		}
		key = &familiarKey{public: public}
	}
	if f.young == nil || len(f.young) >= familiarKeys {
		f.young, f.old = make(map[Key]*familiarKey), f.young
	}
	f.young[k] = key
	return key
}

// verify answers as ed25519.Verify does.
func (k *familiarKey) verify(message, signature []byte) bool {
	if c := k.comb.Load(); c != nil {
		return c.verify(message, signature)
	}
	if k.checks.Add(1) == familiarChecks {
		k.comb.Store(newComb(k.public)) // nil where the library refuses it, too
	}
	return ed25519.Verify(k.public, message, signature)
}
