package transcript

import (
	"fmt"

	"github.com/parley-asp/parley/performatives"
)

// sender verifies the sender's signature with the key that was last pinned for it,
// in this entry or an earlier one.
func (c *check) sender() {
	c.pin()
	from := c.Message.Sender
	if from.IsBroker() {
		c.brokersOwn(from)
		return
	}
	p, known := c.pins[from]
	switch {
	case !known && c.lost:
		// It may have joined with an entry that is already a fault.
	case !known:
		c.fault(Pinned, "%s has not joined the session", from)
	case p.key == "":
		// It joined without a key, under --dev.
	case c.Message.Signature == "" && c.expect.AllowUnsigned:
	case p.doubtful && c.genuine:
		// The key may be wrong; the entry that pinned it is already a fault.
	case c.Message.Signature == "":
		c.fault(Signature, "%s did not sign it", from)
	case c.Message.VerifySignature(p.key) != nil:
		c.fault(Signature, "%s did not sign this with the key that it joined with, %s", from, p.key)
	}
}

// pin records the keys of those who join with the entry. An entry out of order
// does not replace a newer key, and one of another session pins nothing.
func (c *check) pin() {
	if c.isOthers() {
		return
	}
	for _, m := range c.Stamp.Joined {
		if _, known := c.pins[m.Agent]; known && c.genuine && !c.inPlace {
			continue
		}
		c.pins[m.Agent] = pin{key: m.Key, doubtful: !c.genuine}
	}
}

// brokersOwn checks an entry that the broker made itself, such as the CLOSE at a
// deadline (PROTOCOL.md §3). It is signed under --dev too.
func (c *check) brokersOwn(from performatives.Agent) {
	switch {
	case !c.keys.Has(from.BrokerKey()):
		c.fault(Broker, "%s is not the broker that kept this transcript", from)
	case c.genuine && from.BrokerKey() != c.Stamp.Receipt.Broker:
		c.fault(Broker, "%s made it, and the receipt is by %s", from, c.Stamp.Receipt.Broker)
	case c.Message.VerifySignature(from.BrokerKey()) != nil:
		c.fault(Signature, "the broker did not sign its own entry")
	}
}

// missing names the entries from first up to the one before end.
func missing(first, end uint64) string {
	if end-first == 1 {
		return fmt.Sprintf("entry %d is", first)
	}
	return fmt.Sprintf("entries %d to %d are", first, end-1)
}
