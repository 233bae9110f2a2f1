package performatives

import "time"

// A Limit is the highest amount, in one currency, that a human may let an agent
// agree to.
type Limit struct {
	Currency  string  `json:"currency"` // ISO 4217
	MaxAmount float64 `json:"maxAmount"`
}

// A Route is who decides an escalation, and until when: the rule that the
// organisation made for it, worked out when the agent asked. The broker pins it
// with the ESCALATE, so that a replay knows who was asked, whatever the rules
// say by then (PROTOCOL.md §7).
type Route struct {
	Rule    string   `json:"rule,omitzero"` // its name
	Levels  []Level  `json:"levels"`        // asked one after the other; at least one
	Amounts []string `json:"amounts,omitzero"`
}

// A Level is who is asked, and how many of them have to approve.
type Level struct {
	Name      string    `json:"name,omitzero"`
	Approvers []Agent   `json:"approvers,omitzero"` // none is every human of the organisation who may decide
	Quorum    int       `json:"quorum"`
	Remind    time.Time `json:"remindAt,omitzero"` // before Due; zero is never
	Due       time.Time `json:"due"`               // the next level's turn; of the last one: nobody has decided
}
