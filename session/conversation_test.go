package session_test

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/session/agreement"
)

var update = flag.Bool("update", false, "write the answers in testdata and docs/lifecycle.md again")

// A conversation is a play of scenes; each is a session of its own.
//
//	== title                       a new scene
//	# …                            a remark
//	alpha PROPOSE p1 {…} : answer  an act, and what it is answered; see script_test.go
//	+31s : …                       time passes; deadlines due are entered
//	"T+48h", "#3"                  in JSON: a time after the curtain, the hash of entry 3
//	register carol decide          the registry learns about somebody
//	kind beta system               … or another kind
//	standby alpha delta            … or who takes the turns that it leaves waiting
//	trust beta 20                  … or about somebody's trust score
//	limit alice 15000 USD          … or about a human's ceiling
//	route alice,carol 2 1h / chief 1 2h   the rules ask two of alice and carol within 1 h, then the chief within 2 h
//	transfer 2                     colleagues take the item to its second level
//	show proposals                 | the lines below it
//
// An answer is "accepted STATE", "again STATE" for a repeat, or "refused code
// details". Run with -update to write the answers anew.
type conversation struct {
	*stage
	ids   map[string]string // labels of messages
	names map[string]string // the reverse
	sent  map[string][]byte
	cells cells
	// hashes are those of the agreements that offers make in binding/1.
	hashes  map[string]agreement.Digest
	refusal string // the sentence of the last refusal
}

// cells are the lifecycle's, by what was seen of them.
type cells map[cell]bool

type cell struct {
	phase   session.Phase
	act     performatives.Performative
	allowed bool
}

// conversations are the session's own, and those that stand beside their modes.
func conversations() (files []string, err error) {
	for _, pattern := range []string{"testdata/*.txt", "modes/testdata/*.txt"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			return nil, fmt.Errorf("no conversations in %s: %w", pattern, err)
		}
		files = append(files, found...)
	}
	return files, nil
}

func TestConversations(t *testing.T) {
	files, err := conversations()
	if err != nil {
		t.Fatal(err)
	}
	seen, ran := cells{}, 0
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			ran++
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := play(t, string(text), seen)
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if !*update && got != string(text) {
				t.Errorf("the answers are others now; if they should be, run with -update:\n%s", cmp.Diff(string(text), got))
			}
		})
	}
	if ran == len(files) { // not with -run
		seen.cover(t)
	}
}

// cover asserts that the conversations made every transition of the lifecycle table
// and were refused at every hole.
func (seen cells) cover(t *testing.T) {
	for _, p := range session.Phases() {
		for _, act := range performatives.All() {
			if c := (cell{p, act, p.Allows(act)}); !seen[c] {
				t.Errorf("no conversation shows %s while %s (allowed: %v)", act, p, c.allowed)
			}
		}
	}
}

// play performs a script and returns it with the answers as they are now.
func play(t *testing.T, script string, seen cells) string {
	c := newConversation(t, seen)
	var out strings.Builder
	for n, line := range strings.Split(strings.TrimRight(script, "\n"), "\n") {
		said, _, _ := strings.Cut(line, " : ")
		said = strings.TrimRight(said, " ")
		words := strings.Fields(said)
		switch {
		case strings.HasPrefix(line, "  |"):
			continue
		case len(words) == 0, words[0] == "#":
			out.WriteString(strings.TrimRight(line, " ") + "\n")
			continue
		case words[0] == "==":
			c.replayed()
			c = newConversation(t, seen)
			out.WriteString(line + "\n")
			continue
		}
		answers, err := c.perform(said, words)
		if err != nil {
			t.Fatalf("line %d: %s: %v", n+1, line, err)
		}
		if words[0] == "show" {
			fmt.Fprintln(&out, said)
			for _, a := range answers {
				fmt.Fprintf(&out, "  | %s\n", c.readable(a))
			}
			continue
		}
		if len(answers) == 0 {
			fmt.Fprintln(&out, said)
			continue
		}
		fmt.Fprintf(&out, "%-64s : %s\n", said, c.readable(answers[0]))
	}
	c.replayed()
	return out.String()
}

func newConversation(t reporter, seen cells) *conversation {
	return &conversation{stage: newStage(t), ids: map[string]string{}, names: map[string]string{}, sent: map[string][]byte{}, cells: seen, hashes: map[string]agreement.Digest{}}
}

func (c *conversation) perform(said string, words []string) ([]string, error) {
	switch words[0] {
	case "show":
		if len(words) < 2 || len(c.entries) == 0 && words[1] == "entry" {
			return nil, errors.New("show what?")
		}
		return c.show(words[1:])
	case "register":
		if len(words) != 3 {
			return nil, errors.New("register whom as what?")
		}
		member := performatives.Member{Agent: principals[words[1]], Kind: performatives.KindPersonal, Authority: words[2]}
		if member.Agent.IsHuman() {
			member.Kind = performatives.KindHuman
		}
		c.registry[member.Agent] = member
		return nil, nil
	case "kind":
		if len(words) != 3 {
			return nil, errors.New("who is of what kind?")
		}
		member := c.registry[principals[words[1]]]
		member.Kind = words[2]
		c.registry[member.Agent] = member
		return nil, nil
	case "standby": // standby alpha delta
		if len(words) != 3 {
			return nil, errors.New("who stands by for whom?")
		}
		member := c.registry[principals[words[1]]]
		member.Standby = principals[words[2]]
		c.registry[member.Agent] = member
		return nil, nil
	case "limit": // limit alice 15000 USD
		if len(words) != 4 {
			return nil, errors.New("limit whom to how much of what?")
		}
		var l performatives.Limit
		if _, err := fmt.Sscan(words[2]+" "+words[3], &l.MaxAmount, &l.Currency); err != nil {
			return nil, err
		}
		member := c.registry[principals[words[1]]]
		member.Limited, member.Limits = true, append(slices.Clip(member.Limits), l)
		c.registry[principals[words[1]]] = member
		return nil, nil
	case "most": // most beta 100 USD: on its card
		if len(words) != 4 {
			return nil, errors.New("at most how much of what for whom?")
		}
		member := c.registry[principals[words[1]]]
		member.MaxValue = new(float64)
		if _, err := fmt.Sscan(words[2]+" "+words[3], member.MaxValue, &member.Currency); err != nil {
			return nil, err
		}
		c.registry[principals[words[1]]] = member
		return nil, nil
	case "route":
		return nil, c.routes(words[1:])
	case "transfer": // transfer 2: to the second level
		_, err := fmt.Sscan(words[len(words)-1], &c.level)
		c.level--
		return nil, err
	case "key": // key alpha: registered with a key of its own
		member := c.registry[principals[words[len(words)-1]]]
		member.Key = signerOf(words[len(words)-1]).Key()
		c.registry[member.Agent] = member
		return nil, nil
	case "format": // format 1: the session is opened under the format 1 of transcripts
		_, err := fmt.Sscan(words[len(words)-1], &c.policy.Format)
		return nil, err
	case "trust":
		if len(words) != 3 {
			return nil, errors.New("trust whom how much?")
		}
		var score float64
		if _, err := fmt.Sscan(words[2], &score); err != nil {
			return nil, err
		}
		member := c.registry[principals[words[1]]]
		member.TrustScore = &score
		c.registry[principals[words[1]]] = member
		return nil, nil
	}
	if after, ok := strings.CutPrefix(words[0], "+"); ok {
		d, err := time.ParseDuration(after)
		if err != nil || d < 0 || d > 100_000*time.Hour {
			return nil, fmt.Errorf("how long is that? %w", err)
		}
		c.now = c.now.Add(d)
		var entered []string
		for what := c.deadlines(); what != ""; what = c.deadlines() {
			entered = append(entered, "broker "+what)
		}
		if entered == nil {
			return []string{"nothing ends"}, nil
		}
		return []string{strings.Join(entered, "; ") + ", " + c.state.Phase.String()}, nil
	}
	a, err := c.read(said)
	if err != nil {
		return nil, err
	}
	return []string{c.say(a)}, nil
}

// say submits an act and words its answer.
func (c *conversation) say(a act) string {
	envelope := a.again
	if envelope == nil {
		envelope = c.envelope(a.draft)
	}
	if a.label != "" {
		c.sent[a.label] = envelope
	}
	before := c.state.Phase
	id, err := c.submit(envelope)
	if a.label != "" && id != "" {
		c.names[string(id)] = a.label
		if _, used := c.ids[a.label]; !used || err == nil {
			c.ids[a.label] = string(id)
		}
	}
	var repeat *session.Repeat
	var refused *session.Refusal
	switch {
	case errors.As(err, &repeat):
		return fmt.Sprintf("again %s (entry %d)", repeat.Seen.Phase, repeat.Seen.Sequence)
	case errors.As(err, &refused):
		if len(refused.Message) < 10 || strings.Contains(refused.Message, "%!") {
			c.t.Errorf("%s teaches nobody: %q", refused.Code, refused.Message)
		}
		c.refusal = refused.Message
		c.cells.refused(before, a.draft.Body, refused.Code)
		return strings.TrimSpace("refused " + string(refused.Code) + " " + jsonOf(refused.Details))
	case err != nil:
		return "broken " + err.Error()
	}
	c.cells[cell{before, a.draft.Body.Act(), true}] = true
	answer := "accepted " + c.state.Phase.String()
	if who := c.state.Last.OnBehalfOf; who != "" {
		answer += " for " + string(who)
	}
	return answer
}

// refused notes a hole that was shown to be one.
func (seen cells) refused(p session.Phase, body performatives.Body, code session.Code) {
	if body == nil {
		return
	}
	switch {
	case code == session.WrongState, p == session.Idle && code == session.UnknownSession, p == session.Escalated && code == session.SessionEscalated:
		seen[cell{p, body.Act(), false}] = true
	}
}

// readable puts names for URIs, labels for ids, and offsets for times.
func (c *conversation) readable(s string) string {
	for _, name := range slices.Sorted(maps.Keys(principals)) {
		s = strings.ReplaceAll(s, string(principals[name]), name)
	}
	for id, label := range c.names {
		s = strings.ReplaceAll(s, id, label)
	}
	s = strings.ReplaceAll(s, string(performatives.BrokerAgent(broker.Key())), "the broker")
	s = hashes.ReplaceAllStringFunc(s, func(hash string) string {
		for i, entry := range c.entries {
			if _, stamp, _, err := performatives.ReadDelivered(entry); err == nil && string(stamp.Hash) == hash {
				return fmt.Sprintf("#%d", i)
			}
		}
		return "#none"
	})
	return stamps.ReplaceAllStringFunc(s, func(stamp string) string {
		at, err := time.Parse(time.RFC3339Nano, stamp)
		if err != nil {
			return stamp
		}
		return "T+" + at.Sub(curtain).String()
	})
}
