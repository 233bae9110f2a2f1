package performatives

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// A Limit is the highest amount, in one currency, that a human may let an agent
// agree to. It is the organisation's own affair: the other side reads the
// transcript, so what is pinned of it is only that there is one.
type Limit struct {
	Currency  string  `json:"currency"` // ISO 4217
	MaxAmount float64 `json:"maxAmount"`
}

// A Route is who decides an escalation, and until when: what the organisation's
// rules came to when the agent asked. The broker pins it with the ESCALATE, so
// that a replay knows who was asked, whatever the rules say by then
// (PROTOCOL.md §7).
type Route struct {
	Levels  []Level  `json:"levels"`           // asked one after the other; at least one
	Amounts []string `json:"amounts,omitzero"` // dotted paths at which an offer names its amount; none is the usual ones
	// NonMonetary lets a human with a ceiling approve terms that name no amount, by
	// "allow" alone and by "two" with a second human. "" does not.
	NonMonetary string `json:"nonMonetary,omitzero"`
	// ReasonToDeny refuses a denial without a comment.
	ReasonToDeny bool `json:"reasonToDeny,omitzero"`
	// Organisation is whose route it is, where several confirm an agreement.
	Organisation Organisation `json:"organisation,omitzero"`
	// Salt seals the names of approvers. The broker keeps it; no transcript has it.
	Salt string `json:"salt,omitzero"`
}

// A Level is who is asked, and how many of them have to approve.
type Level struct {
	Approvers []Agent   `json:"approvers,omitzero"` // none, and none sealed, is every human of the organisation who may decide
	Sealed    []Hash    `json:"sealed,omitzero"`    // digests of approvers who have not acted, and so are unknown to the other sides
	Quorum    int       `json:"quorum"`
	Due       time.Time `json:"due"` // then it is the next level's turn; after the last one, nobody has decided
}

// SaltOf is the salt of one approver's digest, which says nothing of another's; "" where nothing is sealed.
func (r *Route) SaltOf(a Agent) string {
	if r.Salt == "" || !slices.ContainsFunc(r.Levels, func(l Level) bool { return slices.Contains(l.Approvers, a) }) {
		return ""
	}
	mac := hmac.New(sha256.New, []byte(r.Salt))
	mac.Write([]byte(a))
	return hex.EncodeToString(mac.Sum(nil))
}

// Seal is the route as a transcript has it: of the approvers it names those who are public already, and
// has digests of the others.
func (r *Route) Seal(public func(Agent) bool) *Route {
	sealed := *r
	sealed.Salt, sealed.Levels = "", slices.Clone(r.Levels)
	for n, l := range r.Levels {
		level := &sealed.Levels[n]
		level.Approvers, level.Sealed = nil, slices.Clone(l.Sealed)
		for _, a := range l.Approvers {
			if salt := r.SaltOf(a); salt != "" && !public(a) {
				level.Sealed = append(level.Sealed, approverDigest(salt, a))
			} else {
				level.Approvers = append(level.Approvers, a)
			}
		}
		slices.Sort(level.Sealed) // who is asked first is no one's business
	}
	return &sealed
}

// Open is the route with the approver whom a salt opens, the route itself if it opens nobody.
func (r *Route) Open(a Agent, salt string) *Route {
	digest := approverDigest(salt, a)
	if !slices.ContainsFunc(r.Levels, func(l Level) bool { return slices.Contains(l.Sealed, digest) }) {
		return r
	}
	opened := *r
	opened.Levels = slices.Clone(r.Levels)
	for n := range opened.Levels {
		if l := &opened.Levels[n]; slices.Contains(l.Sealed, digest) {
			l.Approvers = append(slices.Clip(l.Approvers), a)
		}
	}
	return &opened
}

// approverDigest stands for an approver in a route.
func approverDigest(salt string, a Agent) Hash {
	digest, err := SealedPart{Salt: salt, Value: jsontext.Value(strconv.Quote(string(a)))}.Digest("approver")
	if err != nil {
		return "" // unreachable: an agent's name is plain text
	}
	return digest
}
