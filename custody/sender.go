package custody

import (
	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// MACPSender finds the principal of a token with this name in MACP.
func (c *Custody) MACPSender(name string) (performatives.Agent, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t, known := c.tokens[c.names[name]]
	if !known || t.over(c.o.Now()) {
		return "", false
	}
	return t.Agent, true
}

// checkMACPSender refuses a principal's name in MACP that is another's.
func (c *Custody) checkMACPSender(a performatives.Agent, name string) error {
	if owner, taken := c.MACPSender(name); taken && owner != a {
		return session.Refuse(session.Duplicate, "the macp_sender belongs to another principal")
	}
	return c.o.Registry.CheckMACPSender(a, name)
}

// name notes what MACP calls the holder of a token that has changed. The caller holds the lock.
func (c *Custody) name(id string, old, t *token) {
	if old != nil && (t.ID == "" || t.Removed) && c.names[old.Sender] == id {
		delete(c.names, old.Sender)
	}
	if _, taken := c.names[t.Sender]; t.Sender != "" && !taken && !t.Removed {
		c.names[t.Sender] = id
	}
}
