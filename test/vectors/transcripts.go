package vectors

import (
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session/transcript"
)

// A Transcript is an export of a session, with what one side may open of it.
type Transcript struct {
	Name       string                                                `json:"name"`
	About      string                                                `json:"about"`
	Broker     performatives.Key                                     `json:"broker"`              // whose receipts are expected
	BrokerKeys performatives.KeyHistory                              `json:"brokerKeys,omitzero"` // its history, where the key was rotated
	Session    performatives.SessionID                               `json:"sessionId"`
	Head       performatives.Hash                                    `json:"head,omitzero"`    // that is expected at the end
	Length     int                                                   `json:"length,omitzero"`  // that is expected
	Entries    []string                                              `json:"entries"`          // each as it was delivered
	Sealed     map[performatives.MessageID]performatives.SealedParts `json:"sealed,omitzero"`  // what opens the sealed members
	Opened     map[performatives.MessageID]jsontext.Value            `json:"opened,omitzero"`  // the bodies with them
	Refused    []Fault                                               `json:"refused,omitzero"` // all faults, the first of which every reader finds; none is accepted
}

// A Fault is a rule of package transcript that an entry breaks, or sealed: what is said to open it does not.
type Fault struct {
	Line int             `json:"line"` // from 1; the last for the whole
	Rule transcript.Rule `json:"rule"`
}

// Sealed is the rule that transcript.Verify leaves to those who have the parts.
const Sealed transcript.Rule = "sealed"

func transcripts(buying, binding *table) (all []Transcript, err error) {
	other, err := signerOf("another broker")
	if err != nil {
		return nil, err
	}
	whole := func(t *table) Transcript {
		return Transcript{Broker: t.broker.Key(), Session: t.id, Head: t.entries[len(t.entries)-1].Stamp.Hash, Length: len(t.entries), Entries: t.lines()}
	}
	good := whole(buying)
	add := func(name, about string, change func(*Transcript), faults ...Fault) {
		c := good
		c.Entries = append([]string{}, good.Entries...)
		change(&c)
		c.Name, c.About, c.Refused = name, about, faults
		all = append(all, c)
	}
	replace := func(line int, old, with string) func(*Transcript) {
		return func(c *Transcript) { c.Entries[line-1] = strings.Replace(c.Entries[line-1], old, with, 1) }
	}
	receipt := func(line int) string { return buying.entries[line-1].Stamp.Receipt.Signature }
	opens := func(c *Transcript) {
		c.Sealed, c.Opened = buying.sealed, map[performatives.MessageID]jsontext.Value{}
		for _, e := range buying.entries {
			if parts := buying.sealed[e.Message.ID]; parts != nil {
				c.Opened[e.Message.ID] = performatives.Opened(e.Message.Performative, e.Message.RawBody, parts)
			}
		}
	}
	// reopened has one sealed part of an act replaced.
	reopened := func(line int, member string, part performatives.SealedPart) func(*Transcript) {
		return func(c *Transcript) {
			id := buying.entries[line-1].Message.ID
			c.Sealed = map[performatives.MessageID]performatives.SealedParts{id: {member: part}}
		}
	}
	context := buying.sealed[buying.entries[4].Message.ID][performatives.SealContext]

	add("asp", "a purchase in asp/1 that a human approved; what the buyer's side sealed stays closed", func(*Transcript) {})
	add("asp-opened", "the same with what the buyer's side may open", opens)
	add("binding", "a purchase in binding/1", func(c *Transcript) { *c = whole(binding) })
	add("prefix", "the end is missing, and nobody said where it is: a chain cannot tell", func(c *Transcript) { c.Entries, c.Head, c.Length = c.Entries[:5], "", 0 })

	n := len(good.Entries)
	var receipts []Fault
	for i := range n {
		receipts = append(receipts, Fault{i + 1, transcript.Receipt})
	}
	add("changed-byte", "the price of the offer is another", replace(4, "89.5", "88.5"), Fault{4, transcript.Hash}, Fault{4, transcript.Signature})
	add("missing-entry", "the fourth entry is missing", func(c *Transcript) { c.Entries = append(c.Entries[:3], c.Entries[4:]...) }, Fault{4, transcript.Sequence}, Fault{n - 1, transcript.Length})
	add("missing-end", "the last entry is missing", func(c *Transcript) { c.Entries = c.Entries[:n-1] }, Fault{n - 1, transcript.Length})
	add("other-end", "the end is not the one that is expected", func(c *Transcript) { c.Head = buying.entries[2].Stamp.Hash }, Fault{n, transcript.Head})
	add("swapped-receipts", "the third entry has the receipt of the fourth", replace(3, receipt(3), receipt(4)), Fault{3, transcript.Receipt})
	add("swapped-entries", "the third entry and the fourth have changed places", func(c *Transcript) { c.Entries[2], c.Entries[3] = c.Entries[3], c.Entries[2] },
		Fault{3, transcript.Sequence}, Fault{4, transcript.Sequence}, Fault{4, transcript.Time})
	add("repeated-entry", "the third entry stands twice", func(c *Transcript) { c.Entries = append(c.Entries[:3], c.Entries[2:]...) },
		Fault{4, transcript.Sequence}, Fault{4, transcript.Duplicate}, Fault{n + 1, transcript.Length})
	add("other-broker", "the receipts are not of the broker that is expected", func(c *Transcript) { c.Broker = other.Key() }, receipts...)
	add("other-session", "an entry of another session", func(c *Transcript) { c.Entries[2] = binding.lines()[2] }, Fault{3, transcript.Session}, Fault{3, transcript.Previous})
	add("spelling", "the same JSON in other bytes", replace(3, `,"`, `, "`), Fault{3, transcript.Canonical})
	add("opened-otherwise", "what is said to be sealed is not what the digest is of",
		reopened(5, performatives.SealContext, performatives.SealedPart{Salt: context.Salt, Value: jsontext.Value(`"above 90, our limit"`)}), Fault{5, Sealed})
	add("opened-by-name", "a part of a member that the act does not seal", reopened(5, performatives.SealSuggested, context), Fault{5, Sealed})
	erased := make([]string, n)
	for i, e := range buying.entries {
		line, err := transcript.Erase(&e.Stamp)
		if err != nil {
			return nil, err
		}
		erased[i] = string(line)
	}
	gone := func(c *Transcript) { copy(c.Entries, erased) }
	add("erased", "the session was erased: hashes and receipts are left", gone)
	add("erased-changed", "an erased entry has the hash of another", func(c *Transcript) {
		gone(c)
		c.Entries[2] = strings.Replace(c.Entries[2], string(buying.entries[2].Stamp.Hash), string(buying.entries[3].Stamp.Hash), 1)
	}, Fault{3, transcript.Receipt})
	add("erased-more", "an erased entry has another member", func(c *Transcript) {
		gone(c)
		c.Entries[2] = strings.TrimSuffix(c.Entries[2], "}") + `,"note":1}`
	}, Fault{3, transcript.JSON})
	add("erased-link", "an erased entry links to another one than its neighbour", func(c *Transcript) {
		gone(c)
		c.Entries[2] = strings.Replace(c.Entries[2], string(buying.entries[2].Stamp.PreviousHash), string(buying.entries[0].Stamp.Hash), 1)
	}, Fault{3, transcript.Previous})
	add("erased-one", "one entry alone is erased", func(c *Transcript) { c.Entries[2] = erased[2] }, Fault{3, transcript.Erased})
	add("erased-but-one", "all entries but one are erased", func(c *Transcript) { gone(c); c.Entries[2] = good.Entries[2] }, Fault{3, transcript.Erased})
	rotated, err := rotatedTranscripts(8)
	return append(all, rotated...), err
}
