package session_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
)

// Whatever is said in whatever mode: no mode hears what the table does not, or
// carries a session back, and a refusal changes nothing. The stage asserts it
// after every act, and that live State is replayed State.
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

// A tally is convergent/1's projection as its issue words it, found by looking
// at everything again each time.
type tally struct {
	peers      []string
	acceptance string
	keep       bool

	offers   map[string]*tallied
	accepts  map[string]string
	terminal [][2]string // agent, offer
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
		entry := map[string]any{"author": string(cast[o.author]), "disposition": o.status}
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
		accepts[string(cast[who])] = id
	}
	for _, r := range y.terminal {
		if y.live(r[1], now) {
			terminal = append(terminal, map[string]any{"agentId": string(cast[r[0]]), "proposalId": r[1]})
		}
	}
	p := map[string]any{"proposals": proposals, "accepts": accepts, "terminalRejections": terminal, "phase": "Negotiating"}
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

// heard enters an accepted act.
func (y *tally) heard(m move, now int) {
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
	case "REJECT":
		if y.accepts[m.who] == m.ref {
			delete(y.accepts, m.who)
		}
		if m.terminal {
			y.terminal = append(y.terminal, [2]string{m.who, m.ref})
		}
	case "WITHDRAW":
		y.offers[m.ref].status = "withdrawn"
		maps.DeleteFunc(y.accepts, func(_, id string) bool { return id == m.ref })
		y.terminal = slices.DeleteFunc(y.terminal, func(r [2]string) bool { return r[1] == m.ref })
	case "COMMIT":
		y.closed = true
		if !m.terminal {
			y.accepted = m.ref
		}
	}
}

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
				y.heard(m, int(c.now.Sub(curtain).Seconds()))
			}
		}
		shown = nil
		if err := json.Unmarshal([]byte(jsonOf(c.state.ViewAt(c.now).Projection)), &shown); err != nil {
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

// swappable tells whether two moves, one after the other, may change places:
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

// Two to 1,000 peers, besides a coordinator; at 1,000 they converge like ten.
func TestConvergentCrowd(t *testing.T) {
	for _, c := range []struct {
		policy string
		others int
		opens  bool
	}{
		{`{}`, 999, true}, {`{}`, 1000, false}, {`{}`, 1001, false},
		{`{"initiatorRole":"coordinator"}`, 1000, true}, {`{"initiatorRole":"coordinator"}`, 1001, false},
	} {
		s := newBench(t)
		participants := make([]string, c.others)
		for i := range participants {
			participants[i] = fmt.Sprintf("agent://many.org/a%d", i)
			s.registry[performatives.Agent(participants[i])] = performatives.Member{Agent: performatives.Agent(participants[i])}
		}
		_, err := session.Step(s.state, s.message(cast["alpha"], &performatives.ProposeBody{
			ProposalID: "i1", Type: performatives.SessionInvitation, Subject: "many",
			Terms: jsontext.Value(jsonOf(map[string]any{"mode": "convergent/1", "participants": participants, "policy": jsontext.Value(c.policy)})),
		}))
		if code := refusal(err); (code == "") != c.opens || !c.opens && code != session.ModeViolation {
			t.Errorf("%d and an inviter with %s: %v", c.others, c.policy, err)
		}
	}
	s := newBench(t)
	peers := s.opensIn("convergent/1", 999)
	s.crowds(peers, 20)
	for i, a := range append(peers, cast["alpha"]) {
		if phase := "Negotiating"; i%100 == 99 && s.phase(t) != phase {
			t.Fatalf("not %s before %s has accepted", phase, a)
		}
		s.happens(a, &performatives.AcceptBody{ReferenceID: "p7"})
	}
	if phase := s.phase(t); phase != "Converged" {
		t.Errorf("all have accepted: %s", phase)
	}
}

func (s *bench) phase(t *testing.T) string {
	t.Helper()
	var shown struct{ Phase string }
	if err := json.Unmarshal([]byte(jsonOf(s.state.ViewAt(s.now).Projection)), &shown, json.MatchCaseInsensitiveNames(true)); err != nil {
		t.Fatal(err)
	}
	return shown.Phase
}

// 1,000 participants and 10,000 offers, all with the same terms: an act costs
// what it costs with ten.
func BenchmarkConvergent(b *testing.B) {
	for _, others := range []int{9, 999} {
		for _, offers := range []int{10, 10_000} {
			s := newBench(b)
			peers := s.opensIn("convergent/1", others)
			s.crowds(peers, offers)
			for _, body := range []performatives.Body{
				&performatives.ProposeBody{ProposalID: "new", Type: "data-exchange", Subject: "s", Terms: terms(1)},
				&performatives.CounterBody{ProposalID: "new", ReferenceID: "p0", Terms: terms(1)},
				&performatives.AcceptBody{ReferenceID: "p1"},
				&performatives.RejectBody{ReferenceID: "p0", Code: "unspecified", Reason: "no", Terminal: true},
			} {
				b.Run(fmt.Sprintf("%s/participants=%d/offers=%d", body.Act(), others+1, offers), func(b *testing.B) {
					steps(b, s.state, s.message(peers[0], body))
				})
			}
			b.Run(fmt.Sprintf("COMMIT/participants=%d/offers=%d", others+1, offers), func(b *testing.B) {
				all := *s
				all.stage = &stage{t: b, state: s.state, registry: s.registry, terms: s.terms, now: s.now, messages: s.messages}
				for _, a := range append(peers, cast["alpha"]) {
					all.happens(a, &performatives.AcceptBody{ReferenceID: "p0"})
				}
				steps(b, all.state, all.message(cast["alpha"], &performatives.CommitBody{CommitmentID: "k1", ReferenceID: "p0"}))
			})
		}
	}
}

// crowds puts so many offers with the same terms on the table; everybody has
// accepted one or another, and many were rejected.
func (s *bench) crowds(peers []performatives.Agent, offers int) {
	s.b.Helper()
	for i := range offers {
		s.happens(peers[i%len(peers)], &performatives.ProposeBody{ProposalID: fmt.Sprintf("p%d", i), Type: "data-exchange", Subject: "s", Terms: terms(1)})
		if i%2 == 1 {
			s.happens(peers[i*7%len(peers)], &performatives.RejectBody{ReferenceID: fmt.Sprintf("p%d", i), Code: "unspecified", Reason: "no"})
		}
	}
	for i, a := range peers {
		s.happens(a, &performatives.AcceptBody{ReferenceID: fmt.Sprintf("p%d", i%offers)})
	}
}
