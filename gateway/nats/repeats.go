package natsgateway

import (
	"hash/maphash"
	"sync/atomic"
)

// repeats remembers acts that were forwarded lately, by their bytes. Whoever sends the same bytes
// again had no answer: the link between its server and the owner's may be cut while both reach this
// broker. A newer act takes the place of an older one, so memory is bounded.
type repeats struct {
	seen [1 << 14]atomic.Uint64
}

var repeatsSeed = maphash.MakeSeed()

// again reports whether the act was forwarded before.
func (r *repeats) again(act forwarded) bool {
	var h maphash.Hash
	h.SetSeed(repeatsSeed)
	h.WriteString(act.subject)
	h.Write(act.r.Data())
	sum := h.Sum64()
	return r.seen[sum%uint64(len(r.seen))].Swap(sum) == sum
}
