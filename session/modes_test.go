package session_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/parley-asp/parley/api"
)

// Whatever is said in whatever mode: no mode accepts what the table does not, or
// carries a session back, and a refusal changes nothing. The stage asserts it
// after every act, and that cached State is replayed State.
func TestAnythingSaidInModes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newConversation(t, cells{})
		for _, line := range rapid.SampledFrom(modeOpenings).Draw(t, "opening") {
			c.tell(t, line)
		}
		for range rapid.IntRange(5, 40).Draw(t, "acts") {
			c.tell(t, anyModeLine.Draw(t, "line"))
		}
		c.replayed()
	})
}

var modeOpenings = [][]string{
	{`alpha invite i1 -> beta {"mode":"bilateral/1"}`, `beta ACCEPT i1`, `alpha PROPOSE p1 {"price":1} roles=agent/peer`},
	{`kind alpha system`, `kind beta system`, `alpha invite i1 -> beta {"mode":"bilateral/1"}`, `beta ACCEPT i1`, `beta DELEGATE d1 delia full`, `alpha PROPOSE p1 {"price":1} roles=agent/peer`},
	{`alpha invite i1 -> beta {"mode":"bilateral/1","policy":{"wallClockMs":60000}}`, `beta ACCEPT i1`, `alpha PROPOSE p1 {"price":1} roles=agent/peer until=20m`, `beta CLARIFY c1 p1 terms roles=peer/peer`},
	{`alpha invite i1 -> beta {"mode":"bilateral/1","policy":{"confirm":true}}`, `beta ACCEPT i1`, `alpha PROPOSE p1 {"price":1} roles=agent/peer as=e1`, `beta ACCEPT p1 roles=peer/agent as=e2`},
	{`alpha invite i1 -> beta, gamma {"mode":"convergent/1"}`, `beta ACCEPT i1`, `gamma ACCEPT i1`, `beta PROPOSE p1 {"price":1}`},
	{`alpha invite i1 -> beta {"mode":"convergent/1"}`, `beta ACCEPT i1`, `beta PROPOSE p1 {"price":1}`, `alpha ACCEPT p1`, `beta ACCEPT p1`},
	{`alpha invite i1 -> beta, gamma {"mode":"convergent/1","policy":{"initiatorRole":"coordinator","counterRetires":false}}`, `beta ACCEPT i1`, `gamma ACCEPT i1`, `beta PROPOSE p1 {"price":1}`, `gamma REJECT p1 {"terminal":true}`},
	{`alpha invite i1 -> beta {"mode":"convergent/1"}`, `beta COUNTER i2 i1 {"mode":"bilateral/1"}`},
}

// anyModeLine is any line, mostly with the assessment that bilateral/1 wants.
var anyModeLine = rapid.Custom(func(t *rapid.T) string {
	line := anyLine.Draw(t, "line")
	words := strings.Fields(line)
	if len(words) < 2 || strings.Contains(line, " -> ") || !rapid.SampledFrom([]bool{true, true, true, false}).Draw(t, "assessed") {
		return line
	}
	switch words[1] {
	case "PROPOSE", "COUNTER", "ACCEPT", "REJECT", "CLARIFY":
		return line + rapid.SampledFrom([]string{" roles=agent/patient", " roles=peer/peer", " roles=boss/peer"}).Draw(t, "roles")
	case "COMMIT":
		return line + rapid.SampledFrom([]string{"", " without=terms", " without=terms outcome=rejected"}).Draw(t, "commitment")
	}
	return line
})

// A move is one act in convergent/1.
type move struct {
	who, act, id, ref string
	until             int
	terminal          bool // a REJECT, or the outcome of a COMMIT
}

func (m move) line() string {
	words := []string{m.who, m.act, m.id, m.ref}
	switch {
	case m.act == "PROPOSE" || m.act == "COUNTER":
		words = append(words, fmt.Sprintf(`{"price":%d}`, len(m.id)))
	case m.act == "REJECT" && m.terminal:
		words = append(words, `{"terminal":true}`)
	case m.act == "COMMIT" && m.terminal:
		words = append(words, "without=terms", "outcome=rejected")
	case m.act == "COMMIT":
		words = append(words, "without=terms")
	}
	if m.until > 0 {
		words = append(words, fmt.Sprintf("until=%ds", m.until))
	}
	return strings.Join(strings.Fields(strings.Join(words, " ")), " ")
}

var anyMove = rapid.Custom(func(t *rapid.T) move {
	one := func(name string, of ...string) string { return rapid.SampledFrom(of).Draw(t, name) }
	m := move{who: one("who", "alpha", "beta", "gamma"), act: one("act", "PROPOSE", "PROPOSE", "COUNTER", "COUNTER", "ACCEPT", "ACCEPT", "ACCEPT", "ACCEPT", "REJECT", "WITHDRAW", "COMMIT", "time")}
	ids := []string{"p1", "p2", "p3", "p4"}
	switch m.act {
	case "PROPOSE":
		m.id = one("id", ids...)
	case "COUNTER":
		m.id, m.ref = one("id", ids...), one("ref", ids...)
	case "COMMIT":
		m.id, m.ref = "k1", one("ref", ids...)
	default:
		m.ref = one("ref", ids...)
	}
	if m.act == "PROPOSE" || m.act == "COUNTER" || m.act == "time" {
		m.until = rapid.SampledFrom([]int{0, 0, 0, 1, 3}).Draw(t, "until")
	}
	if m.act == "REJECT" || m.act == "COMMIT" {
		m.terminal = rapid.SampledFrom([]bool{false, false, true}).Draw(t, "terminal")
	}
	return m
})

// converse plays moves and returns the projection at the end, having held it
// against the tally after each.
func converse(t *rapid.T, peers []string, policy, acceptance string, keep bool, moves []move) any {
	c := newConversation(t, cells{})
	c.tell(t, fmt.Sprintf(`alpha invite i1 -> beta, gamma {"mode":"convergent/1","policy":%s}`, policy))
	c.tell(t, `beta ACCEPT i1`)
	c.tell(t, `gamma ACCEPT i1`)
	c.tell(t, `gamma OBSERVE`)
	y := tally{peers: peers, acceptance: acceptance, keep: keep, offers: map[string]*tallied{}, accepts: map[string]string{}}
	var shown any
	for _, m := range moves {
		if m.act == "time" {
			c.tell(t, fmt.Sprintf("+%ds", m.until))
		} else {
			before := c.state.Next
			c.tell(t, m.line())
			if c.state.Next > before {
				y.note(m, int(c.now.Sub(curtain).Seconds()))
			}
		}
		shown = nil
		if err := json.Unmarshal(partOf(api.ViewSession(&c.state, c.now), "projection"), &shown); err != nil {
			t.Fatal(err)
		}
		if !c.state.Phase.Over() { // then the clock has stopped
			if diff := cmp.Diff(any(y.projection(int(c.now.Sub(curtain).Seconds()))), shown); diff != "" {
				t.Fatalf("after %s:\n%s", m.line(), diff)
			}
		}
	}
	c.replayed()
	return shown
}

// swappable reports whether two moves, one after the other, may change places:
// acceptances of different peers, and an acceptance with another peer's offer
// that it does not name.
func swappable(a, b move) bool {
	if a.who == b.who {
		return false
	}
	if a.act == "PROPOSE" {
		a, b = b, a
	}
	return a.act == "ACCEPT" && (b.act == "ACCEPT" || b.act == "PROPOSE" && b.id != a.ref)
}

// The same accepted history gives the same outcome: as the rules say word for
// word, on replay, and whatever the order of what has none (PROTOCOL.md §8).
func TestConvergentDeterminism(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		peers := []string{"alpha", "beta", "gamma"}
		acceptance := rapid.SampledFrom([]string{"all_parties", "counterparty", "initiator"}).Draw(t, "acceptance")
		keep := rapid.Bool().Draw(t, "keep")
		role := "peer"
		if acceptance != "initiator" && rapid.Bool().Draw(t, "coordinator") {
			role, peers = "coordinator", peers[1:]
		}
		policy := fmt.Sprintf(`{"acceptance":%q,"counterRetires":%v,"initiatorRole":%q}`, acceptance, !keep, role)
		moves := rapid.SliceOfN(anyMove, 4, 40).Draw(t, "moves")
		first := converse(t, peers, policy, acceptance, keep, moves)
		other := slices.Clone(moves)
		for range rapid.IntRange(0, 40).Draw(t, "swaps") {
			if i := rapid.IntRange(0, len(other)-2).Draw(t, "at"); swappable(other[i], other[i+1]) {
				other[i], other[i+1] = other[i+1], other[i]
			}
		}
		if diff := cmp.Diff(first, converse(t, peers, policy, acceptance, keep, other)); diff != "" {
			t.Fatalf("%v and %v end differently:\n%s", moves, other, diff)
		}
	})
}
