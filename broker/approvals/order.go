package approvals

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/parley-asp/parley/api"
)

// An order is how a list is sorted, by a key of its approvals. Each key is unique.
type order struct {
	key        func(*approval) string
	descending bool
}

// orderOf is how the open approvals are sorted, or those that have ended.
func orderOf(sort string, open bool) order {
	switch sort {
	case api.SortNewest:
		return order{func(k *approval) string { return k.At + string(k.ID) }, true}
	case api.SortAmount:
		return order{byAmount, false}
	}
	return order{func(k *approval) string { return k.key }, !open}
}

// byAmount puts the largest amount of each currency first, and approvals without one
// last.
func byAmount(k *approval) string {
	if k.Amount == nil {
		return "~" + k.key
	}
	return fmt.Sprintf("%.12s %016x%s", strings.ToUpper(k.Amount.Currency), ^math.Float64bits(max(k.Amount.Value, 0)), k.ID)
}

// sort sorts a list that is sorted by approval.key.
func (o order) sort(list []*approval, sort string) {
	switch sort {
	case "", api.SortDue:
		if o.descending {
			slices.Reverse(list)
		}
		return
	}
	keys := make(map[*approval]string, len(list))
	for _, k := range list {
		keys[k] = o.key(k)
	}
	slices.SortFunc(list, func(a, b *approval) int {
		if o.descending {
			a, b = b, a
		}
		return strings.Compare(keys[a], keys[b])
	})
}

// after are the approvals behind the one that had a key.
func (o order) after(list []*approval, key string) []*approval {
	n := slices.IndexFunc(list, func(k *approval) bool {
		if o.descending {
			return o.key(k) < key
		}
		return o.key(k) > key
	})
	if n < 0 {
		return nil
	}
	return list[n:]
}
