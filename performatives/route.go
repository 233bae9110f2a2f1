package performatives

import "time"

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
}

// A Level is who is asked, and how many of them have to approve.
type Level struct {
	Approvers []Agent   `json:"approvers,omitzero"` // none is every human of the organisation who may decide
	Quorum    int       `json:"quorum"`
	Due       time.Time `json:"due"` // then it is the next level's turn; after the last one, nobody has decided
}
