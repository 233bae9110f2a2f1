package render

import (
	"strings"

	"github.com/parley-asp/parley/performatives"
)

// A cast assigns each principal a short name and a colour: alpha for
// agent://acme.com/procurement/alpha, and more of the URI for a second alpha.
type cast struct {
	roles map[performatives.Agent]role
	names map[string]bool
	acts  map[performatives.Agent]string // the authority of each delegate
}

type role struct {
	name  string
	voice ink
}

const brokerName = "broker"

func newCast() cast {
	return cast{
		roles: map[performatives.Agent]role{}, names: map[string]bool{brokerName: true, "everybody": true},
		acts: map[performatives.Agent]string{},
	}
}

func (c *cast) of(a performatives.Agent) role {
	if a.IsBroker() {
		return role{brokerName, faint}
	}
	if known, ok := c.roles[a]; ok {
		return known
	}
	_, path, _ := strings.Cut(string(a), "://")
	segments := strings.Split(path, "/")
	name := segments[len(segments)-1]
	for at := len(segments) - 2; at >= 0 && c.names[name]; at-- {
		name = segments[at] + "/" + name
	}
	if name == "" || c.names[name] {
		name = string(a)
	}
	first := role{name, voice(len(c.roles))}
	c.names[name] = true
	c.roles[a] = first
	return first
}

// name returns a principal's short name in its colour.
func (c *cast) name(a performatives.Agent) span {
	r := c.of(a)
	return span{r.name, r.voice}
}
