package session_test

import (
	"maps"
	"slices"
	"strings"
)

// A tally is convergent/1's projection as its issue words it, found by looking
// at everything again each time.
type tally struct {
	peers      []string
	acceptance string
	keep       bool

	offers   map[string]*tallied
	accepts  map[string]string
	refused  [][2]string // agent, offer
	terminal [][2]string // the same
	closed   bool
	accepted string
}

type tallied struct {
	author, status, supersedes string
	until                      int // seconds; 0 is never
}

func (y *tally) live(id string, now int) bool {
	o := y.offers[id]
	return o.status == "live" && (o.until == 0 || now < o.until)
}

func (y *tally) meets(id string) bool {
	for _, p := range y.peers {
		has := y.accepts[p] == id
		switch {
		case y.acceptance == "counterparty" && p == y.offers[id].author:
		case y.acceptance == "initiator" && p != "alpha":
		case !has:
			return false
		}
	}
	return true
}

func (y *tally) projection(now int) map[string]any {
	proposals, accepts, terminal := map[string]any{}, map[string]any{}, []any{}
	var met []string
	for id, o := range y.offers {
		entry := map[string]any{"author": string(principals[o.author]), "disposition": strings.Replace(o.status, "countered", "withdrawn", 1)}
		if o.status == "live" && !y.live(id, now) && y.accepted != id {
			entry["disposition"] = "expired"
		}
		if o.supersedes != "" {
			entry["supersedes"] = o.supersedes
		}
		proposals[id] = entry
		if y.live(id, now) && y.meets(id) {
			met = append(met, id)
		}
	}
	for who, id := range y.accepts {
		accepts[string(principals[who])] = id
	}
	refused := []any{}
	for _, r := range y.refused {
		refused = append(refused, map[string]any{"agentId": string(principals[r[0]]), "proposalId": r[1]})
	}
	for _, r := range y.terminal {
		if y.live(r[1], now) {
			terminal = append(terminal, map[string]any{"agentId": string(principals[r[0]]), "proposalId": r[1]})
		}
	}
	p := map[string]any{"proposals": proposals, "accepts": accepts, "rejections": refused, "terminalRejections": terminal, "phase": "Negotiating"}
	switch {
	case y.accepted != "":
		p["acceptedProposal"] = y.accepted
	case len(terminal) > 0:
		p["phase"] = "TerminalRejected"
	case len(met) == 1:
		p["phase"], p["acceptedProposal"] = "Converged", met[0]
	}
	if y.closed {
		p["phase"] = "Committed"
	}
	return p
}

// note enters an accepted act.
func (y *tally) note(m move, now int) {
	switch m.act {
	case "PROPOSE", "COUNTER":
		o := &tallied{author: m.who, status: "live", supersedes: m.ref}
		if m.until > 0 {
			o.until = now + m.until
		}
		y.offers[m.id] = o
		if m.act == "COUNTER" && !y.keep {
			y.offers[m.ref].status = "countered"
		}
	case "ACCEPT":
		y.accepts[m.who] = m.ref
		y.takesBack(m)
	case "REJECT":
		if y.accepts[m.who] == m.ref {
			delete(y.accepts, m.who)
		}
		y.takesBack(m)
		if m.terminal {
			y.terminal = append(y.terminal, [2]string{m.who, m.ref})
		} else {
			y.refused = append(y.refused, [2]string{m.who, m.ref})
		}
	case "WITHDRAW":
		y.offers[m.ref].status = "withdrawn"
		maps.DeleteFunc(y.accepts, func(_, id string) bool { return id == m.ref })
		y.terminal = slices.DeleteFunc(y.terminal, func(r [2]string) bool { return r[1] == m.ref })
		y.refused = slices.DeleteFunc(y.refused, func(r [2]string) bool { return r[1] == m.ref })
	case "COMMIT":
		y.closed = true
		if !m.terminal {
			y.accepted = m.ref
		}
	}
}

// takesBack forgets an earlier rejection of the same offer by the same peer.
func (y *tally) takesBack(m move) {
	y.refused = slices.DeleteFunc(y.refused, func(r [2]string) bool { return r == [2]string{m.who, m.ref} })
}
