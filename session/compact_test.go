package session_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-asp/parley/performatives"
	"github.com/parley-asp/parley/session"
	"github.com/parley-asp/parley/session/modes"
)

// shadow judges the same event by a state that is compacted after each entry, and asserts
// that the outcome is the same.
func (s *stage) shadow(e session.Event, next session.State, err error) {
	s.t.Helper()
	m := e.Message
	if s.compact.ID == "" {
		s.compact = session.New(sessionID, modes.All())
	}
	for _, o := range s.compact.Needed(m, s.now) {
		entry, _, _, readErr := performatives.ReadDelivered(s.entries[o.Sequence])
		if readErr == nil {
			s.compact, readErr = s.compact.Restore(o.ID, entry.RawBody)
		}
		if readErr != nil {
			s.t.Fatal(readErr)
		}
	}
	after, shadowErr := session.Step(s.compact, e)
	if !reflect.DeepEqual(any(err), any(shadowErr)) { // refusals with their details
		s.t.Errorf("%s of %s: %v by the whole state, %v by the compact one", m.Performative, m.Sender, err, shadowErr)
	}
	if s.compact = s.compact.Compact(0); err != nil {
		return
	}
	s.compact = after.Compact(0)
	if want, got := viewOf(next.CompactAll(0), s.now), viewOf(s.compact, s.now); want != got {
		s.t.Errorf("after %s of %s the compact state differs:\n%s", m.Performative, m.Sender, cmp.Diff(want, got))
	}
	if all := next.CompactAll(0); all.Size() != s.compact.Size() {
		s.t.Errorf("after %s of %s %d bytes are counted, not %d", m.Performative, m.Sender, s.compact.Size(), all.Size())
	}
}

// Offers that are over do not stay whole: however many large ones there were, the state
// has the size of those that are open.
func TestCompact(t *testing.T) {
	t.Parallel()
	const kib = 1 << 10
	c := newConversation(t, cells{})
	say := func(line string) {
		t.Helper()
		if _, err := c.perform(line, strings.Fields(line)); err != nil {
			t.Fatalf("%.80s: %v", line, err)
		}
		c.state = c.state.Compact(kib)
	}
	say(`alpha invite i1 -> beta`)
	say(`beta ACCEPT i1`)
	terms := func(n int) string { return fmt.Sprintf(`{"n":%d,"x":%q}`, n, strings.Repeat("x", 100*kib)) }
	say(`alpha PROPOSE p0 ` + terms(0))
	one := c.state.Size()
	who := []string{"beta", "alpha"}
	for n := 1; n <= 40; n++ {
		say(fmt.Sprintf(`%s COUNTER p%d`, who[(n-1)%2], n) + fmt.Sprintf(` p%d %s`, n-1, terms(n)))
	}
	if size := c.state.Size(); one < 200*kib || size > one+40*2*kib {
		t.Errorf("%d bytes with one offer open, %d after 40 counters", one, size)
	}
	say(`beta REJECT p40`)
	say(`alpha PROPOSE e1 ` + terms(41) + ` until=5s`)
	say(`beta PROPOSE w1 ` + terms(42))
	say(`beta WITHDRAW w1`)
	say(`alpha PROPOSE a1 ` + terms(43))
	say(`beta ACCEPT a1`)
	c.now = c.now.Add(10e9)
	say(`alpha OBSERVE`)
	for _, id := range []string{"p0", "p39", "p40", "e1", "w1"} {
		if o, ok := c.state.Offer(id); !ok || !o.Compact || o.Terms != nil || o.Body != nil || o.Subject == "" && id == "p0" {
			t.Errorf("%s is whole, or gone", id)
		}
	}
	if o, _ := c.state.Offer("a1"); o.Compact || o.Terms == nil {
		t.Error("what was accepted is not whole")
	}
}
