package session_test

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"pgregory.net/rapid"

	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/session/agreement"
)

// situations is how many are tried: a state of a session, and one who looks at it. The whole of it is
//
//	go test ./session -run TestMovesAreAccepted -situations 100000
var situations = flag.Int("situations", 1, "how many situations TestMovesAreAccepted tries at least; rapid's checks are some 15,000")

// GATEWAYS.md G9: every move, filled in within its limits, is accepted, in all modes and for every role, in
// conversations of moves and of anything else that is said. The stage asserts of the latter that what is
// accepted was a move, and what was refused for the state it met was none.
func TestMovesAreAccepted(t *testing.T) {
	tried, seen := 0, map[string]int{}
	for tried < *situations && !t.Failed() {
		rapid.Check(t, func(t *rapid.T) {
			c := newConversation(t, cells{})
			for _, line := range rapid.SampledFrom(situationOpenings).Draw(t, "opening") {
				c.tell(t, line)
			}
			for range rapid.IntRange(3, 20).Draw(t, "acts") {
				c.deadlines()
				if c.state.Phase.Over() {
					break
				}
				var all []filled
				for _, name := range slices.Sorted(maps.Keys(principals)) {
					a := principals[name]
					moves := c.movesAreAccepted(t, name)
					all = append(all, moves...)
					if c.state.Phase == session.Idle {
						continue
					}
					tried++
					role := "none"
					if p, has := c.state.Party(a); has {
						role = p.Role.String()
						for _, g := range c.state.GrantsOf(p, c.now) {
							role += " " + g.Authority.String()
						}
					}
					seen[fmt.Sprintf("%s, %s, %s, who may act: %t", c.state.Mode.Name, c.state.Phase, role, len(moves) > 0)]++
				}
				if len(all) == 0 || rapid.Bool().Draw(t, "anything") {
					c.tell(t, anyModeLine.Draw(t, "line"))
				} else {
					one := rapid.SampledFrom(all).Draw(t, "move")
					if _, err := c.submit(one.envelope); err != nil {
						t.Fatal(err)
					}
					c.hashes = one.binds
				}
			}
		})
	}
	for _, what := range slices.Sorted(maps.Keys(seen)) {
		t.Logf("%6d %s", seen[what], what)
	}
	t.Logf("%d situations of %d kinds", tried, len(seen))
}

// situationOpenings bring sessions to where something may be said, with delegates, a standby, humans and
// escalations with bounds.
var situationOpenings = slices.Concat(openings, modeOpenings, [][]string{
	{`register chief decide`, `limit alice 2 USD`, `alpha invite i1 -> beta`, `beta ACCEPT i1`, `beta PROPOSE p1 {"price":2,"currency":"USD"}`, `alpha ESCALATE e1 low p1`, `alice rules e1 modified {"authority":{"maxAmount":1,"currency":"USD"}}`},
	{`alpha invite i1 -> beta`, `beta ACCEPT i1`, `beta PROPOSE p1 {"price":1}`, `beta DELEGATE d1 delia limited`, `delia ACCEPT d1`, `beta DELEGATE d2 dora advisory`},
	{`alpha invite i1 -> beta`, `beta ACCEPT i1`, `beta DELEGATE d1 carol full`, `beta PROPOSE p1 {"price":1} until=20m`, `alpha CLARIFY c1 p1 terms.price`, `+20m`},
	{`standby beta delia`, `kind delia system`, `alpha invite i1 -> beta {"mode":"bilateral/1","policy":{"parkedMs":1000}}`, `beta ACCEPT i1`, `alpha PROPOSE p1 {"price":1} roles=agent/peer`, `+3s`},
	{`alpha invite i1 -> beta, mini`, `beta ACCEPT i1`, `mini ACCEPT i1`, `beta PROPOSE p1 {"price":1}`},
	{`key alpha`, `key beta`, `alpha invite i1 -> beta {"mode":"binding/1"}`, `beta ACCEPT i1`},
	{`key alpha`, `key beta`, `alpha invite i1 -> beta {"mode":"binding/1"}`, `beta ACCEPT i1`, `alpha PROPOSE p1 {"price":1} link=right binds=alpha`},
	{`key alpha`, `key beta`, `alpha invite i1 -> beta {"mode":"binding/1","policy":{"maxRounds":2}}`, `beta ACCEPT i1`, `alpha PROPOSE p1 {"price":1} link=right binds=alpha until=20m`, `beta COUNTER p2 p1 {"price":2} link=right binds=beta`, `alpha CLARIFY c1 p2 terms.price`},
	{`alpha invite i1 -> beta`, `beta ACCEPT i1`, `alpha PROPOSE p1 {"price":1}`, `beta ACCEPT p1`, `alpha COMMIT k1 p1`, `beta ACCEPT k1`},
})

// A filled is a move of somebody, ready to be sent.
type filled struct {
	says     string
	envelope []byte
	binds    map[string]agreement.Digest // once it is said
}

// movesAreAccepted asserts it of each of one's moves, none of which is said, and returns them.
func (c *conversation) movesAreAccepted(t *rapid.T, name string) (all []filled) {
	t.Helper()
	a := principals[name]
	for _, move := range c.moves(&performatives.Message{Sender: a, Performative: performatives.Observe}) {
		f := c.fill(t, name, move)
		m, err := performatives.Read(f.envelope)
		if err == nil {
			err = c.checkBody(m)
		}
		if err == nil {
			_, err = session.Step(c.state, c.event(m))
		}
		if err != nil {
			t.Fatalf("a move of %s while %s is refused: %s: %v", name, c.state.Phase, f.says, err)
		}
		all = append(all, f)
	}
	return all
}

// fill fills a move in.
func (c *conversation) fill(t *rapid.T, name string, move session.Move) filled {
	t.Helper()
	var made map[string]any
	if err := json.Unmarshal(move.Body, &made); err != nil {
		t.Fatal(err)
	}
	signs := false
	for _, path := range move.Fill {
		signs = signs || path == "agreementSignature"
		value := any("said")
		switch path {
		case "terms":
			value = body{"price": 1, "currency": "USD", "note": fmt.Sprint("the ", c.messages)}
		case "terms.obligations":
			value = []body{{"party": c.state.Sides()[0], "action": "deliver"}}
			if of, amends := c.state.Commitment(move.Reference); amends {
				value = []body{{"id": fmt.Sprint("more-", c.messages), "party": of.Parties[0], "action": "deliver"}}
				put(made, "terms.price", 1)
				put(made, "terms.currency", "USD")
			}
		case "questions":
			field := "proposalId"
			if o, _ := c.state.Offer(move.Reference); o != nil && o.IsCommitment() {
				field = "commitmentId"
			}
			value = []body{{"field": field, "question": "what is meant?"}}
		case "targetAgent":
			value = c.nobody()
		case "type":
			value = "service-agreement"
		case "data":
			value = body{"note": "said"}
		case "data.authority":
			value = body{"maxAmount": 1, "currency": "USD"}
		case "assessment":
			value = body{"reasoning": "so", "suggestedRoles": body{"ownUser": "peer", "otherUser": "agent"}}
		case "agreementSignature", "agreementSalt", "effectiveFrom":
			continue
		}
		if oneOf := move.OneOf[path]; len(oneOf) > 0 {
			value = oneOf[c.messages%len(oneOf)]
		}
		put(made, path, value)
	}
	act := act{draft: performatives.Draft{Sender: principals[name], Recipient: move.To, Link: &performatives.Link{Sequence: c.state.Next, PreviousHash: c.state.Head}}}
	binds := maps.Clone(c.hashes)
	if signs {
		if err := c.bind(&act, made, c.sideOf(name)); err != nil { // a delegate brings its principal's signature
			t.Fatal(err)
		}
	}
	binds, c.hashes = c.hashes, binds
	text, err := json.Marshal(made, json.Deterministic(true))
	if err != nil {
		t.Fatal(err)
	}
	act.draft.Body = anyBody{act: move.Act, text: text}
	return filled{fmt.Sprintf("%s %s", move.Act, text), c.envelope(act.draft), binds}
}

// sideOf is the principal on whose side somebody speaks.
func (c *conversation) sideOf(name string) string {
	side := c.state.SideOf(principals[name], c.now)
	for other, a := range principals {
		if a == side {
			return other
		}
	}
	return name
}

// nobody is an agent that has no part in the session and is registered.
func (c *conversation) nobody() performatives.Agent {
	var a performatives.Agent
	for n, has := 0, true; has; n++ {
		a = performatives.Agent(fmt.Sprint("agent://help.example/helper", n))
		_, has = c.state.Party(a)
	}
	c.registry[a] = performatives.Member{Agent: a, Kind: performatives.KindPersonal, Authority: performatives.AuthorityPrincipal}
	return a
}

// put sets what a dotted path names.
func put(in any, path string, value any) {
	name, rest, more := strings.Cut(path, ".")
	switch in := in.(type) {
	case map[string]any:
		if !more {
			in[name] = value
			return
		}
		if in[name] == nil {
			in[name] = map[string]any{}
		}
		put(in[name], rest, value)
	case []any:
		var n int
		if _, err := fmt.Sscan(name, &n); err == nil && more {
			put(in[n], rest, value)
		}
	}
}
